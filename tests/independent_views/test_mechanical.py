"""The level that part and whole have in common."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.independent_views.mechanical import mechanical_level, spearman_with


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=15))
def test_rho_is_scipys(pairs: list[tuple[int, int]]) -> None:
    one, other = np.array(pairs, float).T
    found = spearman_with(one)(other)
    if len(set(one)) < 2 or len(set(other)) < 2:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(scipy.stats.spearmanr(one, other).statistic, abs=1e-12)


def test_all_but_the_probes_part_loses_its_query() -> None:
    random = np.random.default_rng(0)
    probe = random.random(400)
    # The rest follows the probe: what remains of that once it is another query's is what the part makes.
    unrelated = [
        scipy.stats.spearmanr(probe, probe / 4 + random.permutation(probe)).statistic for _ in range(200)
    ]
    level = mechanical_level(probe / 4, probe, spearman_with(probe), 200)
    assert spearman_with(probe)(probe / 4 + probe) == 1
    assert level.mean == pytest.approx(np.mean(unrelated), abs=0.02)
    assert [level.low, level.high] == pytest.approx(np.quantile(unrelated, [0.025, 0.975]), abs=0.04)
    assert level.permutations == 200


def test_no_part_no_level() -> None:
    random = np.random.default_rng(1)
    probe = random.random(300)
    level = mechanical_level(np.zeros(300), probe, spearman_with(probe), 100)
    assert level.low < 0 < level.high
    assert abs(level.mean) < 0.03


def test_every_permutation_is_one_and_they_are_the_same_each_time() -> None:
    seen: list[list[float]] = []

    def keep(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
        seen.append(values.tolist())
        return 0.5

    own, rest = np.full(6, 10.0), np.arange(6.0)
    assert mechanical_level(own, rest, keep, 30).mean == 0.5
    first = list(seen)
    assert all(sorted(values) == [10, 11, 12, 13, 14, 15] for values in first)
    assert len({tuple(values) for values in first}) > 20
    seen.clear()
    mechanical_level(own, rest, keep, 30)
    assert seen == first


def test_a_constant_has_no_level_but_a_reason() -> None:
    level = mechanical_level(np.ones(9), np.ones(9), spearman_with(np.ones(9)), 5)
    assert (level.reason, math.isnan(level.mean), math.isnan(level.low)) == ("constant_values", True, True)
    with pytest.raises(ValueError, match="permutations must be at least 1, not 0"):
        mechanical_level(np.ones(9), np.ones(9), spearman_with(np.ones(9)), 0)
