"""Bounds and p-values from replicates, against SciPy, against naive arithmetic, and against each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from statistics import NormalDist, fmean

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pytest_invari.criteria.judgement import Limit, decide
from pytest_invari.statistics import Resamples, bootstrap_mean, seeded_resamples
from pytest_invari.statistics.distribution import BCa, Percentile, acceleration, bias_correction

NORMAL = NormalDist()
# As many queries as make t normal and the widening nothing.
PLAIN = 10**12
shares = st.floats(0, 1)
# Sums of these are exact, so that replicates are either equal or clearly different.
steps = st.integers(0, 1024).map(lambda number: number / 1024)


def jackknife(values: NDArray[np.float64], statistic: Callable[..., float]) -> NDArray[np.float64]:
    return np.array([statistic(np.delete(values, place)) for place in range(len(values))])


@pytest.mark.parametrize("statistic", [np.mean, np.median, np.std], ids=lambda each: each.__name__)
@pytest.mark.parametrize("seed", range(3))
def test_bca_without_widening_is_scipys(statistic: Callable[..., float], seed: int) -> None:
    values = np.random.default_rng(seed).lognormal(size=40)
    theirs = scipy.stats.bootstrap((values,), statistic, n_resamples=2999, method="BCa", rng=seed)
    replicates = np.sort(theirs.bootstrap_distribution)
    ours = BCa(
        replicates,
        bias_correction(replicates, float(statistic(values))),
        acceleration(jackknife(values, statistic)),
        PLAIN,
    )
    low, high = theirs.confidence_interval
    assert (ours.quantile(0.025), ours.quantile(0.975)) == pytest.approx((low, high), rel=1e-6)


def test_intervals_of_a_mean_agree_with_scipys_but_for_the_draws() -> None:
    values = np.random.default_rng(4).exponential(size=400)
    interval = bootstrap_mean(values, seeded_resamples(400, "a", 4000))
    theirs = scipy.stats.bootstrap((values,), np.mean, n_resamples=4000, method="BCa", rng=1)
    low, high = theirs.confidence_interval
    # Bounds of 4,000 draws differ by some 4 % of a standard error.
    assert interval.low == pytest.approx(low, abs=0.2 * interval.standard_error)
    assert interval.high == pytest.approx(high, abs=0.2 * interval.standard_error)


def test_acceleration_of_a_mean_has_its_closed_form() -> None:
    values = np.random.default_rng(0).lognormal(size=25)
    distances = values - values.mean()
    closed = (distances**3).sum() / (6 * (distances**2).sum() ** 1.5)
    assert acceleration(jackknife(values, np.mean)) == pytest.approx(closed)
    assert acceleration(np.full(5, 0.3)) == 0


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20))
def test_acceleration_is_at_most_a_sixth(values: list[float]) -> None:
    assert abs(acceleration(np.array(values))) <= 1 / 6 + 1e-9


def test_bias_counts_ties_half_and_rounding_as_a_tie() -> None:
    replicates = np.array([0.1, 0.2, 0.3, 0.3 + 1e-17, np.nextafter(0.3, 1), 0.4])
    assert bias_correction(replicates, 0.3) == pytest.approx(NORMAL.inv_cdf((2 + 1.5) / 6))
    # One-sided replicates would make it infinite.
    assert bias_correction(np.array([0.1, 0.2, 0.3]), 0.5) == pytest.approx(NORMAL.inv_cdf(3 / 4))


def all_of_three() -> NDArray[np.int_]:
    """Every one of the 27 ways to draw three queries."""
    rows = [[chosen.count(place) for place in range(3)] for chosen in itertools.product(range(3), repeat=3)]
    return np.array(rows)


def t_of_2(probability: float) -> float:
    """The quantile of Student's t with two degrees of freedom, which has a closed form."""
    a = 2 * probability - 1
    return a * math.sqrt(2 / (1 - a * a))


def naive_bound(values: list[float], probability: float) -> float:
    """The bound of three values by all 27 resamples, in plain arithmetic."""
    estimate = fmean(values)
    means = sorted(fmean(chosen) for chosen in itertools.product(values, repeat=3))
    ties = sum(abs(mean - estimate) < 1e-9 for mean in means)
    below = sum(mean < estimate - 1e-9 for mean in means)
    z0 = NORMAL.inv_cdf((below + ties / 2) / 27)
    thirds = [fmean(values[:place] + values[place + 1 :]) for place in range(3)]
    away = [fmean(thirds) - each for each in thirds]
    a = sum(each**3 for each in away) / (6 * sum(each**2 for each in away) ** 1.5)
    u = z0 + t_of_2(probability) * math.sqrt(3 / 2)
    place = 26 * NORMAL.cdf(z0 + u / (1 - a * u))
    first = min(25, math.floor(place))
    return means[first] + (place - first) * (means[first + 1] - means[first])


@pytest.mark.parametrize("values", [[0.0, 1.0, 5.0], [0.2, 0.3, 0.35], [1.0, 1.0, 0.0], [-2.0, 7.0, 8.0]])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_all_resamples_of_three_give_the_bounds_by_hand(values: list[float], level: float) -> None:
    resamples = Resamples(3, 27, lambda: iter([all_of_three()]))
    interval = bootstrap_mean(values, resamples, level=level)
    expected = [naive_bound(values, (1 - level) / 2), naive_bound(values, (1 + level) / 2)]
    assert [interval.low, interval.high] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n", [5, 30, 300])
def test_few_queries_widen_by_t_and_by_n_over_n_minus_1(n: int) -> None:
    normal = np.array([NORMAL.inv_cdf(place / 20_000) for place in range(1, 20_000)])
    expected = scipy.stats.t.ppf(0.975, n - 1) * math.sqrt(n / (n - 1))
    assert BCa(normal, 0.0, 0.0, n).quantile(0.975) == pytest.approx(expected, rel=1e-2)


# P-values


@settings(max_examples=60, deadline=None)
@given(
    st.lists(steps, min_size=3, max_size=20, unique=True),
    st.floats(0.002, 0.4),
)
def test_the_p_value_of_a_bound_is_its_own(values: list[float], tail: float) -> None:
    interval = bootstrap_mean(values, seeded_resamples(len(values), "a", 999), level=1 - 2 * tail)
    distribution = interval.distribution
    assert isinstance(distribution, BCa)
    replicates = distribution.replicates
    # A bound beyond the replicates is the outermost one of them.
    if replicates[0] < interval.low and (np.count_nonzero(replicates == interval.low) < 2):
        assert interval.probability_at_most(interval.low) == pytest.approx(max(tail, 1 / 1000), abs=1e-6)
    if interval.high < replicates[-1] and (np.count_nonzero(replicates == interval.high) < 2):
        assert interval.probability_at_least(interval.high) == pytest.approx(max(tail, 1 / 1000), abs=1e-6)


def test_the_p_value_of_a_bound_is_a_fortieth() -> None:
    values = np.random.default_rng(2).lognormal(size=50)
    interval = bootstrap_mean(values, seeded_resamples(50, "a"))
    assert interval.probability_at_most(interval.low) == pytest.approx(0.025, abs=1e-9)
    assert interval.probability_at_least(interval.high) == pytest.approx(0.025, abs=1e-9)
    paper = bootstrap_mean(values, seeded_resamples(50, "a"), method="percentile")
    assert paper.probability_at_most(paper.low) == pytest.approx(0.025, abs=2e-4)
    assert paper.probability_at_least(paper.high) == pytest.approx(0.025, abs=2e-4)


def test_p_values_invert_the_formula() -> None:
    replicates = np.sort(np.random.default_rng(3).normal(size=999))
    found = BCa(replicates, 0.2, 0.05, PLAIN)
    value = 0.5 * (replicates[699] + replicates[700])
    y = NORMAL.inv_cdf(699.5 / 998) - 0.2
    assert found.at_most(float(value)) == pytest.approx(NORMAL.cdf(y / (1 + 0.05 * y) - 0.2), abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(shares | st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=12),
    shares | st.sampled_from([0.0, 0.5, 1.0]),
)
def test_a_verdict_and_its_p_value_agree(values: list[float], bound: float) -> None:
    interval = bootstrap_mean(values, seeded_resamples(len(values), "a", 999), bounds=(0, 1))
    at_most = decide(interval.low, interval.high, Limit("at_most", bound))
    at_least = decide(interval.low, interval.high, Limit("at_least", bound))
    if abs(interval.low - bound) > 1e-9:
        assert (at_most == "fail") == (interval.probability_at_most(bound) < 0.025)
    if abs(interval.high - bound) > 1e-9:
        assert (at_least == "fail") == (interval.probability_at_least(bound) < 0.025)


def test_p_values_rise_with_the_value_and_keep_off_0_and_1() -> None:
    values = np.random.default_rng(5).lognormal(size=12)
    interval = bootstrap_mean(values, seeded_resamples(12, "a", 199))
    grid = np.linspace(-5, 20, 400)
    rising = [interval.probability_at_most(value) for value in grid]
    assert rising == sorted(rising)
    assert (rising[0], rising[-1]) == (1 / 200, 199 / 200)
    falling = [interval.probability_at_least(value) for value in grid]
    assert falling == sorted(falling, reverse=True)
    assert (falling[0], falling[-1]) == pytest.approx((199 / 200, 1 / 200))


def test_tied_replicates_count_for_either_claim() -> None:
    found = BCa(np.array([0.0] * 500 + [1.0] * 499), 0.0, 0.0, PLAIN)
    assert found.at_most(0.0) + found.at_least(0.0) > 1
    assert found.at_most(0.0) == pytest.approx(0.5, abs=1e-2)


def test_the_paper_counts_the_replicates_on_the_wrong_side() -> None:
    found = Percentile(np.array([-0.1, 0.0, 0.0, 0.2, 0.3]))
    assert found.at_most(0.0) == pytest.approx(4 / 6)
    assert found.at_least(0.0) == pytest.approx(5 / 6)
    assert found.at_most(-1.0) == pytest.approx(1 / 6)


def test_an_acceleration_that_runs_out_ends_at_the_outermost_replicate() -> None:
    replicates = np.linspace(0, 1, 101)
    found = BCa(replicates, 3.0, 1 / 6, 5)
    assert found.quantile(0.999) == 1.0
    assert BCa(replicates, -3.0, -1 / 6, 5).quantile(0.001) == 0.0
    assert found.at_most(2.0) == pytest.approx(101 / 102)
    assert found.at_least(2.0) == pytest.approx(1 / 102)
    assert found.at_most(0.01) == pytest.approx(1 / 102)
