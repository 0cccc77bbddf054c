"""A metric of a user's own is computed, averaged and judged as a built-in one, whatever has failed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.measure.blocks import Member, compute, make_block
from pytest_invari.measure.measured import Measured
from pytest_invari.metrics import add_metrics, all_metrics, metric_names, parse_metric
from pytest_invari.metrics.arrays import PerQuery, query_arrays
from pytest_invari.metrics.custom import CustomMetric, RankedLists, own_metrics
from pytest_invari.metrics.metric import OwnMetric
from pytest_invari.observation.observe import observe
from pytest_invari.observation.plan import Plan, SubjectName
from pytest_invari.protocol import Candidate, Context, Ranking, Request
from pytest_invari.tasks.task import Task, TaskSet


def naive_contradictions(lists: RankedLists) -> list[float]:
    """GPI's lower bound: the mean over item pairs of the rarer preference's share; a tie is half of each."""
    values = []
    for views in lists.ranks.tolist():
        rarer = []
        for i, j in combinations(range(len(views[0])), 2):
            wins = [Fraction(1 + (view[i] < view[j]) - (view[i] > view[j]), 2) for view in views]
            rarer.append(min(sum(wins), len(views) - sum(wins)) / len(views))
        values.append(float(sum(rarer) / len(rarer)))
    return values


def naive_hits(lists: RankedLists) -> list[float]:
    """The share of views with a relevant item in the top; NaN of a query without any."""
    values = []
    for views, grades in zip(lists.ranks.tolist(), lists.relevance.tolist(), strict=True):
        hits = [
            any(r < (lists.k or 0) and g > 0 for r, g in zip(view, grades, strict=True)) for view in views
        ]
        values.append(
            float(Fraction(sum(hits), len(hits))) if any(grade > 0 for grade in grades) else float("nan")
        )
    return values


@contextmanager
def known(high: float = 1, **functions: Callable[[RankedLists], Any]) -> Iterator[None]:
    """These functions as metrics, from 0 to *high*; one called hits has a cutoff."""
    undo = add_metrics(
        own_metrics(
            {
                name: CustomMetric(
                    function, direction="lower", low=0, high=high, description=name, has_cutoff=name == "hits"
                )
                for name, function in functions.items()
            }
        )
    )
    try:
        yield
    finally:
        undo()


def own(name: str) -> OwnMetric:
    metric = parse_metric(name)
    assert isinstance(metric, OwnMetric)
    return metric


class Coarse:
    """Ranks by noisy grades, of which some are equal, and fails for some requests."""

    def __init__(self, seed: int, failing: float) -> None:
        self.seed, self.failing = seed, failing

    def rank(self, request: Request) -> Ranking:
        drawn = random.Random(f"{self.seed}{request.query_id}{request.ids}")
        if drawn.random() < self.failing:
            raise RuntimeError("asleep")
        return Ranking.from_scores(request, {item: float(drawn.randrange(3)) for item in request.ids})


def make_tasks(queries: int, k: int) -> TaskSet:
    tasks = []
    for query in range(queries):
        candidates = tuple(Candidate(f"i{item}", f"text {item}") for item in range(k))
        relevance = {"i0": 1.0, "i1": 2.0} if query % 3 else {}
        tasks.append(Task(f"q{query}", Context("films"), candidates, relevance, len(relevance)))
    return TaskSet.of("films", tasks)


@settings(max_examples=15, deadline=None)
@given(
    queries=st.integers(2, 9),
    k=st.integers(4, 6),
    views=st.integers(2, 5),
    seed=st.integers(0, 99),
    failing=st.sampled_from([0.0, 0.2]),
    on_failure=st.sampled_from(["strict", "drop", "random"]),
    ties=st.sampled_from(["broken", "half"]),
    interval=st.sampled_from(["bca", "percentile"]),
)
def test_one_that_computes_a_built_in_metric_has_its_values_and_interval(
    queries: int, k: int, views: int, seed: int, failing: float, on_failure: Any, ties: Any, interval: Any
) -> None:
    tasks = make_tasks(queries, k)
    plan = Plan("films", k, None, views, on_failure=on_failure, ties=ties, interval=interval)
    seen = observe(Coarse(seed, failing), tasks, plan.sample(tasks), show=False)
    measured = Measured(SubjectName("coarse", "films", k), plan, tasks, seen)
    with known(high=0.5, contradictions=naive_contradictions):
        assert_alike(measured, "contradictions", "gpi_lower_bound")
    # Of tied scores HR is a mean over their orders, which the naive one is not.
    if ties == "broken":
        with known(hits=naive_hits):
            assert_alike(measured, "hits@2", "hr@2")


def assert_alike(measured: Measured, mine: str, built_in: str) -> None:
    own, theirs = measured.metric(mine), measured.metric(built_in)
    assert isinstance(own, PerQuery)
    assert isinstance(theirs, PerQuery)
    np.testing.assert_array_equal(own.values, theirs.values)
    assert repr(measured.interval(mine)) == repr(measured.interval(built_in))


def test_it_is_called_for_some_queries_at_a_time() -> None:
    queries, views, items = 5, 500, 1000
    candidates = tuple(Candidate(f"{item:03}", "film") for item in range(items))
    order = [candidate.id for candidate in candidates]
    arrays = query_arrays("q", [order] * views, [order] * views)
    labels = np.full((views, items), -1, np.int16)
    members = [
        Member(place, Task(f"q{place}", Context("films"), candidates, {"007": 3.0}), arrays, labels)
        for place in range(queries)
    ]
    seen: list[tuple[str, ...]] = []

    def number(lists: RankedLists) -> Any:
        seen.append(lists.query_ids)
        assert lists.positions.dtype == lists.ranks.dtype == np.int64
        assert lists.relevance.sum(axis=1).tolist() == [3.0] * len(lists.query_ids)
        assert (lists.relevance.argmax(axis=1) == 7).all()
        return [int(query_id[1:]) / 10 for query_id in lists.query_ids]

    with known(number=number):
        found = compute(own("number"), make_block(members, views, items, "broken"))
    assert found.values.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert seen == [("q0", "q1"), ("q2", "q3"), ("q4",)]


def test_what_rounding_puts_beside_the_range_is_put_into_it() -> None:
    candidates = tuple(Candidate(item, "film") for item in "ab")
    order = ["a", "b"]
    member = Member(
        0, Task("q", Context("films"), candidates), query_arrays("q", [order], [order]), np.zeros((1, 2), int)
    )
    with known(over=lambda lists: [1 + 4e-16], under=lambda lists: [-4e-16]):
        block = make_block([member], 1, 2, "broken")
        assert compute(own("over"), block).values.tolist() == [1.0]
        assert compute(own("under"), block).values.tolist() == [0.0]


def test_metrics_are_known_until_their_run_ends() -> None:
    with known(outer=lambda lists: 0):
        with known(inner=lambda lists: 0):
            assert "inner" in metric_names()
            assert "outer" not in metric_names()
        assert list(all_metrics())[-1] == "outer"
        assert parse_metric("outer") == parse_metric("outer")
    assert "outer" not in metric_names()


@pytest.mark.parametrize("function", [max, lambda lists, k=3: 0, str])
def test_whatever_can_be_called_with_the_lists_is_taken(function: Any) -> None:
    CustomMetric(function, direction="lower", low=0, high=1, description="odd")
