"""Small task sets, and rerankers built by their names over bases of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest

from pytest_invari.observation.views import sample_views
from pytest_invari.protocol import Candidate, Context, Request, Reranker
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import Task, TaskSet


class Lists:
    """A task set of *queries* lists of *k*; of query number q, candidate number q % k is relevant."""

    def __init__(self, queries: int, k: int) -> None:
        self.k = k
        self.tasks = TaskSet.of("lists", (_task(q, k) for q in range(queries)))

    def build(self, spec: str, *, calibrate: bool = False, **bases: object) -> Reranker:
        """Build *spec*, with *bases* registered as by a conftest hook."""
        registry = Registry(Path("/nonexistent"), bases)
        return registry.build(spec, Build(ModelSettings(calibrate=calibrate), self.tasks, self.k, registry))

    def views(self, count: int) -> list[Request]:
        """*count* views of each query."""
        return [
            Request(task.query_id, task.context, task.candidates, view.name).select(view.order)
            for task in self.tasks.tasks
            for view in sample_views(task.query_id, task.ids, count)
        ]

    def all_orders(self) -> list[Request]:
        """Every order of the first query."""
        task = self.tasks.tasks[0]
        request = Request(task.query_id, task.context, task.candidates)
        return [request.select(order) for order in permutations(task.ids)]


def _task(number: int, k: int) -> Task:
    candidates = tuple(Candidate(f"item{number}.{i}", f"film {i}") for i in range(k))
    relevant = candidates[number % k].id
    return Task(f"query{number}", Context(f"text {number}"), candidates, {relevant: 1.0}, 1)


@pytest.fixture
def lists() -> Callable[[int, int], Lists]:
    return Lists


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("INVARI_CACHE", str(tmp_path / "cache"))
