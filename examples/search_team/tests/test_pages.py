"""What the team demands of its pages, beside the suite: an assertion of invariance, and one of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_invari import assert_permutation_invariant
from pytest_invari.data.taskfile import read_tasks
from team_search import TeamSearch

TASKS = Path(__file__).parents[1] / "tasks.jsonl"


def assert_every_query(study: Any, metric: str, at_least: float) -> None:
    """Fail when the metric of one query is below the bound, and name the worst; a mean may hide one."""
    values = study.frame(metric)[metric].dropna()
    assert len(values), f"{metric} of {study.name} is undefined for every query"
    low = values[values < at_least].sort_values()
    named = ", ".join(f"{query} {value:.2f}" for query, value in low.head(3).items())
    assert low.empty, f"{metric} of {study.reranker} is below {at_least} for {len(low)} queries: {named}"


def test_the_order_of_arrival_does_not_matter() -> None:
    """No list, not even a short one, is ranked in two ways."""
    assert_permutation_invariant(TeamSearch, read_tasks(TASKS))


def test_no_query_has_two_pages(invari: Any) -> None:
    """The mean in the suite could hide a query that is never the same."""
    assert_every_query(invari.study("team", tasks=TASKS, views=6), "loc", at_least=1.0)


def test_the_new_rule_was_worth_it(invari: Any) -> None:
    """The rule before kept products of equal score in the order in which they arrived."""
    team, previous = (invari.study(name, tasks=TASKS, views=6) for name in ("team", "previous"))
    team.assert_better_than(previous, "loc", by=0.2)
