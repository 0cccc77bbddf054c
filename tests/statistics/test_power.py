"""What a run can tell: the least effect that it finds, and how many queries a verdict needs."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest

from pytest_invari.statistics import (
    Interval,
    bootstrap_mean,
    minimum_detectable_effect,
    queries_needed,
    seeded_resamples,
)


def interval(estimate: float, error: float, n: int = 100) -> Interval:
    return Interval(estimate, estimate - 2 * error, estimate + 2 * error, n, standard_error=error)


def test_the_least_effect_is_found_four_times_in_five() -> None:
    effect = minimum_detectable_effect(0.05)
    assert effect == pytest.approx(2.8 * 0.05)
    # The interval clears the bound when the estimate is 1.96 standard errors away from it.
    assert NormalDist(effect, 0.05).cdf(1.96 * 0.05) == pytest.approx(0.2, abs=1e-3)


def test_queries_needed_is_the_formula() -> None:
    # n' = 100 · ((1.96 + 0.84) · 0.05 / 0.1)²
    assert queries_needed(interval(0.65, 0.05), 0.75) == 196


def test_queries_needed_are_more_than_there_are_and_none_on_the_bound() -> None:
    assert queries_needed(interval(0.6, 0.0001), 0.75) == 101
    assert queries_needed(interval(0.75, 0.05), 0.75) is None
    assert queries_needed(interval(0.75 - 1e-9, 0.05), 0.75) is None
    alone = Interval(0.6, math.nan, math.nan, 1, reason="fewer_than_2_queries")
    assert queries_needed(alone, 0.75) is None


def test_where_nothing_was_seen_the_exact_bound_must_reach_the_limit() -> None:
    found = bootstrap_mean([0.0] * 30, seeded_resamples(30, "a", 99), bounds=(0, 1))
    needed = queries_needed(found, 0.05)
    assert needed is not None
    enough = bootstrap_mean([0.0] * needed, seeded_resamples(needed, "a", 99), bounds=(0, 1))
    assert enough.high <= 0.05
    less = bootstrap_mean([0.0] * (needed - 1), seeded_resamples(needed - 1, "a", 99), bounds=(0, 1))
    assert less.high > 0.05


def test_a_guard_on_the_other_side_asks_for_nothing() -> None:
    found = bootstrap_mean([0.0] * 29 + [0.6], seeded_resamples(30, "a", 999), bounds=(0, 1))
    expected = math.ceil(30 * (minimum_detectable_effect(found.standard_error) / 0.01) ** 2)
    assert queries_needed(found, found.estimate - 0.01) == expected
