"""Names for rerankers and tasks that a test hands over, so that they are measured as all others."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_invari.data.tasks import Task, TaskSet
from pytest_invari.errors import InvariError
from pytest_invari.lookup.registry import TASK_FILES, Registry, RerankerSpec
from pytest_invari.usercode import shortened

__all__ = ["GivenRegistry", "Tasks", "as_tasks"]

Tasks = str | Path | TaskSet | Iterable[Task]
"""A data set's name, the path of one, or the tasks themselves."""


def as_tasks(tasks: TaskSet | Iterable[Task]) -> TaskSet:
    """The tasks as a set.

    Raises:
        InvariError: they are none, or not tasks.
    """
    if isinstance(tasks, TaskSet):
        return tasks
    listed = list(tasks) if isinstance(tasks, Iterable) else [tasks]
    for each in listed:
        if not isinstance(each, Task):
            raise InvariError(f"tasks are a path, a data set's name or Task objects, not {shortened(each)}")
    return TaskSet.of("tasks", listed)


class GivenRegistry(Registry):
    """A registry that also knows the rerankers and tasks that tests have handed over.

    The same object keeps its name. A name that is taken already gets a number behind it.
    """

    def __init__(self, rootpath: Path, rerankers: dict[str, object]) -> None:
        super().__init__(rootpath, rerankers)
        self._named: dict[tuple[int, int], tuple[RerankerSpec, object]] = {}
        self._given: dict[str, TaskSet] = {}

    def spec(self, reranker: object) -> RerankerSpec:
        """The spec of a reranker that is named, or handed over: a reranker, a class or a function.

        Raises:
            InvariError: the text names none.
        """
        if isinstance(reranker, RerankerSpec):
            return reranker
        if isinstance(reranker, str):
            return RerankerSpec.parse(reranker)
        # A bound method is another object each time it is looked up.
        key = id(getattr(reranker, "__self__", None)), id(getattr(reranker, "__func__", reranker))
        if key not in self._named:
            name = _free_name(_name_of(reranker), {*self.reranker_names(), *self._hook})
            self._hook[name] = reranker
            self._named[key] = RerankerSpec(name), reranker
        return self._named[key][0]

    def dataset(self, tasks: Tasks, k: int | None) -> tuple[str, int]:
        """The name by which the tasks are known from now on, and the length of their lists.

        Raises:
            InvariError: they cannot be read, or *k* is not given and is not to be seen from them.
        """
        if isinstance(tasks, str | Path):
            return self._found(str(tasks), k)
        made = as_tasks(tasks)
        name = made.name
        if name in self.dataset_names() or self._given.get(name, made).sha256 != made.sha256:
            name = f"{made.name}-{made.sha256[:8]}"
        self._given[name] = made
        return name, _length(made) if k is None else k

    def _found(self, name: str, k: int | None) -> tuple[str, int]:
        is_name = name in self.dataset_names()
        path = None if is_name else self._find_path(name)
        if path is None and not is_name:
            # Never those that were handed over under this name: it raises.
            super().load_tasks(name, k or 1)
        if path is not None:
            # The same relative path may be another file in the next test.
            name = str(path.resolve())
        if k is not None:
            return name, k
        if path is None or path.suffix not in TASK_FILES:
            raise InvariError(f"data set {name!r}: say how long its lists shall be, as in k=10")
        if name not in self._given:
            from pytest_invari.data.taskfile import read_tasks

            self._given[name] = read_tasks(path)
        return name, _length(self._given[name])

    def load_tasks(self, dataset: str, k: int, queries: int | None = None) -> TaskSet:
        """As :meth:`Registry.load_tasks`, from those that were handed over first."""
        if dataset in self._given:
            return self._given[dataset].at_k(k).head(queries)
        return super().load_tasks(dataset, k, queries)


def _length(tasks: TaskSet) -> int:
    """How long the lists are.

    Raises:
        InvariError: they differ in length, or there are none.
    """
    lengths = sorted({len(task.candidates) for task in tasks.tasks})
    if not lengths:
        raise InvariError(f"data set {tasks.name!r}: has no queries")
    if len(lengths) > 1:
        raise InvariError(
            f"data set {tasks.name!r}: its lists have {lengths[0]} to {lengths[-1]} candidates; say how many "
            f"shall be ranked, as in k={lengths[0]}"
        )
    return lengths[0]


def _name_of(reranker: object) -> str:
    name = getattr(reranker, "__name__", None) or type(reranker).__name__
    return "lambda" if name == "<lambda>" else str(name)


def _free_name(name: str, taken: set[str]) -> str:
    numbered, count = name, 1
    while numbered in taken:
        count += 1
        numbered = f"{name}_{count}"
    return numbered
