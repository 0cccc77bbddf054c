"""The draws of the bootstrap: pinned, balanced, in blocks of any size the same."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from pytest_invari.statistics import resampling
from pytest_invari.statistics.resampling import resample_weights, seed_from

# Frozen from the first release: a change here changes every interval ever reported.
PINNED = [[1, 1, 1, 1, 1], [1, 1, 0, 0, 3], [1, 0, 0, 1, 3], [1, 1, 2, 1, 0]]


def drawn(count: int, replicates: int, seed_id: str) -> list[list[float]]:
    return [row for block in resample_weights(count, replicates, seed_id) for row in block.tolist()]


def test_seed_is_the_hash_of_the_text() -> None:
    assert seed_from("loc") == int(hashlib.sha256(b"loc").hexdigest(), 16)


def test_draws_are_pinned_for_every_machine_and_version() -> None:
    assert drawn(5, 4, "pinned") == PINNED


def test_every_replicate_draws_as_many_as_there_are() -> None:
    weights = np.array(drawn(17, 300, "a"))
    assert weights.shape == (300, 17)
    assert (weights.sum(axis=1) == 17).all()


def test_every_query_is_drawn_equally_often() -> None:
    # 20,000 draws for each of 10 queries: five standard deviations are 670.
    totals = np.array(drawn(10, 20_000, "a")).sum(axis=0)
    assert (abs(totals - 20_000) < 700).all()


def test_blocks_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = drawn(7, 50, "a")
    monkeypatch.setattr(resampling, "_CHUNK_DRAWS", 20)
    assert len(list(resample_weights(7, 50, "a"))) == 25
    assert drawn(7, 50, "a") == whole


@pytest.mark.parametrize(("count", "replicates"), [(0, 10), (1 << 32, 10), (5, 0)])
def test_impossible_sizes_are_refused(count: int, replicates: int) -> None:
    with pytest.raises(ValueError, match="resampling needs"):
        next(resample_weights(count, replicates, "a"))
