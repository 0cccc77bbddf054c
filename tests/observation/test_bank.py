"""Banks of named views: each view is ranked once, whatever bank or role it is asked for in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest

from pytest_invari.errors import InvariError
from pytest_invari.measure.subject import Subject
from pytest_invari.observation.plan import Plan
from pytest_invari.observation.views import bank_views
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.tasks.task import TaskSet

if TYPE_CHECKING:
    from tests.measure.conftest import ById, Project

MINE = RerankerSpec("mine")
BANK = ("canonical", "13", "17", "19")
ROLES: Any = {"probe": BANK[:2], "target": BANK[2:]}


@pytest.fixture
def plan(project: Project) -> Plan:
    project.write_tasks(k=7)
    return project.plan(k=7, views=0, bank=BANK)


def shown(tasks: TaskSet, *names: str) -> list[tuple[str, tuple[str, ...]]]:
    """Query and order of every view of these names, in the order in which they are ranked."""
    return [
        (task.query_id, view.order)
        for task in tasks.tasks
        for view in bank_views(task.query_id, task.ids, names)
    ]


def test_a_bank_is_shown_in_its_order_and_kept_under_its_names(
    project: Project, plan: Plan, by_id: type[ById]
) -> None:
    reranker = by_id()
    runner = project.runner({"mine": reranker})
    measured = runner.measure(Subject(MINE, plan))
    assert reranker.shown == shown(runner.tasks(Subject(MINE, plan)), *BANK)
    assert [seen.view for seen in measured.observations] == [*BANK] * 8
    assert measured.ranks.shape == (8, 4, 7)
    [part] = project.records.glob("*/views/*.parquet")
    assert pyarrow.parquet.ParquetFile(part).read()["view"].to_pylist() == [*BANK] * 8


def test_a_bank_that_grows_ranks_its_new_views_only(project: Project, plan: Plan, by_id: type[ById]) -> None:
    first, second = by_id(), by_id()
    project.runner({"mine": first}).measure(Subject(MINE, plan))
    runner = project.runner({"mine": second})
    grown = replace(plan, views=0, bank=("23", *BANK, "29"))
    measured = runner.measure(Subject(MINE, grown))
    assert second.shown == shown(runner.tasks(Subject(MINE, plan)), "23", "29")
    assert [seen.view for seen in measured.observations[:6]] == ["23", *BANK, "29"]
    assert [seen.from_records for seen in measured.observations[:6]] == [False, *[True] * 4, False]
    third = by_id()
    project.runner({"mine": third}).measure(Subject(MINE, plan))
    assert third.shown == []


def test_the_canonical_view_is_shared_with_plans_without_a_bank(
    project: Project, plan: Plan, by_id: type[ById]
) -> None:
    first, second = by_id(), by_id()
    project.runner({"mine": first}).measure(Subject(MINE, plan))
    drawn = project.plan(k=7, views=3, include_canonical=True)
    project.runner({"mine": second}).measure(Subject(MINE, drawn))
    assert len(second.shown) == 8 * 2


@pytest.mark.parametrize("keep", [True, False])
def test_roles_rank_nothing_again(project: Project, plan: Plan, by_id: type[ById], keep: bool) -> None:
    reranker = by_id()
    runner = project.runner({"mine": reranker}, keep=keep)
    plans = [
        plan,
        replace(plan, **ROLES),
        replace(plan, **ROLES, interval="percentile"),
        replace(plan, probe=BANK[:3], target=BANK[2:]),
    ]
    found = [runner.measure(Subject(MINE, each)) for each in plans]
    assert len(reranker.shown) == 8 * 4
    assert [each.plan for each in found] == plans
    assert all(each.observations == found[0].observations for each in found)


def test_a_bank_is_replayed_and_a_view_that_is_missing_is_named(
    project: Project, plan: Plan, by_id: type[ById]
) -> None:
    measured = project.runner({"mine": by_id()}).measure(Subject(MINE, plan))
    again = project.runner(replay=True).measure(Subject(MINE, replace(plan, **ROLES)))
    assert again.observations == measured.observations
    with pytest.raises(InvariError) as caught:
        project.runner(replay=True).measure(Subject(MINE, replace(plan, views=0, bank=(*BANK, "23"))))
    assert "lacks 8 of 40 views, the first of query 'query0', view '23' (the order of seed 23); " in str(
        caught.value
    )


def test_lists_too_short_for_a_bank_are_refused_before_anything_is_ranked(
    project: Project, by_id: type[ById]
) -> None:
    project.write_tasks(k=5)
    reranker = by_id()
    runner = project.runner({"mine": reranker})
    short = project.plan(k=5, views=0, bank=BANK)
    for refused in (runner.check, runner.measure):
        with pytest.raises(InvariError) as caught:
            refused(Subject(MINE, short))
        assert str(caught.value) == (
            "lists of 5 have 120 orders, too few for a bank of 4 views, whose orders are drawn "
            "independently: 6 pairs of views would each share an order in one query of 120; use longer lists "
            "or fewer views"
        )
    assert reranker.shown == []
