"""Intervals over queries: what they estimate and drop, how they are seeded, how often they cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pytest_invari.statistics import (
    Interval,
    PooledCounts,
    bootstrap_difference,
    bootstrap_mean,
    bootstrap_pooled,
    bootstrap_pooled_difference,
)
from pytest_invari.statistics.interval import percentile_bounds
from pytest_invari.statistics.resampling import resample_weights, seed_from

NAN = float("nan")
numbers = st.floats(-1e6, 1e6)


def largest(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    peak: NDArray[np.float64] = ratios.max(axis=-1)
    return peak


def naive_percentile(values: list[float], seed_id: str, replicates: int) -> list[float]:
    """The bounds by drawing indices one by one and averaging them in exact sums."""
    stream = np.random.PCG64(seed_from(seed_id))
    count = len(values)
    means = []
    for _ in range(replicates):
        drawn = [((int(stream.random_raw()) >> 32) * count) >> 32 for _ in range(count)]
        means.append(math.fsum(values[index] for index in drawn) / count)
    means.sort()
    bounds = []
    for share in (0.025, 0.975):
        place = share * (replicates - 1)
        below = math.floor(place)
        above = min(below + 1, replicates - 1)
        bounds.append(means[below] + (place - below) * (means[above] - means[below]))
    return bounds


@settings(max_examples=30, deadline=None)
@given(st.lists(numbers, min_size=2, max_size=12), st.text(max_size=5))
def test_mean_interval_equals_the_naive_one(values: list[float], seed_id: str) -> None:
    interval = bootstrap_mean(values, seed_id, replicates=40)
    scale = max(map(abs, values))
    assert interval.estimate == pytest.approx(math.fsum(values) / len(values), abs=1e-12 * scale)
    assert [interval.low, interval.high] == pytest.approx(
        naive_percentile(values, seed_id, 40), abs=1e-12 * scale
    )
    assert (interval.n, interval.undefined, interval.replicates) == (len(values), 0, 40)
    assert min(values) - 1e-9 * scale <= interval.low <= interval.high <= max(values) + 1e-9 * scale


def test_undefined_queries_are_dropped_and_counted() -> None:
    whole = bootstrap_mean([0.1, 0.4, 0.7], "a")
    holed = bootstrap_mean([0.1, NAN, 0.4, 0.7, NAN], "a")
    assert (holed.n, holed.undefined) == (3, 2)
    assert (holed.estimate, holed.low, holed.high) == (whole.estimate, whole.low, whole.high)


@pytest.mark.parametrize(
    ("values", "reason", "n", "undefined"),
    [
        ([], "no_defined_query", 0, 0),
        ([NAN, NAN], "no_defined_query", 0, 2),
        ([0.5], "fewer_than_2_queries", 1, 0),
        ([NAN, 0.5], "fewer_than_2_queries", 1, 1),
    ],
)
def test_too_few_queries_have_no_bounds_but_a_reason(
    values: list[float], reason: str, n: int, undefined: int
) -> None:
    interval = bootstrap_mean(values, "a")
    assert (interval.reason, interval.n, interval.undefined) == (reason, n, undefined)
    assert not interval.defined
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    assert interval.estimate == pytest.approx(0.5 if n else NAN, nan_ok=True)


@given(numbers, st.integers(2, 50))
def test_equal_values_give_exactly_that_value(value: float, count: int) -> None:
    interval = bootstrap_mean([value] * count, "a", replicates=20)
    assert (interval.estimate, interval.low, interval.high) == (value, value, value)
    assert interval.standard_error == 0


def test_intervals_are_reproducible_and_named_by_their_seed() -> None:
    values = np.random.default_rng(0).random(40)
    assert bootstrap_mean(values, "recsys26::loc") == bootstrap_mean(values, "recsys26::loc")
    other = bootstrap_mean(values, "recsys26::gpi")
    assert other.estimate == bootstrap_mean(values, "recsys26::loc").estimate
    assert other.low != bootstrap_mean(values, "recsys26::loc").low


def test_standard_error_and_bounds_agree_with_normal_theory() -> None:
    values = np.random.default_rng(1).normal(size=400)
    interval = bootstrap_mean(values, "a", replicates=4000)
    error = values.std() / math.sqrt(len(values))
    assert interval.standard_error == pytest.approx(error, rel=0.05)
    assert interval.low == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
    assert interval.high == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)
    narrow = bootstrap_mean(values, "a", replicates=4000, level=0.5)
    assert interval.low < narrow.low < narrow.high < interval.high


def test_intervals_cover_as_often_as_measured_for_thirty_queries() -> None:
    # A percentile interval of 30 normal values covers about 93 to 94 % of the time.
    random = np.random.default_rng(2)
    intervals = [bootstrap_mean(random.normal(size=30), str(run), replicates=400) for run in range(600)]
    covered = np.mean([interval.low <= 0 <= interval.high for interval in intervals])
    assert 0.90 < covered < 0.97


def test_paired_difference_sees_through_the_spread_between_queries() -> None:
    random = np.random.default_rng(3)
    base = random.normal(size=50)
    new = base + 0.1 + 0.01 * random.normal(size=50)
    difference = bootstrap_difference(new, base, "a")
    assert 0.09 < difference.low < difference.estimate < difference.high < 0.11
    assert difference == bootstrap_mean(new - base, "a")


def test_paired_difference_needs_a_value_on_both_sides() -> None:
    difference = bootstrap_difference([1.0, NAN, 3.0, 4.0], [1.0, 2.0, NAN, 2.0], "a")
    assert (difference.n, difference.undefined, difference.estimate) == (2, 2, 1.0)
    with pytest.raises(ValueError, match="same queries"):
        bootstrap_difference([1.0, 2.0], [1.0], "a")
    with pytest.raises(ValueError, match="one a query"):
        bootstrap_mean([[1.0, 2.0]], "a")


def test_pooled_statistic_is_of_the_ratio_of_sums() -> None:
    numerators = np.array([[1, 3], [5, 5], [2, 0]])
    denominators = np.array([4, 10, 2])
    interval = bootstrap_pooled(PooledCounts(numerators, denominators), largest, "a", replicates=50)
    assert interval.estimate == 0.5
    weights = np.concatenate(list(resample_weights(3, 50, "a")))
    replicates = [(w @ numerators / (w @ denominators)).max() for w in weights]
    assert (interval.low, interval.high) == pytest.approx(tuple(np.quantile(replicates, [0.025, 0.975])))


def test_pooled_queries_without_views_are_dropped_and_counted() -> None:
    holed = PooledCounts([[1, 3], [0, 0], [5, 5]], [4, 0, 10])
    full = PooledCounts([[1, 3], [5, 5]], [4, 10])
    interval = bootstrap_pooled(holed, largest, "a")
    assert (interval.n, interval.undefined) == (2, 1)
    assert interval.low == bootstrap_pooled(full, largest, "a").low
    assert bootstrap_pooled(PooledCounts([[1, 3]], [4]), largest, "a").reason == "fewer_than_2_queries"
    none = bootstrap_pooled(PooledCounts(np.empty((0, 2)), np.empty(0)), largest, "a")
    assert none.reason == "no_defined_query"


def test_pooled_difference_resamples_both_sides_together() -> None:
    random = np.random.default_rng(4)
    views = np.full(30, 20)
    base = random.integers(0, 20, size=(30, 5))
    same = bootstrap_pooled_difference(PooledCounts(base, views), PooledCounts(base, views), largest, "a")
    assert (same.estimate, same.low, same.high) == (0, 0, 0)
    higher = PooledCounts(base + 1, views)
    shifted = bootstrap_pooled_difference(higher, PooledCounts(base, views), largest, "a")
    assert [shifted.estimate, shifted.low, shifted.high] == pytest.approx([0.05] * 3)


def test_pooled_difference_drops_a_query_that_either_side_lacks() -> None:
    new = PooledCounts([[1], [2], [3], [4]], [4, 0, 4, 4])
    base = PooledCounts([[1], [2], [3], [4]], [5, 5, 0, 5])
    difference = bootstrap_pooled_difference(new, base, largest, "a")
    assert (difference.n, difference.undefined) == (2, 2)
    assert difference.estimate == pytest.approx(5 / 8 - 5 / 10)


def test_misshapen_counts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2,\) of \(2,\)"):
        bootstrap_pooled(PooledCounts([1, 2], [4, 4]), largest, "a")
    with pytest.raises(ValueError, match=r"\(1, 2\) of \(2,\)"):
        bootstrap_pooled(PooledCounts([[1, 2]], [4, 4]), largest, "a")
    with pytest.raises(ValueError, match="pooled counts"):
        bootstrap_pooled_difference(PooledCounts([[1]], [4]), PooledCounts([[1], [2]], [4, 4]), largest, "a")


def test_interval_without_bounds_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="reason code"):
        Interval(0.5, NAN, NAN, 3)
    with pytest.raises(ValueError, match="reason code"):
        Interval(0.5, 0.4, 0.6, 3, reason="why")


@pytest.mark.parametrize("level", [0, 1, 1.5])
def test_level_outside_zero_to_one_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        percentile_bounds(np.array([1.0, 2.0]), level)


def test_undefined_replicates_are_refused() -> None:
    with pytest.raises(ValueError, match="undefined on a resample"):
        percentile_bounds(np.array([1.0, NAN]), 0.95)
