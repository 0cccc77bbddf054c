"""The draws of the bootstrap: pinned, balanced, shared, in blocks of any size the same."""

from __future__ import annotations

import hashlib
import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_invari.statistics import paper_resamples, resampling, seeded_resamples
from pytest_invari.statistics.resampling import Resamples, seed_from

# Frozen from the first release: a change here changes every interval ever reported.
PINNED = [[0, 3, 0, 1, 1], [0, 0, 2, 2, 1], [0, 1, 1, 1, 2], [1, 1, 2, 0, 1]]


@pytest.fixture(autouse=True)
def no_shared_draws() -> None:
    seeded_resamples.cache_clear()


def drawn(resamples: Resamples) -> NDArray[np.float64]:
    return np.concatenate(list(resamples.blocks()))


def one_by_one(count: int, replicates: int, seed_id: str) -> list[list[int]]:
    """The counts by one draw at a time: the low half of each word, then its high half."""
    stream = np.random.PCG64(seed_from(seed_id))
    rows = []
    for _ in range(replicates):
        halves: list[int] = []
        while len(halves) < count:
            word = int(stream.random_raw())
            halves += [word & 0xFFFFFFFF, word >> 32]
        chosen = [half * count >> 32 for half in halves[:count]]
        rows.append([chosen.count(query) for query in range(count)])
    return rows


def test_seed_is_the_hash_of_the_text() -> None:
    assert seed_from("loc") == int(hashlib.sha256(b"loc").hexdigest(), 16)


def test_draws_are_pinned_for_every_machine_and_version() -> None:
    assert drawn(seeded_resamples(5, "pinned", 4)).tolist() == PINNED


@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_draws_are_those_of_the_stream_one_by_one(count: int) -> None:
    assert drawn(seeded_resamples(count, "a", 25)).tolist() == one_by_one(count, 25, "a")


def test_every_replicate_draws_as_many_as_there_are() -> None:
    weights = drawn(seeded_resamples(17, "a", 300))
    assert weights.shape == (300, 17)
    assert (weights.sum(axis=1) == 17).all()


def test_every_query_is_drawn_equally_often() -> None:
    # 20,000 draws for each of 10 queries: five standard deviations are 670.
    totals = drawn(seeded_resamples(10, "a", 20_000)).sum(axis=0)
    assert (abs(totals - 20_000) < 700).all()


@pytest.mark.parametrize("count", [7, 8])
def test_blocks_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    whole = drawn(seeded_resamples(count, "a", 50)).tolist()
    seeded_resamples.cache_clear()
    monkeypatch.setattr(resampling, "_CHUNK_DRAWS", 20)
    assert len(list(seeded_resamples(count, "a", 50).blocks())) == 25
    assert drawn(seeded_resamples(count, "a", 50)).tolist() == whole


def test_what_is_too_much_to_keep_is_drawn_again_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = seeded_resamples(9, "a", 40)
    expected = drawn(kept).tolist()
    monkeypatch.setattr(resampling, "_KEPT_BYTES", 9 * 40 - 1)
    seeded_resamples.cache_clear()
    again = seeded_resamples(9, "a", 40)
    assert drawn(again).tolist() == expected
    assert drawn(again).tolist() == expected
    assert kept._kept is not None
    assert again._kept is None


def test_counts_are_kept_as_bytes_even_where_one_query_is_drawn_often() -> None:
    often = np.array([[300, 0], [1, 1]])
    resamples = Resamples(2, 2, lambda: iter([often]))
    assert drawn(resamples).tolist() == often.tolist()
    small = seeded_resamples(100, "a", 10)
    drawn(small)
    assert small._kept is not None
    assert {block.dtype for block in small._kept} == {np.dtype(np.uint8)}


def test_memory_does_not_grow_with_the_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "_KEPT_BYTES", 0)
    resamples = seeded_resamples(100_000, "a", 60)
    tracemalloc.start()
    seen = sum(len(block) for block in resamples.blocks())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen == 60
    assert peak < 60e6


def test_the_same_lists_share_their_draws() -> None:
    assert seeded_resamples(20, "films-K5") is seeded_resamples(20, "films-K5")
    assert drawn(seeded_resamples(20, "a", 9)).tolist() != drawn(seeded_resamples(20, "b", 9)).tolist()


def test_the_papers_draws_have_one_generator_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "_CHUNK_DRAWS", 1000)
    weights = drawn(paper_resamples(11))
    assert weights.shape == (1000, 11)
    for b in (1, 2, 500, 1000):
        indices = np.random.default_rng(2400 + b).integers(0, 11, 11)
        assert weights[b - 1].tolist() == [(indices == query).sum() for query in range(11)]


@pytest.mark.parametrize(("count", "replicates"), [(0, 10), (1 << 32, 10), (5, 0)])
def test_impossible_sizes_are_refused(count: int, replicates: int) -> None:
    with pytest.raises(ValueError, match="resampling needs"):
        seeded_resamples(count, "a", replicates)
