"""The guards: exact bounds for what is rare, and a lower bound that noise alone does not lift."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pytest_invari.statistics import (
    Interval,
    PooledCounts,
    bootstrap_difference,
    bootstrap_mean,
    bootstrap_pooled,
    seeded_resamples,
)
from pytest_invari.statistics.guard import Noise, RareShare


def mean_of(values: list[float], low: float = 0.0, high: float = 1.0) -> Interval:
    return bootstrap_mean(values, seeded_resamples(len(values), "a", 999), bounds=(low, high))


def difference_of(differences: list[float], low: float = 0.0, high: float = 1.0) -> Interval:
    resamples = seeded_resamples(len(differences), "a", 999)
    return bootstrap_difference(differences, [0.0] * len(differences), resamples, bounds=(low, high))


@pytest.mark.parametrize(("n", "expected"), [(30, 0.116), (100, 0.036), (300, 0.012)])
def test_no_failure_in_n_queries_leaves_the_share_that_could_hide(n: int, expected: float) -> None:
    interval = mean_of([0.0] * n)
    assert (interval.estimate, interval.low, interval.method) == (0.0, 0.0, "bca+guard")
    assert interval.high == pytest.approx(1 - 0.025 ** (1 / n))
    assert interval.high == pytest.approx(expected, abs=5e-4)


def test_all_at_the_upper_bound_mirrors_it() -> None:
    interval = mean_of([1.0] * 30, low=-1.0)
    assert (interval.estimate, interval.high) == (1.0, 1.0)
    assert interval.low == pytest.approx(1 - 2 * (1 - 0.025 ** (1 / 30)))
    assert interval.probability_at_most(interval.low) == pytest.approx(0.025)


@pytest.mark.parametrize("off", [1, 2, 3, 4])
def test_a_few_off_the_bound_have_at_least_the_exact_bound(off: int) -> None:
    interval = mean_of([0.0] * (50 - off) + [0.5] * off, high=0.5)
    exact = scipy.stats.binomtest(off, 50).proportion_ci(0.95, method="exact").high
    values = [0.0] * (50 - off) + [0.5] * off
    free = bootstrap_mean(values, seeded_resamples(50, "a", 999))
    assert interval.high == pytest.approx(max(0.5 * exact, free.high))
    assert interval.method == "bca+guard"
    # Replicates of so few values tie: their p-value at the bound is then larger.
    assert interval.probability_at_least(interval.high) == pytest.approx(
        max(0.025, free.probability_at_least(interval.high))
    )


def test_five_off_the_bound_are_enough_for_the_bootstrap() -> None:
    values = [0.0] * 45 + [0.1, 0.2, 0.3, 0.4, 0.5]
    guarded = mean_of(values)
    assert guarded == bootstrap_mean(values, seeded_resamples(50, "a", 999))
    assert guarded.method == "bca"


def test_the_guard_only_widens() -> None:
    values = [0.0] * 28 + [0.9, 0.1]
    free = bootstrap_mean(values, seeded_resamples(30, "a", 999))
    held = mean_of(values)
    assert (held.low, held.high > free.high) == (free.low, True)
    # A range so short that the exact bound is nearer than the bootstrap's.
    wide = bootstrap_mean([0.0] * 5 + [1.0] * 3, seeded_resamples(8, "a", 999))
    assert mean_of([0.0] * 5 + [1.0] * 3).high >= wide.high


def test_what_has_no_bound_has_no_guard() -> None:
    calls = bootstrap_mean([25.0] * 30, seeded_resamples(30, "a", 999), bounds=(0, math.inf))
    assert (calls.low, calls.high, calls.method) == (25.0, 25.0, "bca")


def test_few_queries_that_all_differ_may_lie_anywhere() -> None:
    assert mean_of([0.4, 0.6]).high == 1.0
    assert mean_of([0.4, 0.6]).low == 0.0


def test_few_queries_on_an_end_of_the_range_leave_the_share_that_could_hide() -> None:
    assert mean_of([0.0] * 3).low == 0.0
    assert mean_of([0.0] * 3).high == pytest.approx(1 - 0.025 ** (1 / 3))


@pytest.mark.parametrize("anchor", [0.0, 0.3, -0.9])
def test_queries_that_all_have_a_value_within_the_range_may_differ_either_way(anchor: float) -> None:
    hidden = 1 - 0.025 ** (1 / 40)
    interval = mean_of([anchor] * 40, low=-1.0)
    assert (interval.estimate, interval.method) == (anchor, "bca+guard")
    assert interval.low == pytest.approx(anchor - hidden * (anchor + 1))
    assert interval.high == pytest.approx(anchor + hidden * (1 - anchor))


def test_values_that_differ_by_rounding_alone_are_one_value() -> None:
    values = [0.1 + 0.2, 0.3] * 20
    assert mean_of(values, low=-1.0).high == pytest.approx(mean_of([0.3] * 40, low=-1.0).high)


# Differences


def test_queries_that_all_agree_may_differ_either_way() -> None:
    interval = difference_of([0.0] * 30)
    assert interval.high == pytest.approx(1 - 0.025 ** (1 / 30))
    assert interval.low == -interval.high
    assert interval.probability_at_least(0.02) > 0.5
    assert interval.probability_at_least(0.12) < 0.025


def test_a_few_falls_bound_the_fall_and_leave_what_rises_could_hide() -> None:
    interval = difference_of([0.0] * 48 + [-1.0, -1.0], low=-1.0, high=1.0)
    exact = scipy.stats.binomtest(2, 50).proportion_ci(0.95, method="exact").high
    assert interval.low == pytest.approx(-2 * exact)
    assert interval.high == pytest.approx(2 * (1 - 0.025 ** (1 / 50)))


def test_queries_that_all_differ_by_one_amount_may_differ_by_another() -> None:
    interval = difference_of([0.5] * 30)
    assert interval.low == pytest.approx(0.5 - 1.5 * (1 - 0.025 ** (1 / 30)))
    assert interval.high == pytest.approx(0.5 + 0.5 * (1 - 0.025 ** (1 / 30)))


def test_many_falls_without_a_rise_need_no_guard() -> None:
    interval = difference_of([0.0] * 25 + [-0.2, -0.4, -0.1, -0.3, -0.5])
    assert interval.method == "bca"
    assert interval.high < 0


# The exact bound


@given(st.integers(0, 4), st.integers(5, 400), st.floats(0.001, 0.3))
def test_the_exact_bound_is_where_so_few_are_improbable(off: int, n: int, tail: float) -> None:
    rare = RareShare(-1.0, 2.0, off, n)
    assert rare.beyond(rare.bound(tail)) == pytest.approx(tail)
    share = (rare.bound(tail) + 1) / 2
    assert sum(math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(off + 1)) == (
        pytest.approx(tail)
    )


def test_values_outside_the_range_are_certain_or_impossible() -> None:
    rare = RareShare(0.0, 1.0, 1, 20)
    assert (rare.beyond(-0.1), rare.beyond(0.0), rare.beyond(1.0)) == (1.0, 1.0, 0.0)
    assert RareShare(0.0, 1.0, 3, 3).bound(0.025) == 1.0


def test_queries_to_reach_a_bound_without_another_failure() -> None:
    rare = RareShare(0.0, 1.0, 0, 30)
    n = math.ceil(rare.queries_to_reach(0.05))
    assert 1 - 0.025 ** (1 / n) <= 0.05 < 1 - 0.025 ** (1 / (n - 1))
    assert rare.queries_to_reach(0.0) == math.inf
    assert rare.queries_to_reach(1.0) == 1


# Distances


def largest_deviation(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    deviation: NDArray[np.float64] = np.abs(ratios - 0.5).max(axis=-1)
    return deviation


def fair_counts(seed: int, n: int = 60) -> PooledCounts:
    return PooledCounts(np.random.default_rng(seed).binomial(6, 0.5, (n, 10)), np.full(n, 6))


def test_a_deviation_that_noise_makes_is_no_deviation() -> None:
    resamples = seeded_resamples(60, "a", 499)
    found = [
        bootstrap_pooled(fair_counts(seed), largest_deviation, resamples, distance_from=0.5)
        for seed in range(40)
    ]
    assert sum(interval.low > 0 for interval in found) <= 4
    assert all(interval.low <= interval.estimate <= interval.high for interval in found)
    assert {interval.method for interval in found} == {"percentile+guard"}
    alone = [
        bootstrap_pooled(fair_counts(seed), largest_deviation, resamples, method="percentile")
        for seed in range(40)
    ]
    assert all(interval.low > 0 for interval in alone)
    assert [interval.high for interval in alone] == [interval.high for interval in found]


def test_a_deviation_beyond_noise_is_found() -> None:
    counts = np.random.default_rng(0).binomial(6, [0.9] + [0.5] * 9, (60, 10))
    interval = bootstrap_pooled(
        PooledCounts(counts, np.full(60, 6)), largest_deviation, seeded_resamples(60, "a", 999),
        distance_from=0.5,
    )  # fmt: skip
    assert 0.2 < interval.low < 0.4 < interval.high
    assert interval.probability_at_most(interval.low) == pytest.approx(0.025, abs=2e-3)
    assert interval.probability_at_most(0.1) == pytest.approx(1 / 1000)


def test_the_paper_s_interval_has_no_guard() -> None:
    interval = bootstrap_pooled(
        fair_counts(0),
        largest_deviation,
        seeded_resamples(60, "a", 99),
        distance_from=0.5,
        method="percentile",
    )
    assert interval.method == "percentile"
    assert (
        bootstrap_mean([0.0] * 9, seeded_resamples(9, "a", 99), bounds=(0, 1), method="percentile").high == 0
    )


def test_noise_is_never_nearer_than_the_point_itself() -> None:
    noise = Noise(0.1, np.linspace(0.0, 0.3, 101))
    assert noise.bound(0.025) == 0.0
    assert noise.beyond(-0.01) == 1 / 102
    assert noise.beyond(0.0) == pytest.approx(69 / 102, abs=0.02)


@pytest.mark.parametrize(
    ("queries", "share"), [(30, 0.03), (50, 0.0199), (100, 0.0099), (100, 0.03), (200, 0.015)]
)
@pytest.mark.parametrize("high", [1.0, 1.5], ids=["from an end", "from within"])
def test_rare_events_are_missed_as_seldom_as_promised_on_either_side(
    queries: int, share: float, high: float
) -> None:
    """Exactly, by the binomial probability of each number of events."""
    resamples = seeded_resamples(queries, "rare", 999)
    missed = {"below": 0.0, "above": 0.0}
    for events in range(queries + 1):
        probability = float(scipy.stats.binom.pmf(events, queries, share))
        if probability < 1e-9:
            continue
        values = np.repeat([0.0, 1.0], [events, queries - events])
        found = bootstrap_mean(values, resamples, bounds=(-0.2, high))
        missed["below"] += probability * (found.high < 1 - share)
        missed["above"] += probability * (found.low > 1 - share)
    assert max(missed.values()) < 0.03
