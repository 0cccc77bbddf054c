"""The stock of a run: tasks and rerankers, loaded and built once, and shared by all that is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_invari.errors import InvariError, counted
from pytest_invari.protocol.blinding import blind_ids
from pytest_invari.protocol.capabilities import prepare_reranker
from pytest_invari.registry.build import Build

if TYPE_CHECKING:
    from pytest_invari.observation.plan import Plan
    from pytest_invari.protocol import Reranker
    from pytest_invari.registry.registry import Registry
    from pytest_invari.registry.spec import RerankerSpec
    from pytest_invari.settings import ModelSettings
    from pytest_invari.tasks.task import TaskSet


_Lists = tuple[str, int, int | None]
Shown = tuple[str, _Lists, str, bool]
"""A reranker's label, and what of a plan decides what it is shown, besides the orders."""


@dataclass(frozen=True, slots=True)
class _Made:
    """A reranker of the user's ``own``, and as it is ``shown`` the lists: perhaps without the ids."""

    own: Reranker
    shown: Reranker


class Loader:
    """Loads tasks, and builds and prepares rerankers.

    Args:
        registry: where names are looked up.
        settings: of the language model.
        shared: loaded models.
    """

    def __init__(self, registry: Registry, settings: ModelSettings, shared: dict[object, object]) -> None:
        self._registry, self._settings, self._shared = registry, settings, shared
        self._tasks: dict[_Lists, TaskSet] = {}
        self._made: dict[Shown, _Made] = {}
        self._prepared: set[Shown] = set()

    def tasks(self, plan: Plan) -> TaskSet:
        """The tasks of a plan, loaded once.

        Raises:
            InvariError: they cannot be loaded, or are no possible tasks.
        """
        key = _lists(plan)
        if key not in self._tasks:
            tasks = self._registry.load_tasks(plan.dataset, plan.k, plan.queries)
            _require_possible(tasks, plan)
            self._tasks[key] = tasks
        return self._tasks[key]

    def reranker(self, spec: RerankerSpec, plan: Plan) -> Reranker:
        """The reranker, built once and not prepared.

        Raises:
            InvariError: it cannot be built.
        """
        return self._made_once(spec, plan).shown

    def prepare(self, spec: RerankerSpec, plan: Plan) -> None:
        """Let the reranker load what it needs, once.

        Raises:
            InvariError: it cannot.
        """
        key = shown_to(spec, plan)
        if key not in self._prepared:
            prepare_reranker(self.reranker(spec, plan), _named(spec))
            self._prepared.add(key)

    def anew(self, spec: RerankerSpec, plan: Plan) -> Reranker:
        """The reranker built and prepared again, so that nothing is answered from memory.

        One that is handed over ready-made is the same again.

        Raises:
            InvariError: as :meth:`reranker` and :meth:`prepare`.
        """
        self.prepare(spec, plan)
        made = self._make(spec, plan)
        if made.own is not self._made_once(spec, plan).own:
            prepare_reranker(made.own, _named(spec))
        return made.shown

    def _made_once(self, spec: RerankerSpec, plan: Plan) -> _Made:
        key = shown_to(spec, plan)
        if key not in self._made:
            self._made[key] = self._make(spec, plan)
        return self._made[key]

    def _make(self, spec: RerankerSpec, plan: Plan) -> _Made:
        build = Build(
            self._settings, self.tasks(plan), plan.k, self._registry, self._shared, labels=plan.labels
        )
        reranker = self._registry.build(spec, build)
        if not plan.blind_ids or getattr(reranker, "knows_ids", False):
            return _Made(reranker, reranker)
        return _Made(reranker, blind_ids(reranker, label=spec.label))


def shown_to(spec: RerankerSpec, plan: Plan) -> Shown:
    """What decides what a reranker is shown, besides the orders."""
    return spec.label, _lists(plan), plan.labels, plan.blind_ids


def _named(spec: RerankerSpec) -> str:
    return f"reranker {spec.label!r}"


def _lists(plan: Plan) -> _Lists:
    """What of a plan decides which lists there are."""
    return plan.dataset, plan.k, plan.queries


def _require_possible(tasks: TaskSet, plan: Plan) -> None:
    if not tasks.tasks:
        raise InvariError(f"data set {plan.dataset!r}: has no queries")
    seen: set[str] = set()
    for task in tasks.tasks:
        where = f"data set {plan.dataset!r}: query {task.query_id!r}"
        if task.query_id in seen:
            raise InvariError(f"{where} is there twice; every query needs an id of its own")
        seen.add(task.query_id)
        if len(set(task.ids)) != len(task.ids):
            raise InvariError(f"{where} has a candidate twice; every candidate of a list needs its own id")
        if len(task.ids) != plan.k:
            raise InvariError(
                f"{where} has {counted(len(task.ids), 'candidate')}, not the {plan.k} asked for"
            )
