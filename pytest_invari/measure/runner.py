"""The runner: shows rerankers their views or takes these from records, and measures."""

from __future__ import annotations

import warnings
from collections import defaultdict
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_invari.errors import InvariError, InvariRecordsWarning, counted
from pytest_invari.measure.loading import ALONE, BATCH, Loader, keys_of
from pytest_invari.observation.observe import in_recorded_orders, observe, request_for, stored
from pytest_invari.observation.views import View
from pytest_invari.progress import bar
from pytest_invari.protocol import rank_all
from pytest_invari.protocol.capabilities import check_reranker, fingerprint_of
from pytest_invari.settings import ModelSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_invari.measure.loading import Views
    from pytest_invari.measure.measured import Measured
    from pytest_invari.measure.resume import RecordStore
    from pytest_invari.measure.subject import Subject
    from pytest_invari.observation.audit import Audit
    from pytest_invari.observation.observation import Observation, ObservationKey
    from pytest_invari.observation.plan import Plan
    from pytest_invari.observation.witness import Order, Rank
    from pytest_invari.protocol import Cost
    from pytest_invari.records.manifest import Scalar
    from pytest_invari.records.record import Record
    from pytest_invari.registry.registry import Registry
    from pytest_invari.tasks.task import Task, TaskSet


@dataclass
class _RankingState:
    """What there is of a subject so far.

    ``replayed`` (its record and tasks) and ``audit`` are kept under :attr:`Subject.shown_lists`, and
    ``observed`` (the observations of all views, and those of the views that were ranked again) under
    :attr:`Subject.observed`, because subjects share them. ``further_costs`` are those of the rankings that
    were made besides.
    """

    replayed: tuple[Record, TaskSet] | None = None
    audit: Audit | None = None
    observed: tuple[list[Observation], list[Observation]] | None = None
    measured: Measured | None = None
    further_costs: list[Cost] = field(default_factory=list)


class Runner:
    """Measures subjects, each once in its life, and shares loaded models and data between them.

    Args:
        registry: where names are looked up.
        settings: of the language model.
        records: keep every ranking in this folder, and go on from what is there.
        replay: take every ranking from *records*; nothing is built and no model is loaded.
        retry_failed: rank again what *records* hold as failed.
        show_progress: None shows bars except in workers of pytest-xdist.
        shared: loaded models, where other runners shall have the same.
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
        settings = settings or ModelSettings()
        self._loader = Loader(registry, settings, {} if shared is None else shared)
        self._records: RecordStore | None = None
        if records is not None:
            from pytest_invari.measure.resume import RecordStore

            self._records = RecordStore(records, self._loader, settings, retry_failed)
        self.is_replay = replay
        self._retry_failed = retry_failed
        self._show = show_progress
        self._audits = audits
        self._states: defaultdict[Subject, _RankingState] = defaultdict(_RankingState)

    def check(self, subject: Subject, *, is_baseline: bool = False) -> None:
        """Refuse what can be refused before a model is loaded; a replay is read and checked whole.

        A replay may lack a *baseline*: it was never ranked where the reranker under test failed, or where
        the run was of other criteria. :meth:`measure` then raises for the criteria that need it.

        Raises:
            InvariError: see there.
        """
        if self.is_replay:
            with suppress(InvariError) if is_baseline else nullcontext():
                self._observe(subject.observed)
            return
        self.check_tasks(subject.plan)
        if self._records is not None:
            self._records.check(subject)
        check_reranker(self._loader.reranker(subject), f"reranker {subject.reranker.label!r}")

    def check_tasks(self, plan: Plan) -> None:
        """Refuse lists that a plan cannot be carried out on; a replay has lists of its own.

        Raises:
            InvariError: they cannot be loaded, or a list has too few orders for so many views.
        """
        if not self.is_replay:
            plan.require_orders(self._loader.tasks(plan))

    def prepare(self, subject: Subject) -> None:
        """Load what the reranker needs, once.

        A replay needs nothing, nor does a run whose records hold all rankings, unless the reranker must be
        loaded to say which records are its own.

        Raises:
            InvariError: it cannot be loaded, or the records are damaged.
        """
        if self.is_replay:
            return
        if self._records is None or not self._records.may_be_complete(subject.observed):
            self._loader.prepare(subject)

    def measure(self, subject: Subject) -> Measured:
        """Rank every view that is not known yet, or replay them, and measure.

        Failed rankings are data: they are in the result's ``failures``, and nothing is raised for them.

        Raises:
            InvariError: as :meth:`check`.
        """
        from pytest_invari.measure.measured import Measured

        state = self._states[subject]
        if state.measured is None:
            observations, repeats = self._observe(subject.observed)
            tasks = self.tasks(subject)
            state.measured = Measured(subject.name(tasks.name), subject.plan, tasks, observations, repeats)
        return state.measured

    def audit(self, subject: Subject) -> Audit | None:
        """What a few questions showed of a measured reranker; None where none were asked."""
        return self._states[subject.shown_lists].audit

    def tasks(self, subject: Subject) -> TaskSet:
        """The tasks that a subject is measured on; a replay has its own.

        Raises:
            InvariError: they cannot be loaded, or are no possible tasks.
        """
        return self._recorded(subject)[1] if self.is_replay else self._loader.tasks(subject.plan)

    def fingerprint(self, subject: Subject) -> Mapping[str, Scalar]:
        """What a measured reranker says of itself, flat, without secrets; of a replay, what was recorded."""
        if self.is_replay:
            return self._recorded(subject)[0].manifest.reranker
        from pytest_invari.records.manifest import flatten

        return flatten(fingerprint_of(self._loader.reranker(subject), subject.reranker.label))

    @contextmanager
    def ranking_again(self, subject: Subject, task: Task, most: int) -> Iterator[Rank]:
        """Have a measured reranker rank some candidates of one query, in any order, up to *most* times.

        Nothing of it is recorded: records hold whole lists.
        """
        self._loader.prepare(subject)
        reranker = self._loader.reranker(subject)
        costs = self._states[subject].further_costs
        what = f"{subject.shown_reranker}, query {task.query_id!r} in other orders"
        with bar(most, what, unit="view", show=self._show) as progress:

            def rank(shown: Order) -> Order | None:
                [ranking] = rank_all(reranker, [request_for(task, View("", shown))])
                costs.append(ranking.cost)
                progress.advance()
                return tuple(ranking.order) if ranking.is_valid else None

            yield rank

    def further_costs(self, subject: Subject) -> Sequence[Cost]:
        """What each ranking took that was made by :meth:`ranking_again` so far."""
        return tuple(self._states[subject].further_costs)

    def _observe(self, subject: Subject) -> tuple[list[Observation], list[Observation]]:
        """The observations of all views, and those of the views that were ranked again."""
        state = self._states[subject]
        if state.observed is None:
            state.observed = (self._replay if self.is_replay else self._rank)(subject)
        return state.observed

    def _rank(self, subject: Subject) -> tuple[list[Observation], list[Observation]]:
        plan = subject.plan
        tasks = self._loader.tasks(plan)
        views = self._loader.views(plan, tasks)
        self.prepare(subject)
        record, is_complete = None, False
        if self._records is not None:
            record, is_complete = self._records.open(subject)
        if not is_complete:
            self._loader.prepare(subject)
        reranker = self._loader.reranker(subject)
        what = f"{subject.shown_reranker} on {tasks.name}, K={plan.k}"
        if self._audits:
            self._audit(subject, record, keys_of(views), what)
        ranked = partial(observe, store=record, retry_failed=self._retry_failed, show=self._show)
        observations = ranked(reranker, tasks, views, description=what)
        repeats = []
        if plan.repeats:
            another = reranker if is_complete else self._loader.build_again(subject)
            for suffix, size in ((ALONE, 1), (BATCH, plan.repeats)):
                again = plan.repeated(views, suffix)
                repeats += ranked(another, tasks, again, description=f"{what}, again", batch_size=size)
        if record is not None:
            _warn_of_disagreements(record)
        return observations, repeats

    def _audit(self, subject: Subject, record: Record | None, keys: set[ObservationKey], what: str) -> None:
        """Take the audit from the records, or make one, unless all rankings are there without one."""
        kept = record.notes.audit() if record is not None else None
        if kept is None and (record is None or keys - record.read().keys()):
            from pytest_invari.observation.audit import audit_reranker

            with bar(1, f"audit of {what}", unit="audit", show=self._show) as progress:
                tasks = self._loader.tasks(subject.plan).tasks
                kept = audit_reranker(lambda: self._loader.build_again(subject), tasks)
                progress.advance()
            if record is not None and not kept.was_away:
                record.notes.keep_audit(kept)
        if kept is not None:
            self._states[subject.shown_lists].audit = kept

    def _replay(self, subject: Subject) -> tuple[list[Observation], list[Observation]]:
        plan = subject.plan
        record, tasks = self._recorded(subject)
        if self._audits and (audit := record.notes.audit()) is not None:
            self._states[subject.shown_lists].audit = audit
        kept = record.read(strict=True)
        _warn_of_disagreements(record)
        views = self._replayed_views(plan, record, tasks, kept)
        repeats = [
            seen
            for suffix in (ALONE, BATCH)
            for seen in stored(kept, tasks, plan.repeated(views, suffix), str(record.path))
        ]
        return stored(kept, tasks, views, str(record.path)), repeats

    def _recorded(self, subject: Subject) -> tuple[Record, TaskSet]:
        """The record that a replay takes, and its tasks."""
        state = self._states[subject.shown_lists]
        if state.replayed is None:
            assert self._records is not None
            state.replayed = self._records.find(subject)
        return state.replayed

    def _replayed_views(
        self, plan: Plan, record: Record, tasks: TaskSet, kept: Mapping[ObservationKey, Observation]
    ) -> Views:
        """The plan's views; of rankings made elsewhere, in the orders that these were made of."""
        if not record.is_imported:
            return self._loader.views(plan, tasks)
        if plan.bank:
            views: Views = {
                task.query_id: [View(name, task.ids) for name in plan.bank] for task in tasks.tasks
            }
        else:
            views = self._loader.views(plan, tasks)
        return in_recorded_orders(views, kept)


def _warn_of_disagreements(record: Record) -> None:
    if found := record.disagreements:
        warnings.warn(
            f"{record.path}: several runs at once have ranked {counted(len(found), 'view')} and do not "
            "agree; the first answer is kept, which may be another run's",
            InvariRecordsWarning,
            stacklevel=3,
        )
