"""Small tasks, a reranker that remembers what it was shown, and a runner over both."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.measure.runner import Runner
from pytest_invari.observation.plan import Plan
from pytest_invari.protocol import Candidate, Context, Cost, Ranking, Request
from pytest_invari.registry.registry import Registry
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import Task, TaskSet


def make_task(number: int, k: int) -> Task:
    """Query number n has k candidates; the first of them is relevant, unless 4 divides n."""
    ids = [f"item{number}.{item}" for item in range(k)]
    relevance = {ids[0]: 1.0} if number % 4 else {}
    candidates = tuple(Candidate(item, f"text of {item}") for item in ids)
    return Task(f"query{number}", Context(f"films {number}"), candidates, relevance, len(relevance))


def make_tasks(queries: int = 8, k: int = 5, name: str = "films") -> TaskSet:
    return TaskSet.of(name, (make_task(number, k) for number in range(queries)))


class ById:
    """Ranks by id, so it is invariant. It remembers its requests, and fails where it is told to."""

    def __init__(self, fails: Callable[[Request], bool] = lambda request: False) -> None:
        self.fails = fails
        self.requests: list[Request] = []

    def rank(self, request: Request) -> Ranking:
        self.requests.append(request)
        if self.fails(request):
            raise RuntimeError(f"no answer for {request.query_id}")
        scores = {item: float(place) for place, item in enumerate(sorted(request.ids))}
        return Ranking.from_scores(request, scores, cost=Cost(calls=2, depth=1, tokens_in=7, tokens_out=3))

    @property
    def shown(self) -> list[tuple[str, tuple[str, ...]]]:
        """Query and order of each request so far."""
        return [(request.query_id, request.ids) for request in self.requests]


class InBatches(ById):
    """The same in batches, which it remembers too."""

    batch_requests = 7

    def __init__(self, fails: Callable[[Request], bool] = lambda request: False) -> None:
        super().__init__(fails)
        self.batches: list[int] = []

    def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        self.batches.append(len(requests))
        return [self.rank(request) for request in requests]


class Project:
    """A folder with a task file, and runners over it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = path / "records"

    def write_tasks(
        self, name: str = "films.jsonl", queries: int = 8, k: int = 5, text: str = "films"
    ) -> str:
        """A task file like :func:`make_tasks`; returns its path."""
        lines = []
        for task in make_tasks(queries, k).tasks:
            candidates = [
                {"id": each.id, "text": each.text, "relevance": task.relevance.get(each.id)}
                for each in task.candidates
            ]
            row = {"query_id": task.query_id, "text": f"{text} {task.query_id}", "candidates": candidates}
            lines.append(json.dumps(row) + "\n")
        (self.path / name).write_text("".join(lines), encoding="utf-8")
        return str(self.path / name)

    def plan(
        self, dataset: str = "", *, k: int = 5, queries: int | None = None, views: int = 4, **more: Any
    ) -> Plan:
        return Plan(dataset or str(self.path / "films.jsonl"), k, queries, views, **more)

    def runner(
        self,
        rerankers: Mapping[str, object] | None = None,
        settings: ModelSettings | None = None,
        *,
        keep: bool = True,
        **more: Any,
    ) -> Runner:
        registry = Registry(self.path, rerankers)
        return Runner(registry, settings, self.records if keep else None, show_progress=False, **more)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write_tasks()
    return made


@pytest.fixture
def tasks() -> TaskSet:
    return make_tasks()


@pytest.fixture
def by_id() -> type[ById]:
    return ById


@pytest.fixture
def in_batches() -> type[InBatches]:
    return InBatches
