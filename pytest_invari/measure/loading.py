"""Loading: tasks and rerankers, loaded and built once, and shared by all that is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_invari.errors import InvariError, counted
from pytest_invari.protocol.capabilities import prepare_reranker
from pytest_invari.registry.build import Build

if TYPE_CHECKING:
    from pytest_invari.measure.subject import Subject
    from pytest_invari.observation.observation import ObservationKey
    from pytest_invari.observation.plan import Plan
    from pytest_invari.observation.views import View
    from pytest_invari.protocol import Reranker
    from pytest_invari.registry.registry import Registry
    from pytest_invari.settings import ModelSettings
    from pytest_invari.tasks.task import TaskSet


Views = Mapping[str, "list[View]"]
"""The views of each query, by its id."""

# A view that is ranked again, by itself or in a batch, is named after these.
ALONE, BATCH = "alone", "batch"


@dataclass(slots=True)
class _Built:
    """A reranker of the user's ``own``, and as it is ``shown`` the lists: perhaps without the ids."""

    own: Reranker
    shown: Reranker
    is_prepared: bool = False


class Loader:
    """Loads tasks, and builds and prepares rerankers.

    Args:
        registry: where names are looked up.
        settings: of the language model.
        shared: loaded models.
    """

    def __init__(self, registry: Registry, settings: ModelSettings, shared: dict[object, object]) -> None:
        self._registry, self._settings, self._shared = registry, settings, shared
        self._tasks: dict[tuple[str, int, int | None], TaskSet] = {}
        self._views: dict[Plan, Views] = {}
        self._rerankers: dict[Subject, _Built] = {}

    def tasks(self, plan: Plan) -> TaskSet:
        """The tasks of a plan.

        Raises:
            InvariError: they cannot be loaded, or are no possible tasks.
        """
        lists = plan.dataset, plan.k, plan.queries
        if lists not in self._tasks:
            tasks = self._registry.load_tasks(*lists)
            _require_possible(tasks, plan)
            self._tasks[lists] = tasks
        return self._tasks[lists]

    def views(self, plan: Plan, tasks: TaskSet) -> Views:
        """The views that a plan draws of its *tasks*, which a replay may have from elsewhere.

        Raises:
            InvariError: a list has too few orders for so many views.
        """
        if plan not in self._views:
            self._views[plan] = plan.sample(tasks)
        return self._views[plan]

    def wanted(self, plan: Plan) -> set[ObservationKey]:
        """What identifies the observations that a plan is about, of views that are ranked again too."""
        views = self.views(plan, self.tasks(plan))
        return keys_of(views, *(plan.repeated(views, suffix) for suffix in (ALONE, BATCH)))

    def reranker(self, subject: Subject) -> Reranker:
        """The reranker, not prepared.

        Raises:
            InvariError: it cannot be built.
        """
        return self._built(subject).shown

    def prepare(self, subject: Subject) -> None:
        """Let the reranker load what it needs.

        Raises:
            InvariError: it cannot.
        """
        built = self._built(subject)
        if not built.is_prepared:
            prepare_reranker(built.shown, _named(subject))
            built.is_prepared = True

    def build_again(self, subject: Subject) -> Reranker:
        """Another of the reranker, prepared too, so that nothing is answered from memory.

        One that is handed over ready-made is the same again.

        Raises:
            InvariError: as :meth:`reranker` and :meth:`prepare`.
        """
        self.prepare(subject)
        another = self._build(subject)
        if another.own is not self._built(subject).own:
            prepare_reranker(another.own, _named(subject))
        return another.shown

    def _built(self, subject: Subject) -> _Built:
        key = subject.shown_lists
        if key not in self._rerankers:
            self._rerankers[key] = self._build(subject)
        return self._rerankers[key]

    def _build(self, subject: Subject) -> _Built:
        spec, plan = subject.reranker, subject.plan
        build = Build(
            self._settings, self.tasks(plan), plan.k, self._registry, self._shared, labels=plan.labels
        )
        reranker = self._registry.build(spec, build)
        if not plan.blind_ids or getattr(reranker, "knows_ids", False):
            return _Built(reranker, reranker)
        from pytest_invari.protocol.blinding import blind_ids

        return _Built(reranker, blind_ids(reranker, label=spec.label))


def keys_of(*shown: Views) -> set[ObservationKey]:
    """What identifies the observations of these views."""
    return {(query_id, view.name) for views in shown for query_id, drawn in views.items() for view in drawn}


def _named(subject: Subject) -> str:
    return f"reranker {subject.reranker.label!r}"


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
