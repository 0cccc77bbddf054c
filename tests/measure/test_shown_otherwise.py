"""What a plan may show otherwise: other labels, hidden ids, and a view that is asked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_invari.measure.subject import Subject
from pytest_invari.metrics.arrays import PerQuery
from pytest_invari.protocol import LabelBinding, Ranking, Request
from pytest_invari.registry.build import Build
from pytest_invari.registry.spec import RerankerSpec
from tests.measure.conftest import ById

if TYPE_CHECKING:
    from tests.measure.conftest import Project

MINE = RerankerSpec("mine")


class ByLabel:
    """Puts first what bears the first label."""

    def __init__(self, label_binding: LabelBinding) -> None:
        self.label_binding = label_binding

    def rank(self, request: Request) -> Ranking:
        labels = dict(zip(request.ids, request.label_indices, strict=True))
        return Ranking.from_order(request, sorted(request.ids, key=labels.__getitem__))


def by_label(build: Build) -> ByLabel:
    """A factory, as a model's scorer is made."""
    return ByLabel(build.labels)


def test_a_model_that_follows_its_labels_is_found_out_by_redrawing_them(project: Project) -> None:
    spec = RerankerSpec.parse(f"{__name__}:by_label")
    runner = project.runner({}, keep=True)
    bound = runner.measure(Subject(spec, project.plan()))
    redrawn = runner.measure(Subject(spec, replace(project.plan(), labels="redrawn")))
    assert bound.interval("loc").estimate == 1.0
    assert abs(redrawn.interval("loc").estimate) < 0.3
    assert redrawn.interval("label_agreement_gap").estimate == 1.0
    assert len(list(project.records.iterdir())) == 2


def test_hidden_ids_undo_what_sorting_by_id_buys(project: Project) -> None:
    reranker = ById()
    runner = project.runner({"mine": reranker})
    assert runner.measure(Subject(MINE, project.plan())).interval("loc").estimate == 1.0
    blind = runner.measure(Subject(MINE, replace(project.plan(), blind_ids=True)))
    assert abs(blind.interval("loc").estimate) < 0.3
    assert not {item for _, shown in reranker.shown[-8:] for item in shown} & set(blind.observations[0].shown)
    assert {item for seen in blind.observations for item in seen.ranking.order} == {
        item for seen in blind.observations for item in seen.shown
    }


def test_controls_that_know_the_ids_keep_them(project: Project) -> None:
    runner = project.runner({})
    oracle = RerankerSpec("oracle")
    shown, blind = (
        runner.measure(Subject(oracle, replace(project.plan(), blind_ids=hidden))) for hidden in (False, True)
    )
    assert shown.interval("ndcg@2") == blind.interval("ndcg@2")


class Crowded(ById):
    """Steady alone, and otherwise in a batch: what batching does to floating point, made large."""

    batch_requests = 7

    def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        if len(requests) == 1:
            return [self.rank(requests[0])]
        return [Ranking.from_order(each, sorted(each.ids, reverse=len(requests) == 3)) for each in requests]


def test_a_view_is_asked_again_alone_and_in_a_batch(project: Project) -> None:
    plan = replace(project.plan(), repeats=3)
    steady = ById()
    measured = project.runner({"mine": steady}).measure(Subject(MINE, plan))
    assert len(measured.observations) == 8 * plan.views
    assert len(steady.requests) == 8 * plan.views + 3 + 3
    assert [seen.view.rpartition(".")[2] for seen in measured.repeats] == ["alone"] * 3 + ["batch"] * 3
    assert measured.interval("repeat_difference").estimate == 0.0
    assert measured.interval("calls").estimate == 2.0


def test_what_a_batch_changes_is_not_taken_for_an_effect_of_order(project: Project) -> None:
    measured = project.runner({"mine": Crowded()}).measure(Subject(MINE, replace(project.plan(), repeats=3)))
    # In each pair of the three answers all items are turned round, or none are.
    assert measured.interval("repeat_difference").estimate == pytest.approx(2 / 3)
    assert measured.interval("loc").estimate == 1.0


def test_repeats_are_kept_resumed_and_replayed(project: Project) -> None:
    plan = replace(project.plan(), repeats=3)
    project.runner({"mine": ById()}).measure(Subject(MINE, project.plan()))
    later = ById()
    first = project.runner({"mine": later}).measure(Subject(MINE, plan))
    assert len(later.requests) == 6
    again = ById()
    project.runner({"mine": again}).measure(Subject(MINE, plan))
    assert again.requests == []
    replayed = project.runner({"mine": again}, replay=True).measure(Subject(MINE, plan))
    assert isinstance(replayed.metric("repeat_difference"), PerQuery)
    assert replayed.interval("repeat_difference") == first.interval("repeat_difference")
