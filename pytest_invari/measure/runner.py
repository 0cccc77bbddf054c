"""The laboratory: builds rerankers, shows them their views or takes these from records, and measures."""

from __future__ import annotations

import warnings
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_invari.errors import InvariError, InvariRecordsWarning, counted
from pytest_invari.measure.loading import Loader, Shown, shown_to
from pytest_invari.measure.resume import RecordStore, subject_of
from pytest_invari.observation.audit import Audit, audit_reranker
from pytest_invari.observation.observation import Observation
from pytest_invari.observation.observe import as_shown, observe, request_for, stored
from pytest_invari.observation.plan import Plan
from pytest_invari.observation.validity import VALID
from pytest_invari.observation.views import View
from pytest_invari.progress import bar
from pytest_invari.protocol import rank_all
from pytest_invari.protocol.capabilities import check_reranker, fingerprint_of
from pytest_invari.records.manifest import Scalar, flatten
from pytest_invari.records.record import Record
from pytest_invari.redaction import without_secrets
from pytest_invari.settings import ModelSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_invari.measure.measured import Measured
    from pytest_invari.observation.observation import ObservationKey
    from pytest_invari.observation.witness import Order, Rank
    from pytest_invari.protocol import Cost
    from pytest_invari.registry.registry import Registry
    from pytest_invari.registry.spec import RerankerSpec
    from pytest_invari.tasks.task import Task, TaskSet


# The observations of all views, and those of the views that were asked again.
_Answers = tuple[list[Observation], list[Observation]]

# A view that is asked again is named after these.
_ALONE, _BATCH = "alone", "batch"


class Runner:
    """Measures subjects, each once in its life, and shares loaded models and data between them.

    Args:
        registry: where names are looked up.
        settings: of the language model.
        records: keep every ranking in this folder, and go on from what is there.
        replay: take every ranking from *records*; nothing is built and no model is loaded.
        retry_failed: rank again what *records* hold as failed.
        show_progress: None shows bars except in workers of pytest-xdist.
        shared: loaded models, where other laboratories shall have the same.
        audits: ask each reranker a few questions before it ranks.
    """

    def __init__(
        self,
        registry: Registry,
        settings: ModelSettings | None = None,
        records: Path | None = None,
        replay: bool = False,
        *,
        retry_failed: bool = False,
        show_progress: bool | None = None,
        shared: dict[object, object] | None = None,
        audits: bool = False,
    ) -> None:
        if replay and records is None:
            raise InvariError("a replay needs the folder of the records")
        self._settings = settings or ModelSettings()
        self._stock = Loader(registry, self._settings, {} if shared is None else shared)
        self._shelf = (
            None if records is None else RecordStore(records, self._stock, self._settings, retry_failed)
        )
        self._is_replay = replay
        self._retry_failed = retry_failed
        self._show = show_progress
        self._audits = audits
        self._audited: dict[Shown, Audit] = {}
        self._views: dict[Plan, Mapping[str, list[View]]] = {}
        self._replayed: dict[Shown, tuple[Record, TaskSet]] = {}
        self._observed: dict[tuple[str, Plan], _Answers] = {}
        self._measured: dict[tuple[str, Plan], Measured] = {}
        self._asked_besides: dict[tuple[str, Plan], list[Cost]] = {}

    def tasks(self, plan: Plan) -> TaskSet:
        """The tasks of a plan, loaded once.

        Raises:
            InvariError: they cannot be loaded, or are no possible tasks.
        """
        return self._stock.tasks(plan)

    def check(self, spec: RerankerSpec, plan: Plan, *, is_baseline: bool = False) -> None:
        """Refuse what can be refused before a model is loaded; a replay is read and checked whole.

        A replay may lack a *baseline*: it was never ranked where the reranker under test failed, or where
        the run was of other criteria. :meth:`measure` then raises for the criteria that need it.

        Raises:
            InvariError: see there.
        """
        if self._is_replay:
            with suppress(InvariError) if is_baseline else nullcontext():
                self._observe(spec, plan)
            return
        self.check_tasks(plan)
        if self._shelf is not None:
            self._shelf.check(spec, plan)
        check_reranker(self._stock.reranker(spec, plan), f"reranker {spec.label!r}")

    def check_tasks(self, plan: Plan) -> None:
        """Refuse lists that a plan cannot be carried out on; a replay has lists of its own.

        Raises:
            InvariError: as :meth:`tasks`; or a list has too few orders for so many views.
        """
        if not self._is_replay:
            plan.require_orders(self.tasks(plan))

    @property
    def is_replay(self) -> bool:
        """Whether every ranking is taken from records."""
        return self._is_replay

    def prepare(self, spec: RerankerSpec, plan: Plan) -> None:
        """Load what the reranker needs, once.

        A replay needs nothing, nor does a run whose records hold all rankings, unless the reranker must be
        loaded to say which records are its own.

        Raises:
            InvariError: it cannot be loaded, or the records are damaged.
        """
        if self._is_replay:
            return
        observed = _as_observed(plan)
        if self._shelf is None or not self._shelf.may_be_whole(spec, observed, self._wanted(observed)):
            self._stock.prepare(spec, plan)

    def measure(self, spec: RerankerSpec, plan: Plan) -> Measured:
        """Rank every view that is not known yet, or replay them, and measure.

        Failed rankings are data: they are in the result's ``failures``, and nothing is raised for them.

        Raises:
            InvariError: as :meth:`check`.
        """
        from pytest_invari.measure.measured import Measured

        key = (spec.label, plan)
        if key not in self._measured:
            observations, repeats = self._observe(spec, plan)
            tasks = self.tasks_of(spec, plan)
            subject = subject_of(spec, plan, tasks.name)
            self._measured[key] = Measured(subject, plan, tasks, observations, repeats)
        return self._measured[key]

    def audit(self, spec: RerankerSpec, plan: Plan) -> Audit | None:
        """What a few questions told of a measured reranker; None where none were asked."""
        return self._audited.get(shown_to(spec, plan))

    def tasks_of(self, spec: RerankerSpec, plan: Plan) -> TaskSet:
        """The tasks that a subject is measured on, once it is checked or measured; a replay has its own."""
        return self._replayed[shown_to(spec, plan)][1] if self._is_replay else self.tasks(plan)

    def fingerprint(self, spec: RerankerSpec, plan: Plan) -> Mapping[str, Scalar]:
        """What a measured reranker says of itself, flat, without secrets; of a replay, what was recorded."""
        if self._is_replay:
            return self._replayed[shown_to(spec, plan)][0].manifest.reranker
        return flatten(fingerprint_of(self._stock.reranker(spec, plan), spec.label))

    @contextmanager
    def asking(self, spec: RerankerSpec, plan: Plan, task: Task, most: int) -> Iterator[Rank]:
        """Have a measured reranker rank some candidates of one query, in any order, up to *most* times.

        Nothing of it is recorded: records hold whole lists.
        """
        self._stock.prepare(spec, plan)
        reranker = self._stock.reranker(spec, plan)
        costs = self._asked_besides.setdefault((spec.label, plan), [])
        what = f"{without_secrets(spec.label)}, query {task.query_id!r} in other orders"
        with bar(most, what, unit="view", show=self._show) as progress:

            def rank(shown: Order) -> Order | None:
                [ranking] = rank_all(reranker, [request_for(task, View("", shown))])
                costs.append(ranking.cost)
                progress.advance()
                return tuple(ranking.order) if ranking.status in VALID else None

            yield rank

    def asked_besides(self, spec: RerankerSpec, plan: Plan) -> Sequence[Cost]:
        """What each ranking took that :meth:`asking` has had made so far."""
        return tuple(self._asked_besides.get((spec.label, plan), ()))

    def _observe(self, spec: RerankerSpec, plan: Plan) -> _Answers:
        shown = _as_observed(plan)
        key = (spec.label, shown)
        if key not in self._observed:
            self._observed[key] = (self._replay if self._is_replay else self._rank)(spec, shown)
        return self._observed[key]

    def _rank(self, spec: RerankerSpec, plan: Plan) -> _Answers:
        tasks = self.tasks(plan)
        views = self._sampled(plan, tasks)
        self.prepare(spec, plan)
        record, is_whole = None, False
        if self._shelf is not None:
            record, is_whole = self._shelf.open(spec, plan, self._wanted(plan))
        if not is_whole:
            self._stock.prepare(spec, plan)
        reranker = self._stock.reranker(spec, plan)
        subject = subject_of(spec, plan, tasks.name)
        what = f"{subject.reranker} on {subject.dataset}, K={subject.k}"
        if self._audits:
            self._make_audit(spec, plan, record, _keys(views), what)
        ranked = partial(observe, store=record, retry_failed=self._retry_failed, show=self._show)
        observations = ranked(reranker, tasks, views, description=what)
        repeats = []
        if plan.repeats:
            again = reranker if is_whole else self._stock.anew(spec, plan)
            for suffix, batch in ((_ALONE, 1), (_BATCH, plan.repeats)):
                asked = plan.repeated(views, suffix)
                repeats += ranked(again, tasks, asked, description=f"{what}, again", batch_size=batch)
        if record is not None:
            _warn_of_disagreements(record)
        return observations, repeats

    def _wanted(self, plan: Plan) -> set[ObservationKey]:
        """What identifies the observations that a plan asks for."""
        views = self._sampled(plan, self.tasks(plan))
        return _keys(views, *(plan.repeated(views, suffix) for suffix in (_ALONE, _BATCH)))

    def _make_audit(
        self, spec: RerankerSpec, plan: Plan, record: Record | None, keys: set[ObservationKey], what: str
    ) -> None:
        """Take the audit from the records, or make one, unless all rankings are there without one."""
        key = shown_to(spec, plan)
        kept = record.notes.audit() if record is not None else None
        if kept is None and (record is None or keys - record.read().keys()):
            with bar(1, f"audit of {what}", unit="audit", show=self._show) as progress:
                kept = audit_reranker(lambda: self._stock.anew(spec, plan), self.tasks(plan).tasks)
                progress.advance()
            if record is not None and not kept.was_away:
                record.notes.keep_audit(kept)
        if kept is not None:
            self._audited[key] = kept

    def _replay(self, spec: RerankerSpec, plan: Plan) -> _Answers:
        key = shown_to(spec, plan)
        if key not in self._replayed:
            assert self._shelf is not None
            self._replayed[key] = self._shelf.find(spec, plan)
        record, tasks = self._replayed[key]
        if self._audits and (audit := record.notes.audit()) is not None:
            self._audited[key] = audit
        kept = record.read(strict=True)
        _warn_of_disagreements(record)
        views = self._imported(plan, tasks, kept) if record.is_imported else self._sampled(plan, tasks)
        repeats = [
            seen
            for suffix in (_ALONE, _BATCH)
            for seen in stored(kept, tasks, plan.repeated(views, suffix), str(record.path))
        ]
        return stored(kept, tasks, views, str(record.path)), repeats

    def _sampled(self, plan: Plan, tasks: TaskSet) -> Mapping[str, list[View]]:
        if plan not in self._views:
            self._views[plan] = plan.sample(tasks)
        return self._views[plan]

    def _imported(
        self, plan: Plan, tasks: TaskSet, kept: Mapping[ObservationKey, Observation]
    ) -> Mapping[str, list[View]]:
        """The plan's views in the orders that rankings made elsewhere were made of."""
        views = (
            {task.query_id: [View(name, task.ids) for name in plan.bank] for task in tasks.tasks}
            if plan.bank
            else self._sampled(plan, tasks)
        )
        return as_shown(views, kept)


def _warn_of_disagreements(record: Record) -> None:
    if found := record.disagreements:
        warnings.warn(
            f"{record.path}: several runs at once have ranked {counted(len(found), 'view')} and do not "
            "agree; the first answer is kept, which may be another run's",
            InvariRecordsWarning,
            stacklevel=3,
        )


def _as_observed(plan: Plan) -> Plan:
    """The same for all plans that observe the same.

    How failures and ties count, how intervals are made and which views are compared with which changes
    nothing about it.
    """
    return replace(plan, on_failure="strict", ties="broken", interval="bca", probe=(), target=())


def _keys(*shown: Mapping[str, list[View]]) -> set[ObservationKey]:
    """What identifies the observations of these views."""
    return {(query_id, view.name) for views in shown for query_id, drawn in views.items() for view in drawn}
