"""Verdicts: the golden decisions, the order of reasons, and how many queries would decide."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_invari.criteria.criterion import Place
from pytest_invari.criteria.judgement import ERROR, Judgement, Limit, decide, judge, with_multiplicity
from pytest_invari.criteria.metric import MetricCriterion
from pytest_invari.metrics import parse_metric
from pytest_invari.statistics import Interval, bootstrap_mean, seeded_resamples

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "g20_gate_decisions.json").read_text())
WORDS = {"pass": "PASS", "fail": "FAIL", "undecided": "INCONCLUSIVE"}
SIDES: dict[str, Any] = {"<=": "at_most", ">=": "at_least"}
# Apart by more than rounding, or equal.
finite = st.integers(-1000, 1000).map(lambda number: number / 100)


def criterion(
    comparison: Any = "at_least", value: Any = 0.75, metric: str = "loc", **others: Any
) -> MetricCriterion:
    return MetricCriterion(
        name="name",
        place=Place(Path("x.toml"), 1),
        metric=parse_metric(metric),
        comparison=comparison,
        value=value,
        **others,
    )


def interval(low: float, high: float, n: int = 100, undefined: int = 0, error: float = math.nan) -> Interval:
    return Interval((low + high) / 2, low, high, n, undefined, standard_error=error)


def measured_between(low: float, high: float) -> Interval:
    """The interval of the mean of 100 values spread evenly."""
    return bootstrap_mean(np.linspace(low, high, 100), seeded_resamples(100, "evenly"))


def judged(
    criterion: MetricCriterion,
    interval: Interval,
    min_queries: int = 30,
    max_undefined: float = 0.05,
    k: int = 10,
) -> Judgement:
    return judge(criterion.limit(k), interval, min_queries=min_queries, max_undefined=max_undefined)


@pytest.mark.parametrize(
    ("case", "outcome"), list(zip(GOLDEN["inputs"]["cases"], GOLDEN["expected"]["outcome"], strict=True))
)
def test_decisions_are_the_golden_ones(case: dict[str, Any], outcome: str) -> None:
    low, high = (math.nan if case[end] is None else case[end] for end in ("low", "high"))
    assert WORDS[decide(low, high, Limit(SIDES[case["op"]], case["threshold"]))] == outcome


@given(finite, finite, finite, st.booleans())
def test_at_least_mirrors_at_most(one: float, other: float, bound: float, strict: bool) -> None:
    low, high = sorted((one, other))
    assert decide(low, high, Limit("at_least", bound, strict)) == decide(
        -high, -low, Limit("at_most", -bound, strict)
    )


@given(finite, finite, finite)
def test_a_decision_is_right_for_every_value_of_the_interval(one: float, other: float, bound: float) -> None:
    low, high = sorted((one, other))
    verdict = decide(low, high, Limit("at_most", bound))
    assert (verdict == "pass") == all(value <= bound for value in (low, high))
    assert (verdict == "fail") == all(value > bound for value in (low, high))


def test_equality_does_not_meet_a_strict_limit() -> None:
    assert decide(0.0, 0.0, Limit("at_least", 0.0, strict=True)) == "fail"
    assert decide(0.0, 0.1, Limit("at_least", 0.0, strict=True)) == "undecided"
    assert decide(0.01, 0.1, Limit("at_least", 0.0, strict=True)) == "pass"


@pytest.mark.parametrize(
    ("comparison", "value", "metric", "low", "high", "verdict"),
    [
        ("not_worse_than", 0.02, "ndcg@5", -0.02, 0.01, "pass"),
        ("not_worse_than", 0.02, "ndcg@5", -0.09, -0.03, "fail"),
        ("not_worse_than", 0.02, "ndcg@5", -0.03, 0.01, "undecided"),
        ("not_worse_than", 0.02, "gpi", -0.01, 0.02, "pass"),
        ("not_worse_than", 0.02, "gpi", 0.03, 0.09, "fail"),
        ("better_than", 0.0, "loc", 0.01, 0.2, "pass"),
        ("better_than", 0.0, "loc", 0.0, 0.0, "fail"),
        ("better_than", 0.0, "gpi", -0.2, -0.01, "pass"),
        ("better_than", 0.0, "gpi", 0.0, 0.0, "fail"),
        ("better_than", 0.1, "loc", 0.1, 0.2, "pass"),
        ("better_than", 0.1, "gpi", -0.2, -0.1, "pass"),
        ("better_than", 0.1, "gpi", -0.05, 0.1, "fail"),
    ],
)
def test_a_difference_is_judged_in_the_metrics_better_direction(
    comparison: Any, value: float, metric: str, low: float, high: float, verdict: str
) -> None:
    assert judged(criterion(comparison, value, metric, baseline="x"), interval(low, high)).verdict == verdict


def test_k_as_a_bound_is_the_list_length() -> None:
    calls = criterion("at_most", "k", "calls")
    assert judged(calls, interval(10, 10), k=10).verdict == "pass"
    assert judged(calls, interval(10, 10), k=9).verdict == "fail"


@pytest.mark.parametrize("undefined", [0, 40])
def test_nothing_measured_fails_with_the_reason(undefined: int) -> None:
    nothing = Interval(math.nan, math.nan, math.nan, 0, undefined, reason="no_defined_query")
    found = judged(criterion(), nothing)
    assert found.verdict == "fail"
    assert found.reason.startswith("nothing measured")


def test_too_few_queries_decide_nothing_and_say_how_many_would() -> None:
    found = judged(criterion(), interval(0.9, 0.95, n=29))
    assert (found.verdict, found.n_needed) == ("undecided", 30)
    assert "29 queries have a value, fewer than the 30" in found.reason


def test_too_few_queries_want_more_than_the_least_number_when_the_interval_is_wide() -> None:
    # n' = 20 · (2.8 · 0.1 / 0.05)²
    assert judged(criterion(), interval(0.5, 0.9, n=20, error=0.1)).n_needed == 628


@pytest.mark.parametrize(
    ("error", "undefined", "words"),
    [
        (0.1, 0, "more than 100,000 queries would be needed to decide"),
        (0.005, 0, "about 78,400 queries would decide"),
        (0.1, 1, "more than 100,000 queries with a value would be needed to decide"),
    ],
)
def test_a_number_of_queries_that_nobody_has_is_told_by_its_size(
    error: float, undefined: int, words: str
) -> None:
    asked = criterion(value=0.7005)
    found = judged(asked, interval(0.6, 0.8, n=100, undefined=undefined, error=error))
    line = asked.wording(found, k=10, baseline="", min_queries=30).line
    assert line.endswith(f"; {words}")
    assert found.n_needed == round(100 * (2.8 * error / 0.0005) ** 2)


def test_one_query_has_no_interval() -> None:
    alone = Interval(0.9, math.nan, math.nan, 1, reason="fewer_than_2_queries")
    assert judged(criterion(), alone, min_queries=1).verdict == "undecided"


@pytest.mark.parametrize(("undefined", "verdict"), [(5, "pass"), (6, "undecided")])
def test_too_many_queries_without_a_value_decide_nothing(undefined: int, verdict: str) -> None:
    assert judged(criterion(), interval(0.9, 0.95, n=100 - undefined, undefined=undefined)).verdict == verdict


@pytest.mark.parametrize(("low", "high", "p_fail"), [(0.5, 0.7, 0.0), (0.8, 0.9, 1.0)])
def test_the_p_value_of_failing_counts_the_replicates_that_keep_to_the_limit(
    low: float, high: float, p_fail: float
) -> None:
    found = judged(criterion(), measured_between(low, high))
    assert found.p_fail == pytest.approx(p_fail, abs=0.002)
    assert judged(criterion(comparison="at_most"), measured_between(low, high)).p_fail == pytest.approx(
        1 - p_fail, abs=0.002
    )


def test_a_verdict_fails_exactly_where_the_p_value_is_below_one_side_of_the_interval() -> None:
    for shift in np.linspace(-0.1, 0.1, 41):
        found = judged(criterion(), measured_between(0.65 + shift, 0.75 + shift))
        assert (found.verdict == "fail") == (found.p_fail < ERROR)


def test_what_can_be_detected_is_told() -> None:
    assert judged(criterion(), interval(0.7, 0.8, error=0.02)).detectable == pytest.approx(2.8 * 0.02)


def failure(p_fail: float) -> Judgement:
    return Judgement("fail", 0.75, 0.7, 0.6, 0.74, 100, p_fail=p_fail)


def test_a_failure_that_many_criteria_make_likely_is_left_undecided() -> None:
    alone = failure(0.01)
    assert with_multiplicity(alone, [0.01], of=1) is alone
    assert with_multiplicity(alone, [0.01, 0.9], of=2) is alone
    found = with_multiplicity(alone, [0.9, 0.01, 0.8], of=3)
    assert found.verdict == "undecided"
    assert found.reason == (
        "multiplicity: with 3 criteria one such failure may be chance (p = 0.01, adjusted 0.03, more than "
        "0.025)"
    )
    assert replace(found, verdict="fail", reason="") == alone


def test_criteria_that_fail_together_help_each_other() -> None:
    # By Holm the second smallest of three is doubled only.
    assert with_multiplicity(failure(0.012), [0.001, 0.012, 0.9], of=3).verdict == "fail"
    # A family of three in a subject of six has half of the error.
    assert with_multiplicity(failure(0.012), [0.001, 0.012, 0.9], of=6).verdict == "undecided"


def test_a_criterion_knows_where_it_does_not_apply() -> None:
    asked = criterion(profiles=("paper",), needs_views=10)
    assert "belongs to profile paper" in asked.left_out_because("quick", 20)
    assert "needs 10 views" in asked.left_out_because("paper", 9)
    assert asked.left_out_because("paper", 10) == ""
    assert "exactly 20 views" in criterion(only_at_views=20).left_out_because("quick", 50)


def test_an_end_that_equals_the_bound_but_for_rounding_keeps_to_it() -> None:
    assert decide(0.5, 0.8500000000000001, Limit("at_most", 0.85)) == "pass"
    assert decide(0.36000000000000004, 0.5, Limit("at_most", 0.36)) == "undecided"
    assert decide(0.5, 0.7500000000000001, Limit("at_least", 0.75)) == "undecided"


def test_replicates_that_tie_at_the_bound_but_for_rounding_all_count() -> None:
    # Means of 18ths: many replicates are exactly 0.85 = 153/180 in truth, and next to it in binary.
    values = np.array([10, 15, 18, 18, 12, 16, 17, 15, 18, 14] * 3) / 18
    found = bootstrap_mean(values, seeded_resamples(30, "eighteenths"))
    draws = np.concatenate(list(seeded_resamples(30, "eighteenths").blocks()))
    exact = np.sort(draws @ np.round(values * 18).astype(int))
    assert (exact == 459).sum() > 20
    assert found.distribution is not None
    for value in (459, 470):
        whole = bootstrap_mean(np.round(values * 18), seeded_resamples(30, "eighteenths"))
        assert found.probability_at_most(value / 540) == pytest.approx(whole.probability_at_most(value / 30))
        assert found.probability_at_least(value / 540) == pytest.approx(
            whole.probability_at_least(value / 30)
        )


def test_queries_that_can_have_no_value_are_excused() -> None:
    few = interval(0.9, 0.95, n=80, undefined=20)
    assert judged(criterion(), few).verdict == "undecided"
    found = judge(criterion().limit(10), few, min_queries=30, max_undefined=0.05, excused=18)
    assert found.verdict == "pass"
    found = judge(criterion().limit(10), few, min_queries=30, max_undefined=0.05, excused=10)
    assert found.reason == "10 of 90 queries have no value, more than max_undefined = 0.05"
