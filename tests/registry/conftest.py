"""Projects and distributions written to disk, and what a reranker built from them answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pytest_invari.protocol import Candidate, Context, HistoryEntry, Request, Reranker
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import Task, TaskSet

CANDIDATES = (Candidate("c", "cube"), Candidate("a", "ant"), Candidate("b", "a bee"))
CONTEXT = Context("insects", (HistoryEntry("wasp", 4.5),))


class Project:
    """A folder with the user's files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.request = Request("q", CONTEXT, CANDIDATES)

    def write(self, name: str, content: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(content), encoding="utf-8")
        return path

    def distribution(self, name: str, group: str, points: Mapping[str, str], folder: str = "site") -> Path:
        """Write what an installer leaves of a distribution: its metadata, beside its modules."""
        lines = [f"[{group}]", *(f"{point} = {target}" for point, target in points.items())]
        info = f"{folder}/{name.replace('-', '_')}-1.2.dist-info"
        self.write(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        return self.write(f"{info}/entry_points.txt", "\n".join(lines)).parent.parent

    def registry(self, hook: Mapping[str, object] | None = None) -> Registry:
        return Registry(self.root, hook)

    def build(self, spec: str, hook: Mapping[str, object] | None = None) -> Reranker:
        registry = self.registry(hook)
        tasks = TaskSet.of("three", [Task("q", CONTEXT, CANDIDATES, {"a": 1.0}, 1)])
        return registry.build(spec, Build(ModelSettings(), tasks, 3, registry))

    def rank(self, spec: str, hook: Mapping[str, object] | None = None) -> str:
        """Rank cube, ant and bee; return the ids in one word."""
        return "".join(self.build(spec, hook).rank(self.request).order)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project in a folder of its own; what it makes Python import is forgotten afterwards."""
    root = tmp_path / "project"
    root.mkdir()
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield Project(root)
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def install(project: Project, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Write a distribution and put its folder on the path."""

    def put(name: str, group: str, points: Mapping[str, str], folder: str = "site") -> None:
        monkeypatch.syspath_prepend(project.distribution(name, group, points, folder))

    return put
