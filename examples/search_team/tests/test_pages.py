"""What the team demands of its rerankers beside the suite, in ordinary tests."""

from __future__ import annotations

from pathlib import Path

from pytest_invari import Studies, assert_permutation_invariant
from pytest_invari.tasks.taskfile import read_tasks
from team_criteria import every_query
from team_search import TeamSearch

TASKS = Path(__file__).parents[1] / "tasks.jsonl"


def test_the_order_of_arrival_does_not_matter() -> None:
    """No list, not even a short one, is ranked in two ways."""
    assert_permutation_invariant(TeamSearch, read_tasks(TASKS))


def test_no_query_has_two_pages(invari: Studies) -> None:
    """An assertion of the team's own, on the figures of each query."""
    every_query(invari.study("team", tasks=TASKS, views=6), "loc", at_least=1.0)


def test_the_new_rule_was_worth_it(invari: Studies) -> None:
    """The rule before kept products of equal score in the order in which they arrived."""
    team, previous = (invari.study(name, tasks=TASKS, views=6) for name in ("team", "previous"))
    team.assert_better_than(previous, "loc", by=0.2)
