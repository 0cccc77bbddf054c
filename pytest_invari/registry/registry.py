"""The registry: from the names a user writes to rerankers, data sets and suites, loading only the chosen."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_invari.errors import InvariError, UnknownNameError, unknown_name
from pytest_invari.protocol.usercode import user_code
from pytest_invari.registry.adapt import make_reranker
from pytest_invari.registry.build import Build
from pytest_invari.registry.locate import OWN_PACKAGE, first_sentence, load_entry_point, load_object, provider
from pytest_invari.registry.parameters import FIRST_OPTION
from pytest_invari.registry.pyproject import RerankerTable, read_reranker_tables
from pytest_invari.registry.spec import RERANKER_NAME, RerankerSpec
from pytest_invari.text import without_secrets

if TYPE_CHECKING:
    from pytest_invari.protocol import Reranker
    from pytest_invari.tasks.task import TaskSet


RERANKERS = "pytest_invari.rerankers"
DATASETS = "pytest_invari.datasets"
TASK_FILES = (".parquet", ".jsonl")


class Registry:
    """Where names are looked up. Nothing is imported before it is chosen.

    A reranker's name is looked for in the tables ``[tool.invari.rerankers.NAME]`` of the project's
    pyproject.toml, then among those of the conftest hook ``pytest_invari_rerankers``, then among the
    entry points of installed distributions: the nearest to the user wins. Two distributions that
    provide the same name are an error when that name is chosen. A table may carry the name of the
    reranker it configures; else no table and no hook may give the name of a built-in reranker, by which
    suites compare. ``module:attribute`` needs no registration.
    """

    def __init__(
        self,
        rootpath: Path | None = None,
        hook_rerankers: Mapping[str, object] | None = None,
        pyproject: Path | None = None,
    ) -> None:
        self.rootpath = rootpath or Path.cwd()
        self._pyproject = pyproject or self.rootpath / "pyproject.toml"
        self._hook = dict(hook_rerankers or {})
        for name in self._hook:
            if not isinstance(name, str) or not RERANKER_NAME.fullmatch(name) or ":" in name:
                raise InvariError(
                    f"hook pytest_invari_rerankers: {name!r} is not a possible name of a reranker"
                )
            self._require_not_built_in(name, "hook pytest_invari_rerankers")

    def reranker_names(self) -> dict[str, str]:
        """Return each known reranker with one line on what it is or where it is from, sorted by name."""
        found = {name: _describe(points) for name, points in self._installed(RERANKERS).items()}
        found |= {name: f"conftest hook: {_describe_object(value)}" for name, value in self._hook.items()}
        found |= {name: f"{table.place}: {table.target}" for name, table in self._tables.items()}
        return dict(sorted(found.items()))

    def dataset_names(self) -> dict[str, str]:
        """Return each known data set with one line on what it is or where it is from, sorted by name."""
        return {name: _describe(points) for name, points in sorted(self._installed(DATASETS).items())}

    def suite_names(self) -> dict[str, str]:
        """Return each packaged suite with its title, sorted by name."""
        import tomllib

        titles = {}
        for file in (files("pytest_invari") / "suites").iterdir():
            if file.name.endswith(".toml"):
                suite = tomllib.loads(file.read_text(encoding="utf-8")).get("suite", {})
                titles[file.name.removesuffix(".toml")] = str(suite.get("title", ""))
        return dict(sorted(titles.items()))

    def require_known(self, text: str, place: str) -> None:
        """Refuse a reranker's name that stands for nothing; nothing is imported, and so no module looked for.

        Raises:
            InvariError: it is unknown, or no possible name; *place* opens the message.
        """
        name = _parse_at(place, text).name
        if ":" not in name and name not in (known := self.reranker_names()):
            raise unknown_name("reranker", name, known, place)

    def build(self, spec: str | RerankerSpec, build: Build) -> Reranker:
        """Make the reranker that *spec* names; no model is loaded.

        Raises:
            InvariError: the name is unknown or ambiguous, what it names cannot be loaded or is no
                reranker, an option is unknown or of the wrong type, or bases nest without an end.
        """
        spec = RerankerSpec.parse(spec) if isinstance(spec, str) else spec
        build = build.within(spec)
        shown = without_secrets(spec.label)
        who = f"reranker {shown!r}"
        name, options, passed = spec.name, dict(spec.options), dict[str, str]()
        known, colon, value = name.partition(":")
        if colon and known in self.reranker_names():
            # "sgs:select" looks like MODULE:ATTRIBUTE, and yet is a name with its first option.
            name, options = known, {FIRST_OPTION: value, **options}
        while name in self._tables and name not in passed:
            table = self._tables[name]
            passed[name] = table.place
            who = f"reranker {shown!r} ({' and '.join(passed.values())})"
            options = {**table.options, **options}
            if table.factory:
                return make_reranker(load_object(table.factory, self._roots, who), build, options, who)
            inner = _parse_at(table.place, table.reranker)
            name, options = inner.name, {**inner.options, **options}
        return make_reranker(self._target(name, who, passed), build, options, who)

    def load_tasks(self, dataset: str, k: int, queries: int | None = None) -> TaskSet:
        """Load a data set by its name, a task file (.parquet, .jsonl), or a MovieLens folder or zip.

        Lists have *k* candidates; *queries* limits how many tasks are taken (a task file's first ones).

        Raises:
            UnknownNameError: no such name or path.
            InvariError: the data set cannot be loaded.
        """
        points = self._installed(DATASETS).get(dataset)
        if points:
            return _load_installed(_only(points, DATASETS), k, queries)
        path = self.find_path(dataset)
        if path is not None:
            if path.suffix == ".zip" or (path.is_dir() and path.suffix not in TASK_FILES):
                from pytest_invari.datasets.movielens import load

                return load(path, k=k, queries=queries)
            from pytest_invari.tasks.taskfile import read_tasks

            return read_tasks(path).at_k(k).head(queries)
        if "/" in dataset or "\\" in dataset or Path(dataset).suffix:
            raise UnknownNameError(f"data set {dataset!r}: there is no such file or folder")
        raise unknown_name("data set", dataset, self.dataset_names())

    @property
    def _roots(self) -> tuple[Path, ...]:
        return (self.rootpath, Path.cwd())

    @cached_property
    def _tables(self) -> Mapping[str, RerankerTable]:
        tables = read_reranker_tables(self._pyproject)
        for name, table in tables.items():
            if not table.reranker or _parse_at(table.place, table.reranker).name != name:
                self._require_not_built_in(name, table.place)
        return tables

    def _require_not_built_in(self, name: str, place: str) -> None:
        """Refuse to let something else answer to a name by which suites compare."""
        if any(
            point.module.partition(".")[0] == OWN_PACKAGE
            for point in self._installed(RERANKERS).get(name, [])
        ):
            raise InvariError(f"{place}: {name!r} is a built-in reranker; give yours another name")

    def _installed(self, group: str) -> dict[str, list[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=group):
            found.setdefault(point.name, []).append(point)
        return found

    def _target(self, name: str, who: str, passed: Collection[str]) -> object:
        if ":" in name:
            return load_object(name, self._roots, who)
        if name in self._hook:
            value = self._hook[name]
            return load_object(value, self._roots, who) if isinstance(value, str) else value
        points = self._installed(RERANKERS).get(name)
        if points:
            return load_entry_point(_only(points, RERANKERS), "reranker")
        if name in passed:
            tables = "the table refers to itself" if len(passed) == 1 else "the tables refer to each other"
            raise InvariError(f"{who}: {tables}, and nothing else is called {name!r}")
        raise unknown_name("reranker", name, self.reranker_names(), who if passed else "")

    def find_path(self, dataset: str) -> Path | None:
        """The file or folder of this name in the current folder or at the root; None where there is none."""
        # Unlike pathlib's, these take a user that is not there, or a text too long for a path, for no path.
        places = [root / os.path.expanduser(dataset) for root in (Path.cwd(), self.rootpath)]
        return next(filter(os.path.exists, places), None)


def _parse_at(place: str, text: str) -> RerankerSpec:
    try:
        return RerankerSpec.parse(text)
    except InvariError as error:
        raise InvariError(f"{place}: {error}") from None


def _load_installed(point: EntryPoint, k: int, queries: int | None) -> TaskSet:
    from pytest_invari.tasks.task import TaskSet

    load = load_entry_point(point, "data set")
    with user_code(f"data set {point.name!r} of {provider(point)}: loading it"):
        tasks = load(k=k, queries=queries)  # type: ignore[operator]  # an object that is not callable is refused too
    if not isinstance(tasks, TaskSet):
        raise InvariError(f"data set {point.name!r} of {provider(point)} gave a {type(tasks).__name__}")
    return tasks if all(len(task.candidates) == k for task in tasks.tasks) else tasks.at_k(k)


def _only(points: list[EntryPoint], group: str) -> EntryPoint:
    if len(points) > 1:
        providers = " and ".join(sorted(provider(point) for point in points))
        way_out = "uninstall one"
        if group == RERANKERS:
            way_out += f" or name the one you mean as MODULE:ATTRIBUTE, as in {points[0].value}"
        raise InvariError(f"{points[0].name!r} in {group} is provided by {providers}; {way_out}")
    return points[0]


def _describe(points: list[EntryPoint]) -> str:
    return "; ".join(sorted(first_sentence(point) or provider(point) for point in points))


def _describe_object(value: object) -> str:
    if isinstance(value, str):
        return value
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"
