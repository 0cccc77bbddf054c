"""Verdicts: the golden decisions, the order of reasons, and how many queries would decide."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_invari.criteria import Criterion, Judgement, Limit, Place, decide, judge, queries_needed
from pytest_invari.metrics import parse_metric
from pytest_invari.statistics.interval import Interval

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "g20_gate_decisions.json").read_text())
WORDS = {"pass": "PASS", "fail": "FAIL", "undecided": "INCONCLUSIVE"}
SIDES: dict[str, Any] = {"<=": "at_most", ">=": "at_least"}
finite = st.floats(-10, 10, allow_nan=False)


def criterion(
    comparison: Any = "at_least", value: Any = 0.75, metric: str = "loc", **others: Any
) -> Criterion:
    return Criterion("name", parse_metric(metric), comparison, value, Place(Path("x.toml"), 1), **others)


def interval(low: float, high: float, n: int = 100, undefined: int = 0, error: float = math.nan) -> Interval:
    return Interval((low + high) / 2, low, high, n, undefined, standard_error=error)


def judged(
    criterion: Criterion, interval: Interval, min_queries: int = 30, max_undefined: float = 0.05, k: int = 10
) -> Judgement:
    return judge(criterion, interval, k=k, min_queries=min_queries, max_undefined=max_undefined)


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
    assert "29 queries are fewer than the 30" in found.reason


def test_too_few_queries_want_more_than_the_least_number_when_the_interval_is_wide() -> None:
    # n' = 20 · (2.8 · 0.1 / 0.05)²
    assert judged(criterion(), interval(0.5, 0.9, n=20, error=0.1)).n_needed == 628


def test_one_query_has_no_interval() -> None:
    alone = Interval(0.9, math.nan, math.nan, 1, reason="fewer_than_2_queries")
    assert judged(criterion(), alone, min_queries=1).verdict == "undecided"


@pytest.mark.parametrize(("undefined", "verdict"), [(5, "pass"), (6, "undecided")])
def test_too_many_queries_without_a_value_decide_nothing(undefined: int, verdict: str) -> None:
    assert judged(criterion(), interval(0.9, 0.95, n=100 - undefined, undefined=undefined)).verdict == verdict


def test_queries_needed_is_the_formula() -> None:
    # n' = 100 · ((1.96 + 0.84) · 0.05 / 0.1)²
    assert queries_needed(100, 0.65, 0.05, 0.75) == 196


def test_queries_needed_is_more_than_there_are_and_none_on_the_bound() -> None:
    assert queries_needed(100, 0.6, 0.0001, 0.75) == 101
    assert queries_needed(100, 0.75, 0.05, 0.75) is None
    assert queries_needed(100, 0.6, math.nan, 0.75) is None


def test_without_a_standard_error_the_intervals_width_is_used() -> None:
    found = judged(criterion(), interval(0.55, 0.75, n=100))
    assert found.n_needed == queries_needed(100, 0.65, 0.2 / (2 * 1.96), 0.75)


def test_a_criterion_knows_where_it_does_not_apply() -> None:
    asked = criterion(profiles=("paper",), needs_views=10)
    assert "belongs to profile paper" in asked.left_out_because("quick", 20)
    assert "needs 10 views" in asked.left_out_because("paper", 9)
    assert asked.left_out_because("paper", 10) == ""
    assert "exactly 20 views" in criterion(only_at_views=20).left_out_because("quick", 50)
