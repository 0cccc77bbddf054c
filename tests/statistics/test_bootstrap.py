"""Intervals over queries: what they estimate, what they leave out, and what they share."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pytest_invari.statistics import (
    Interval,
    PooledCounts,
    Resamples,
    bootstrap_difference,
    bootstrap_mean,
    bootstrap_pooled,
    bootstrap_pooled_difference,
    bootstrap_sums,
    seeded_resamples,
)

NAN = float("nan")
# Below these a double has fewer digits than the comparisons ask for.
numbers = st.floats(-1e6, 1e6).map(lambda number: number if abs(number) > 1e-100 else 0.0)
shares = st.floats(0, 1, allow_subnormal=False)


def draws(count: int, replicates: int = 400) -> Resamples:
    return seeded_resamples(count, "a", replicates)


def largest(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    peak: NDArray[np.float64] = ratios.max(axis=-1)
    return peak


def all_resamples(count: int) -> Resamples:
    """Every one of the N^N ways to draw N queries."""
    rows = [
        [chosen.count(query) for query in range(count)]
        for chosen in itertools.product(range(count), repeat=count)
    ]
    return Resamples(count, len(rows), lambda: iter([np.array(rows)]))


def linear_quantile(ordered: list[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


@settings(max_examples=30, deadline=None)
@given(st.lists(numbers, min_size=2, max_size=12))
def test_percentile_interval_equals_the_naive_one(values: list[float]) -> None:
    resamples = draws(len(values), 40)
    interval = bootstrap_mean(values, resamples, method="percentile")
    means = sorted(
        math.fsum(weight * value for weight, value in zip(row, values, strict=True)) / len(values)
        for block in resamples.blocks()
        for row in block.tolist()
    )
    scale = max(map(abs, values))
    expected = [linear_quantile(means, share) for share in (0.025, 0.975)]
    assert interval.estimate == pytest.approx(math.fsum(values) / len(values), abs=1e-12 * scale)
    assert [interval.low, interval.high] == pytest.approx(expected, abs=1e-12 * scale)
    assert (interval.n, interval.undefined, interval.replicates) == (len(values), 0, 40)
    assert interval.method == "percentile"


def test_undefined_queries_keep_their_place_and_are_counted() -> None:
    holed = bootstrap_mean([0.1, NAN, 0.4, 0.7, NAN, 0.2, 0.9, 0.1], draws(8))
    assert (holed.n, holed.undefined) == (6, 2)
    assert holed.estimate == pytest.approx(0.4)
    weights = np.concatenate(list(draws(8).blocks()))[:, [0, 2, 3, 5, 6, 7]]
    means = weights @ [0.1, 0.4, 0.7, 0.2, 0.9, 0.1] / weights.sum(axis=1)
    assert holed.standard_error == pytest.approx(means.std(ddof=1) * math.sqrt(6 / 5))


def test_replicates_without_any_value_are_dropped_and_counted() -> None:
    # Each of 300 resamples misses four queries of a hundred with probability .96^100 = .017.
    values = [NAN] * 96 + [0.1, 0.2, 0.3, 0.4]
    interval = bootstrap_mean(values, draws(100, 300))
    weights = np.concatenate(list(draws(100, 300).blocks()))[:, 96:]
    assert interval.undefined_replicates == (weights.sum(axis=1) == 0).sum() > 0
    assert interval.defined
    assert 0.1 <= interval.low < interval.high <= 0.4


def test_too_many_replicates_without_a_value_leave_the_interval_undefined() -> None:
    # Here with probability .98^100 = .13.
    interval = bootstrap_mean([NAN] * 98 + [0.1, 0.2], draws(100, 300))
    assert (interval.reason, interval.n, interval.undefined) == ("undefined_replicates", 2, 98)
    assert interval.estimate == pytest.approx(0.15)
    assert interval.undefined_replicates > 0.05 * 300
    assert math.isnan(interval.low)
    assert math.isnan(interval.probability_at_most(0.1))


@pytest.mark.parametrize(
    ("values", "reason", "n", "undefined"),
    [
        ([NAN, NAN], "no_defined_query", 0, 2),
        ([0.5], "fewer_than_2_queries", 1, 0),
        ([NAN, 0.5], "fewer_than_2_queries", 1, 1),
    ],
)
def test_too_few_queries_have_no_bounds_but_a_reason(
    values: list[float], reason: str, n: int, undefined: int
) -> None:
    interval = bootstrap_mean(values, draws(len(values)))
    assert (interval.reason, interval.n, interval.undefined) == (reason, n, undefined)
    assert not interval.defined
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    assert interval.estimate == pytest.approx(0.5 if n else NAN, nan_ok=True)


@given(numbers, st.integers(2, 50))
@settings(deadline=None, max_examples=50)
def test_equal_values_give_exactly_that_value(value: float, count: int) -> None:
    interval = bootstrap_mean([value] * count, draws(count, 20))
    assert (interval.estimate, interval.low, interval.high) == (value, value, value)
    assert interval.standard_error == 0
    # A claim that is certain is still no nearer to certainty than the replicates are many.
    assert interval.probability_at_most(value) == interval.probability_at_least(value) == 20 / 21
    # What differs by more than rounding is another value.
    step = 1e-9 * max(abs(value), 1.0)
    assert interval.probability_at_most(value - step) == 1 / 21
    assert interval.probability_at_least(value + step) == pytest.approx(1 / 21)


def test_intervals_are_reproducible_and_named_by_their_seed() -> None:
    values = np.random.default_rng(0).random(40)
    first = bootstrap_mean(values, seeded_resamples(40, "films-K5", 300))
    seeded_resamples.cache_clear()
    assert bootstrap_mean(values, seeded_resamples(40, "films-K5", 300)) == first
    other = bootstrap_mean(values, seeded_resamples(40, "films-K6", 300))
    assert (other.estimate, other.low != first.low) == (first.estimate, True)


def test_standard_error_is_that_of_the_mean() -> None:
    # Resampling alone shows the standard deviation with n in the denominator: 1.7 % less at n = 30.
    values = np.random.default_rng(1).normal(size=30)
    interval = bootstrap_mean(values, draws(30, 40_000))
    assert interval.standard_error == pytest.approx(values.std(ddof=1) / math.sqrt(30), rel=0.01)


def test_every_resample_of_three_gives_the_variance_of_the_mean_exactly() -> None:
    values = np.array([0.0, 1.0, 5.0])
    interval = bootstrap_mean(values, all_resamples(3))
    # Over all 27 the variance of the mean is the population variance over 3; Σ(x−x̄)² = 14.
    exact = math.sqrt(14 / 3 / 3) * math.sqrt(27 / 26) * math.sqrt(3 / 2)
    assert interval.standard_error == pytest.approx(exact)


def test_a_higher_level_is_wider() -> None:
    values = np.random.default_rng(1).random(50)
    narrow, wide = (bootstrap_mean(values, draws(50), level=level) for level in (0.5, 0.95))
    assert wide.low < narrow.low < narrow.high < wide.high


@settings(max_examples=40, deadline=None)
@given(
    st.lists(shares, min_size=3, max_size=15),
    st.floats(0.1, 10) | st.floats(-10, -0.1),
    st.floats(-5, 5),
)
def test_intervals_follow_a_change_of_scale(values: list[float], factor: float, shift: float) -> None:
    given_values = np.array(values)
    plain = bootstrap_mean(given_values, draws(len(values)), bounds=(0, 1))
    bounds = tuple(sorted((shift, shift + factor)))
    scaled = bootstrap_mean(shift + factor * given_values, draws(len(values)), bounds=(bounds[0], bounds[1]))
    expected = sorted((shift + factor * plain.low, shift + factor * plain.high))
    assert [scaled.low, scaled.high] == pytest.approx(expected, abs=1e-7)
    assert scaled.method == plain.method


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_the_order_of_the_queries_does_not_matter_when_their_draws_move_along(data: st.DataObject) -> None:
    values = np.array(data.draw(st.lists(shares | st.just(NAN), min_size=3, max_size=10)))
    order = data.draw(st.permutations(range(len(values))))
    counts = np.concatenate(list(draws(len(values)).blocks())).astype(int)
    moved = Resamples(len(values), len(counts), lambda: iter([counts[:, order]]))
    one = bootstrap_mean(values, draws(len(values)), bounds=(0, 1))
    other = bootstrap_mean(values[list(order)], moved, bounds=(0, 1))
    assert (one.n, one.reason, one.method) == (other.n, other.reason, other.method)
    assert [one.low, one.high] == pytest.approx([other.low, other.high], abs=1e-7, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(st.lists(shares | st.sampled_from([0.0, 1.0]), min_size=2, max_size=20))
def test_bounds_stay_in_the_range_of_the_metric(values: list[float]) -> None:
    interval = bootstrap_mean(values, draws(len(values)), bounds=(0, 1))
    assert -1e-12 <= interval.low <= interval.estimate + 1e-12
    assert interval.estimate - 1e-12 <= interval.high <= 1 + 1e-12


# Differences


def test_paired_difference_sees_through_the_spread_between_queries() -> None:
    random = np.random.default_rng(3)
    base = random.normal(size=50)
    new = base + 0.1 + 0.01 * random.normal(size=50)
    difference = bootstrap_difference(new, base, draws(50))
    assert 0.09 < difference.low < difference.estimate < difference.high < 0.11
    assert difference == bootstrap_mean(new - base, draws(50))


def test_paired_difference_needs_a_value_on_both_sides() -> None:
    difference = bootstrap_difference([1.0, NAN, 3.0, 4.0], [1.0, 2.0, NAN, 2.0], draws(4))
    assert (difference.n, difference.undefined, difference.estimate) == (2, 2, 1.0)
    with pytest.raises(ValueError, match="same queries"):
        bootstrap_difference([1.0, 2.0], [1.0], draws(2))
    with pytest.raises(ValueError, match="one a query"):
        bootstrap_mean([[1.0, 2.0]], draws(1))
    with pytest.raises(ValueError, match="resamples of 3 queries do not fit values of 2"):
        bootstrap_mean([1.0, 2.0], draws(3))


def test_the_difference_of_two_means_is_that_of_their_replicates() -> None:
    # All statistics of one set of resamples are paired, so these replicates may be subtracted.
    random = np.random.default_rng(5)
    new, base = random.random(20), random.random(20)
    weights = np.concatenate(list(draws(20).blocks()))
    replicates = weights @ new / 20 - weights @ base / 20
    difference = bootstrap_difference(new, base, draws(20), method="percentile")
    assert [difference.low, difference.high] == pytest.approx(np.quantile(replicates, [0.025, 0.975]))


# Pooled statistics


def test_pooled_statistic_is_of_the_ratio_of_sums() -> None:
    numerators = np.array([[1, 3], [5, 5], [2, 0]])
    denominators = np.array([4, 10, 2])
    interval = bootstrap_pooled(
        PooledCounts(numerators, denominators), largest, draws(3, 50), method="percentile"
    )
    assert interval.estimate == 0.5
    weights = np.concatenate(list(draws(3, 50).blocks()))
    replicates = [(w @ numerators / (w @ denominators)).max() for w in weights]
    assert (interval.low, interval.high) == pytest.approx(tuple(np.quantile(replicates, [0.025, 0.975])))


def test_a_pooled_share_of_one_cell_has_the_interval_of_the_mean() -> None:
    hits = np.random.default_rng(6).integers(0, 21, 40)
    pooled = bootstrap_pooled(PooledCounts(hits[:, None], np.full(40, 20)), largest, draws(40))
    mean = bootstrap_mean(hits / 20, draws(40))
    assert [pooled.estimate, pooled.low, pooled.high, pooled.standard_error] == pytest.approx(
        [mean.estimate, mean.low, mean.high, mean.standard_error]
    )


def test_pooled_queries_without_views_are_counted() -> None:
    holed = PooledCounts([[1, 3], [0, 0], [5, 5], [1, 2]], [4, 0, 10, 4])
    interval = bootstrap_pooled(holed, largest, draws(4))
    assert (interval.n, interval.undefined, interval.estimate) == (3, 1, 10 / 18)
    assert bootstrap_pooled(PooledCounts([[1, 3]], [4]), largest, draws(1)).reason == "fewer_than_2_queries"
    none = bootstrap_pooled(PooledCounts(np.zeros((3, 2)), np.zeros(3)), largest, draws(3))
    assert none.reason == "no_defined_query"


def test_pooled_difference_resamples_both_sides_together() -> None:
    random = np.random.default_rng(4)
    views = np.full(30, 20)
    base = random.integers(0, 20, size=(30, 5))
    same = bootstrap_pooled_difference(
        PooledCounts(base, views), PooledCounts(base, views), largest, draws(30)
    )
    assert (same.estimate, same.low, same.high) == (0, 0, 0)
    higher = PooledCounts(base + 1, views)
    shifted = bootstrap_pooled_difference(higher, PooledCounts(base, views), largest, draws(30))
    assert [shifted.estimate, shifted.low, shifted.high] == pytest.approx([0.05] * 3)


def test_pooled_difference_leaves_out_a_query_that_either_side_lacks() -> None:
    new = PooledCounts([[1], [2], [3], [4]], [4, 0, 4, 4])
    base = PooledCounts([[1], [2], [3], [4]], [5, 5, 0, 5])
    difference = bootstrap_pooled_difference(new, base, largest, draws(4))
    assert (difference.n, difference.undefined) == (2, 2)
    assert difference.estimate == pytest.approx(5 / 8 - 5 / 10)


def test_misshapen_counts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2,\) of \(2,\)"):
        bootstrap_pooled(PooledCounts([1, 2], [4, 4]), largest, draws(2))
    with pytest.raises(ValueError, match=r"\(1, 2\) of \(2,\)"):
        bootstrap_pooled(PooledCounts([[1, 2]], [4, 4]), largest, draws(2))
    with pytest.raises(ValueError, match="pooled counts"):
        bootstrap_pooled_difference(
            PooledCounts([[1]], [4]), PooledCounts([[1], [2]], [4, 4]), largest, draws(1)
        )


def test_any_function_of_sums_has_an_interval() -> None:
    # The slope of a regression through moments: Σxy / Σx².
    random = np.random.default_rng(8)
    x = random.random(60)
    y = 2 * x + 0.1 * random.normal(size=60)
    interval = bootstrap_sums(
        np.stack([x * y, x * x], axis=1),
        lambda sums: sums[..., 0] / sums[..., 1],
        draws(60),
        defined=np.ones(60, bool),
    )
    assert interval.estimate == pytest.approx(x @ y / (x @ x))
    assert interval.low < 2 < interval.high


# The interval itself


def test_interval_without_bounds_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="reason code"):
        Interval(0.5, NAN, NAN, 3)
    with pytest.raises(ValueError, match="reason code"):
        Interval(0.5, 0.4, 0.6, 3, reason="why")


def test_an_interval_is_shown_and_compared_without_its_replicates() -> None:
    interval = bootstrap_mean([0.1, 0.5, 0.9], draws(3))
    assert "distribution" not in repr(interval)
    bare = Interval(
        interval.estimate, interval.low, interval.high, 3, method=interval.method,
        standard_error=interval.standard_error, replicates=400,
    )  # fmt: skip
    assert bare == interval
    assert math.isnan(bare.probability_at_least(0.5))


@pytest.mark.parametrize("level", [0, 1, 1.5])
def test_level_outside_zero_to_one_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        bootstrap_mean([0.1, 0.2], draws(2), level=level)
