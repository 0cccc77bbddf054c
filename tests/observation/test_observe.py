"""Observation: what a reranker is shown, in which batches, and what is kept when it is interrupted."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pytest_invari.errors import InvariError
from pytest_invari.observation import observe as module
from pytest_invari.observation.observation import Observation
from pytest_invari.observation.observe import observe, request_for, stored
from pytest_invari.observation.plan import Plan, SubjectName
from pytest_invari.observation.views import View
from pytest_invari.progress import Bar, bar
from pytest_invari.protocol import Cost, Ranking, Request
from pytest_invari.records.folder import RecordFolder
from pytest_invari.records.manifest import Manifest
from pytest_invari.records.record import Record
from pytest_invari.tasks.task import TaskSet

if TYPE_CHECKING:
    from tests.measure.conftest import ById, InBatches

Views = Mapping[str, Sequence[View]]


@pytest.fixture
def views(tasks: TaskSet) -> Views:
    return Plan("films", 5, None, 4, include_canonical=True).sample(tasks)


@pytest.fixture
def record(tmp_path: Path, tasks: TaskSet) -> Record:
    manifest = Manifest({"reranker": "by_id"})
    return RecordFolder(tmp_path / "records").open(SubjectName("by_id", "films", 5), manifest, tasks)


def test_every_view_is_shown_once_in_its_own_order(tasks: TaskSet, views: Views, by_id: type[ById]) -> None:
    reranker = by_id()
    seen = observe(reranker, tasks, views, show=False)
    expected = [(task.query_id, view.order) for task in tasks.tasks for view in views[task.query_id]]
    assert reranker.shown == expected
    assert [(each.query_id, each.shown) for each in seen] == expected
    assert [each.view for each in seen][:4] == [view.name for view in views["query0"]]
    assert all(list(each.ranking.order) == sorted(each.shown, reverse=True) for each in seen)


def test_a_request_carries_context_and_candidates_and_nothing_that_tells_the_views_apart(
    tasks: TaskSet, views: Views
) -> None:
    task = tasks.tasks[1]
    requests = [request_for(task, view) for view in views[task.query_id]]
    for request, view in zip(requests, views[task.query_id], strict=True):
        assert (request.query_id, request.context, request.ids) == (task.query_id, task.context, view.order)
        assert sorted(request.candidates, key=lambda each: each.id) == list(task.candidates)
        assert view.name not in request.view
        assert len(request.view) == 12
    assert len({request.view for request in requests}) == len(requests)


def test_batches_have_the_size_the_reranker_asks_for(
    tasks: TaskSet, views: Views, in_batches: type[InBatches]
) -> None:
    reranker = in_batches()
    seen = observe(reranker, tasks, views, show=False)
    assert reranker.batches == [7, 7, 7, 7, 4]
    assert len(seen) == 32


def test_batches_are_of_64_when_the_reranker_does_not_say(by_id: type[ById]) -> None:
    class Silent(by_id):  # type: ignore[misc,valid-type]  # a class given by a fixture
        sizes: list[int] = []  # noqa: RUF012

        def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
            self.sizes.append(len(requests))
            return [self.rank(request) for request in requests]

    from tests.measure.conftest import make_tasks

    tasks = make_tasks(20)
    observe(Silent(), tasks, Plan("films", 5, None, 4).sample(tasks), show=False)
    assert Silent.sizes == [64, 16]


def test_one_batch_and_single_requests_give_the_same(
    tasks: TaskSet, views: Views, by_id: type[ById], in_batches: type[InBatches]
) -> None:
    def answers(reranker: ById) -> list[tuple[str, ...]]:
        return [each.ranking.order for each in observe(reranker, tasks, views, show=False)]

    assert answers(by_id()) == answers(in_batches())


def test_a_failure_is_kept_with_its_fault_and_the_others_go_on(
    tasks: TaskSet, views: Views, in_batches: type[InBatches]
) -> None:
    seen = observe(in_batches(lambda request: request.query_id == "query2"), tasks, views, show=False)
    faults = {each.query_id: each.ranking.fault for each in seen if each.ranking.status == "failed"}
    assert faults == {"query2": "raised RuntimeError: no answer for query2"}
    assert sum(each.ranking.status == "ok" for each in seen) == 28


def test_seconds_are_the_share_of_the_batch_unless_the_reranker_times_itself(
    tasks: TaskSet, views: Views, in_batches: type[InBatches]
) -> None:
    class Timed(in_batches):  # type: ignore[misc,valid-type]  # a class given by a fixture
        def rank(self, request: Request) -> Ranking:
            return Ranking.from_order(request, request.ids, cost=Cost(calls=1, depth=1, seconds=9.0))

    assert {each.ranking.cost.seconds for each in observe(Timed(), tasks, views, show=False)} == {9.0}
    shares = [each.ranking.cost.seconds for each in observe(in_batches(), tasks, views, show=False)]
    assert all(0 < share < 1 for share in shares)
    assert len(set(shares[:7])) == 1


def test_what_is_kept_is_not_ranked_again(
    tasks: TaskSet, views: Views, record: Record, by_id: type[ById]
) -> None:
    few = {query_id: drawn[:1] for query_id, drawn in views.items()}
    first, second, third = by_id(), by_id(), by_id()
    observe(first, tasks, few, record, show=False)
    whole = observe(second, tasks, views, record, show=False)
    assert not set(first.shown) & set(second.shown)
    assert len(first.shown) + len(second.shown) == len(whole) == 32
    assert observe(third, tasks, views, record, show=False) == whole
    assert third.shown == []


def test_failures_are_kept_unless_they_are_to_be_tried_again(
    tasks: TaskSet, views: Views, record: Record, by_id: type[ById]
) -> None:
    observe(by_id(lambda request: request.query_id == "query2"), tasks, views, record, show=False)
    patient, bold = by_id(), by_id()
    assert (
        sum(each.ranking.status == "failed" for each in observe(patient, tasks, views, record, show=False))
        == 4
    )
    again = observe(bold, tasks, views, record, retry_failed=True, show=False)
    assert (len(patient.shown), {query_id for query_id, _ in bold.shown}) == (0, {"query2"})
    assert {each.ranking.status for each in again} == {"ok"}
    assert {each.ranking.status for each in record.read().values()} == {"ok"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, pytest.fail.Exception])
def test_an_interrupted_run_keeps_what_it_has(
    tasks: TaskSet, views: Views, record: Record, by_id: type[ById], error: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    class Interrupted(by_id):  # type: ignore[misc,valid-type]  # a class given by a fixture
        def rank(self, request: Request) -> Ranking:
            if len(self.requests) == 10:
                raise error
            answer: Ranking = super().rank(request)
            return answer

    # Nothing is written in between, so that only the interruption can have written it.
    monkeypatch.setattr(module._Buffer, "write_when_due", lambda self: None)
    first, second = Interrupted(), by_id()
    with pytest.raises(error) as stopped:
        observe(first, tasks, views, record, description="mine on films", show=False)
    if error is KeyboardInterrupt:
        assert stopped.value.__notes__ == ["10 of 32 rankings by mine on films are kept"]
    assert len(record.read()) == 10
    observe(second, tasks, views, record, show=False)
    assert len(second.shown) == 22
    assert not set(first.shown[:10]) & set(second.shown)


def test_slow_work_is_written_at_once_and_quick_work_together(
    tasks: TaskSet, views: Views, by_id: type[ById], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    class Store:
        def __init__(self) -> None:
            self.sizes: list[int] = []

        def read(self) -> dict[tuple[str, str], Observation]:
            return {}

        def append(self, observations: Sequence[Observation]) -> None:
            now[0] += 0.01
            self.sizes.append(len(observations))

        def compact(self) -> None:
            pass

    def sizes(seconds: float) -> list[int]:
        class Clocked(by_id):  # type: ignore[misc,valid-type]  # a class given by a fixture
            def rank(self, request: Request) -> Ranking:
                now[0] += seconds
                answer: Ranking = super().rank(request)
                return answer

        store = Store()
        observe(Clocked(), tasks, views, store, show=False)
        return store.sizes

    assert sizes(0.2) == [1] * 32
    # Writing takes .01 s and may take a tenth of the time.
    assert sizes(0.03)[:3] == [1, 4, 4]
    assert len(sizes(0.0001)) == 2


def test_an_observation_says_whether_it_came_from_records(
    tasks: TaskSet, views: Views, record: Record, by_id: type[ById]
) -> None:
    few = tasks.head(3)
    first = observe(by_id(), few, views, record, show=False)
    again = observe(by_id(), tasks, views, record, show=False)
    assert [seen.from_records for seen in first] == [False] * 12
    assert [seen.from_records for seen in again] == [True] * 12 + [False] * 20
    assert again[:12] == first
    assert all(seen.from_records for seen in record.read().values())
    assert not any(seen.from_records for seen in observe(by_id(), tasks, views, show=False))


@pytest.mark.parametrize(
    ("cost", "fault"),
    [
        (Cost(calls=-1), "calls cannot be -1"),
        (
            Cost(calls=1, depth=1, tokens_in=3, tokens_cached=4),
            "tokens_cached (4) cannot exceed tokens_in (3)",
        ),
        (Cost(tokens_out=2.5), "tokens_out cannot be 2.5"),  # type: ignore[arg-type]  # a reranker's mistake
        (Cost(depth="1"), "depth cannot be '1'"),  # type: ignore[arg-type]  # likewise
        (Cost(seconds=math.nan), "seconds cannot be nan"),
        (Cost(seconds=math.inf), "seconds cannot be inf"),
    ],
)
def test_a_ranking_with_an_impossible_cost_fails_before_it_is_kept(
    tasks: TaskSet, views: Views, record: Record, cost: Cost, fault: str
) -> None:
    class Wrong:
        def rank(self, request: Request) -> Ranking:
            return Ranking.from_order(request, request.ids, cost=cost)

    observe(Wrong(), tasks.head(1), views, record, show=False)
    for seen in record.read().values():
        assert (seen.ranking.status, seen.ranking.fault) == (
            "failed",
            f"reported an impossible cost: {fault}",
        )
        assert seen.ranking.cost.fault == ""


def test_a_kept_view_in_another_order_is_an_error_with_query_and_view(
    tasks: TaskSet, views: Views, record: Record, by_id: type[ById]
) -> None:
    observe(by_id(), tasks, views, record, show=False)
    swapped = dict(views)
    first, second, *rest = views["query3"]
    swapped["query3"] = [View(first.name, second.order), View(second.name, first.order), *rest]
    message = rf"query 'query3', view '{first.name}' \(the data set's own order\) was shown in another order"
    with pytest.raises(InvariError, match=message):
        observe(by_id(), tasks, swapped, record, show=False)
    with pytest.raises(InvariError, match=message):
        stored(record.read(), tasks, swapped, "here")


def test_missing_views_are_counted_and_the_first_is_named(
    tasks: TaskSet, views: Views, record: Record, by_id: type[ById]
) -> None:
    few = {query_id: drawn[:3] for query_id, drawn in views.items()}
    observe(by_id(), tasks, few, record, show=False)
    last = views["query0"][3].name
    with pytest.raises(
        InvariError, match=rf"^here: lacks 8 of 32 views, the first of query 'query0', view '{last}'"
    ):
        stored(record.read(), tasks, views, "here")


def test_diagnostics_become_plain_and_lose_their_secrets(
    tasks: TaskSet, views: Views, by_id: type[ById], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-value")

    class Chatty(by_id):  # type: ignore[misc,valid-type]  # a class given by a fixture
        def rank(self, request: Request) -> Ranking:
            if request.query_id == "query1":
                raise OSError("401 at https://me:pw@host/?api_key=abc with sk-very-secret-value")
            return Ranking.from_order(
                request,
                request.ids,
                diagnostics={
                    "entropy": np.float32(0.5), "margins": np.arange(2), "token": "x", "path": Path("a"),
                    "nested": {1: (math.nan, None, True)},
                },
            )  # fmt: skip

    seen = observe(Chatty(), tasks, views, show=False)
    assert seen[0].ranking.diagnostics == {
        "entropy": 0.5, "margins": [0, 1], "token": "(hidden)", "path": "a",
        "nested": {"1": ["nan", None, True]},
    }  # fmt: skip
    assert json.loads(json.dumps(seen[0].ranking.diagnostics)) == seen[0].ranking.diagnostics
    fault = seen[4].ranking.fault
    assert fault == "raised OSError: 401 at https://(hidden)@host/?api_key=(hidden) with (hidden)"


@pytest.mark.parametrize(("kind", "total", "unit"), [("silent", 32, "view"), ("counting", 96, "call")])
def test_the_bar_counts_calls_where_they_are_known_and_else_views(
    tasks: TaskSet, views: Views, by_id: type[ById], monkeypatch: pytest.MonkeyPatch,
    kind: str, total: int, unit: str,
) -> None:  # fmt: skip
    class Counting(by_id):  # type: ignore[misc,valid-type]  # a class given by a fixture
        def expected_calls(self, k: int) -> int:
            assert k == 5
            return 3

    drawn = []

    def noted(total: int, description: str, *, unit: str, show: bool) -> AbstractContextManager[Bar]:
        drawn.append((total, description, unit))
        return bar(total, description, unit=unit, show=show)

    monkeypatch.setattr(module, "bar", noted)
    observe(Counting() if kind == "counting" else by_id(), tasks, views, description="it", show=False)
    assert drawn == [(total, "it", unit)]
