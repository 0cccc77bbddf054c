"""Names for rerankers and tasks that a test hands over, so that they are measured as all others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from pathlib import Path

from pytest_invari.errors import InvariError
from pytest_invari.protocol.usercode import shortened
from pytest_invari.registry.registry import TASK_FILES, Registry
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.tasks.task import Task, TaskSet

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


def find_tasks(registry: Registry, tasks: Tasks, k: int | None, queries: int | None) -> TaskSet:
    """The tasks themselves, whatever stands for them; a task file's lists keep their lengths without *k*.

    Raises:
        InvariError: they cannot be read, or *k* is needed and not given.
    """
    require_whole("k", k, 1)
    require_whole("queries", queries, 1)
    if not isinstance(tasks, str | Path):
        made = as_tasks(tasks)
    else:
        path = _find(registry, str(tasks))
        if k is not None:
            return Registry.load_tasks(registry, str(tasks), k, queries)
        from pytest_invari.tasks.taskfile import read_tasks

        made = read_tasks(_require_task_file(path, str(tasks)))
    return (made if k is None else made.at_k(k)).head(queries)


def require_whole(name: str, value: object, least: int) -> None:
    """Refuse the argument *name* unless it is a whole number of at least *least*, or left out.

    Raises:
        InvariError: it is not.
    """
    if value is None and name in ("k", "queries"):
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise InvariError(f"{name} must be a whole number of at least {least}, not {shortened(value)}")


def _find(registry: Registry, name: str) -> Path | None:
    """The path that a name stands for; None for a data set's name.

    Raises:
        InvariError: it stands for neither.
    """
    if name in registry.dataset_names():
        return None
    path = registry.find_path(name)
    if path is None:
        # Never those that were handed over under this name: it raises.
        Registry.load_tasks(registry, name, 1)
    return path


def _require_task_file(path: Path | None, name: str) -> Path:
    if path is None or path.suffix not in TASK_FILES:
        raise InvariError(f"data set {name!r}: say how long its lists shall be, as in k=10")
    return path


class ObjectRegistry(Registry):
    """A registry that also knows the rerankers and tasks that tests have handed over.

    The same object keeps its name. A name that is taken already gets a number behind it.
    """

    def __init__(self, rootpath: Path, rerankers: dict[str, object]) -> None:
        super().__init__(rootpath, rerankers)
        self._named: dict[tuple[int, int], tuple[RerankerSpec, object]] = {}
        self._task_sets: dict[str, TaskSet] = {}

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

    def require_lasting(self, reranker: object) -> None:
        """Refuse to record what another run could take for something else.

        Records know a function or a class of a module by its name, and an object by its ``fingerprint()``.

        Raises:
            InvariError: a reranker that was handed over is neither, or shares its name with another.
        """
        if isinstance(reranker, str | RerankerSpec):
            return
        own, name = _name_of(reranker), self.spec(reranker).name
        if own != name:
            raise InvariError(
                f"records know a reranker by its name, and another one is called {own!r} here; give this "
                "one a name of its own"
            )
        if not _code_of(reranker) and not callable(getattr(reranker, "fingerprint", None)):
            raise InvariError(
                f"records would not tell {own!r} from others like it; hand over a function or a class of a "
                "module, an object with fingerprint(), or a name"
            )

    def require_same(self, reranker: object, recorded: Mapping[str, object], where: Path) -> None:
        """Refuse records of another function or class that had the name of this one.

        Args:
            reranker: what was handed over.
            recorded: what the recorded reranker said of itself.
            where: the folder of the records.

        Raises:
            InvariError: they are.
        """
        if isinstance(reranker, str | RerankerSpec):
            return
        code, known = _code_of(reranker), str(recorded.get("code", ""))
        # What a factory made has another name than the factory.
        is_namesake = known.rpartition(".")[2] == code.rpartition(".")[2]
        if is_namesake and known != code:
            raise InvariError(
                f"{where}: the records of {_name_of(reranker)!r} are those of {known}, not of {code}; run "
                "once without --invari-replay to rank them"
            )

    def dataset(self, tasks: Tasks, k: int | None) -> tuple[str, int]:
        """The name by which the tasks are known from now on, and the length of their lists.

        Raises:
            InvariError: they cannot be read, or *k* is not given and is not to be seen from them.
        """
        if isinstance(tasks, str | Path):
            return self._found(str(tasks), k)
        made = as_tasks(tasks)
        name = made.name
        if name in self.dataset_names() or self._task_sets.get(name, made).sha256 != made.sha256:
            name = f"{made.name}-{made.sha256[:8]}"
        self._task_sets[name] = made
        return name, _length(made) if k is None else k

    def _found(self, name: str, k: int | None) -> tuple[str, int]:
        path = _find(self, name)
        if path is not None:
            # The same relative path may be another file in the next test.
            name = str(path.resolve())
        if k is not None:
            return name, k
        path = _require_task_file(path, name)
        if name not in self._task_sets:
            from pytest_invari.tasks.taskfile import read_tasks

            self._task_sets[name] = read_tasks(path)
        return name, _length(self._task_sets[name])

    def load_tasks(self, dataset: str, k: int, queries: int | None = None) -> TaskSet:
        """As :meth:`Registry.load_tasks`, from those that were handed over first."""
        if dataset in self._task_sets:
            return self._task_sets[dataset].at_k(k).head(queries)
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


def _code_of(reranker: object) -> str:
    """A function or class by its module and name; empty for what is made anew, or belongs to an object."""
    qualname = str(getattr(reranker, "__qualname__", ""))
    is_of_module = all(part.isidentifier() for part in qualname.split("."))
    if not is_of_module or getattr(reranker, "__self__", None) is not None:
        return ""
    return f"{getattr(reranker, '__module__', '')}.{qualname}"


def _free_name(name: str, taken: set[str]) -> str:
    numbered, count = name, 1
    while numbered in taken:
        count += 1
        numbered = f"{name}_{count}"
    return numbered
