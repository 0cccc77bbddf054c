"""Judging: each subject is measured once in a process for all of its checks, and what broke is remembered."""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from pytest_invari.criteria.criterion import BASELINE
from pytest_invari.criteria.evidence import Evidence, describe_failures
from pytest_invari.criteria.judgement import Judgement, with_multiplicity
from pytest_invari.errors import InvariError, UnknownNameError
from pytest_invari.metrics.catalog import table_metrics
from pytest_invari.protocol.usercode import describe_error
from pytest_invari.reports.subjects import Summary, sum_costs, summarise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_invari.measure.measured import Measured
    from pytest_invari.measure.runner import Runner
    from pytest_invari.measure.subject import Subject
    from pytest_invari.metrics.metric import Analysis
    from pytest_invari.records.manifest import Scalar
    from pytest_invari.suitefile.suite import Check
    from pytest_invari.tasks.task import TaskSet


@dataclass
class _JudgingState:
    """What has become of a subject; ``fault`` says why nothing is measured."""

    is_prepared: bool = False
    measured: Measured | None = None
    fault: str = ""
    summary: Summary | None = None

    @contextmanager
    def keeping_fault(self) -> Iterator[None]:
        """Keep what goes wrong. A user's mistake is shown in one line later; another is raised, once."""
        try:
            yield
        except InvariError as error:
            self.fault = f"nothing measured: {error}"
        except Exception as error:
            self.fault = f"nothing measured: {describe_error(error)}"
            raise


class Judging:
    """What items share. A subject that could not be loaded or measured is not tried again.

    Args:
        runner: measures subjects.
        checks: those of the run.
        strict: whether an undecided check fails.
        unselected: checks of the same suites that the user has not asked for; failures are judged among all.
        changes: comparisons with a stored baseline, whose failures stand each by itself.
        pictures: whether summaries hold what the pictures of a page are drawn from.
    """

    def __init__(
        self,
        runner: Runner,
        checks: Iterable[Check],
        strict: bool,
        unselected: Iterable[Check] = (),
        changes: Iterable[Check] = (),
        pictures: bool = False,
    ) -> None:
        self.strict = strict
        self._pictures = pictures
        self._runner = runner
        self._checks = tuple(checks)
        self._all = (*self._checks, *changes)
        self._checks_of: dict[tuple[str, Subject], list[Check]] = {}
        for check in (*self._checks, *unselected):
            self._checks_of.setdefault((check.suite.name, check.subject), []).append(check)
        self._judgements: dict[str, Judgement] = {}
        self._states: defaultdict[Subject, _JudgingState] = defaultdict(_JudgingState)

    def check(self) -> None:
        """Refuse what can be refused before a model is loaded.

        Raises:
            InvariError: as :meth:`Runner.check`.
        """
        for plan, check in {check.plan: check for check in self._all}.items():
            with _written_at(_place_of_dataset(check), UnknownNameError):
                self._runner.check_tasks(plan)
        tested = {check.subject for check in self._all}
        checked = set()
        for check in self._all:
            for subject in check.subjects:
                if subject not in checked:
                    checked.add(subject)
                    with _written_at("" if subject is check.subject else _place_of_baseline(check)):
                        self._runner.check(subject, is_baseline=subject not in tested)

    def prepare(self, check: Check) -> None:
        """Load the check's reranker and its baseline; :meth:`judgement` says what goes wrong."""
        for subject in check.subjects:
            state = self._states[subject]
            if not state.is_prepared and not state.fault:
                with state.keeping_fault():
                    self._runner.prepare(subject)
                state.is_prepared = True

    def is_measured(self, check: Check) -> bool:
        """Whether nothing is left to measure for this check."""
        if check.criterion.may_rank_again and check.id not in self._judgements:
            return False
        states = [self._states[subject] for subject in check.subjects]
        return all(state.measured or state.fault for state in states)

    def judgement(self, check: Check) -> Judgement:
        """Measure, unless another check of the same subject has, and judge.

        A failure has to stand among all of the subject's criteria. What another baseline needs may not be
        measured in this run. So each baseline's criteria, and those without any, are a family of their own,
        with the part of the error that their number has in all: what else is selected changes no verdict.
        Kinds of criteria that judge no interval have no part in it.
        """
        found = self._judged(check)
        if found.verdict != "fail" or math.isnan(found.p_fail):
            return found
        alike = [each for each in self._checks_of[check.suite.name, check.subject] if each.criterion.metrics]
        family = [
            self._judged(each).p_fail for each in alike if each.baseline_subject == check.baseline_subject
        ]
        return with_multiplicity(found, [p for p in family if not math.isnan(p)], of=len(alike))

    def measured(self, check: Check) -> Measured | str:
        """What was measured of the check's reranker, or the fault that leaves nothing."""
        return self._measure(check.subject, check)

    def tasks(self, check: Check) -> TaskSet:
        """The tasks that the check's reranker is measured on."""
        return self._runner.tasks(check.subject)

    def fingerprint(self, check: Check) -> Mapping[str, Scalar]:
        """What the check's reranker, once measured, says of itself."""
        return self._runner.fingerprint(check.subject)

    def summaries(self, check: Check) -> list[Summary]:
        """What was measured of the check's reranker and its baseline."""
        found: list[Summary] = []
        for subject in check.subjects:
            state = self._states[subject]
            if state.measured is None:
                continue
            if state.summary is None:
                state.summary = self._summarise(subject, state.measured)
            # Each witness of the subject takes rankings of its own.
            costs = self._runner.further_costs(subject)
            found.append(
                structs.replace(state.summary, witness_rankings=len(costs), witness_cost=sum_costs(costs))
            )
        return found

    def _judged(self, check: Check) -> Judgement:
        """The judgement of a check by itself."""
        if check.id not in self._judgements:
            self._judgements[check.id] = self._judge(check)
        return self._judgements[check.id]

    def _judge(self, check: Check) -> Judgement:
        evidence = check.criterion.fault or self._evidence(check)
        if not isinstance(evidence, str):
            try:
                return check.criterion.judged(evidence)
            except InvariError as error:
                # A kind that ranks more lists, of a reranker that is not there any more.
                evidence = f"not judged: {error}"
        return Judgement("fail", check.criterion.bound(check.plan.k), reason=evidence)

    def _evidence(self, check: Check) -> Evidence | str:
        """What the check's criterion judges, or the fault that leaves nothing."""
        measured = []
        for subject in check.subjects:
            outcome = self._measure(subject, check)
            if isinstance(outcome, str):
                return outcome if subject is check.subject else f"baseline {check.shown_baseline}: {outcome}"
            measured.append(outcome)
        return Evidence(
            measured[0],
            measured[1] if check.baseline_subject else None,
            check.suite.min_queries,
            check.suite.max_undefined,
            _excused_failures(measured[0]),
            None if self._runner.is_replay else partial(self._runner.ranking_again, check.subject),
        )

    def _measure(self, subject: Subject, check: Check) -> Measured | str:
        state = self._states[subject]
        if state.measured is None and not state.fault:
            with state.keeping_fault():
                state.measured = self._runner.measure(subject)
        if state.measured is None:
            return state.fault
        if check.plan.on_failure == "strict" and not check.criterion.judges_failures:
            return describe_failures(state.measured) or state.measured
        return state.measured

    def _summarise(self, subject: Subject, measured: Measured) -> Summary:
        alike = [check for check in self._all if check.plan == subject.plan]
        wanted = [metric for check in alike for metric in check.criterion.metrics]
        wanted += [metric for check in alike for metric in check.suite.report]
        summary = summarise(
            measured,
            subject.shown_reranker,
            subject.shown_dataset,
            table_metrics(wanted, **subject.plan.table),
            _analyses(alike, measured),
            self._runner.audit(subject),
        )
        if self._pictures:
            from pytest_invari.reports.html.data import page_data

            summary.pictures = page_data(measured)
        return summary


def _excused_failures(measured: Measured) -> str:
    """What a verdict has to say of rankings that failed and were not held against the reranker."""
    on_failure = measured.plan.on_failure
    if on_failure == "strict" or not measured.failures:
        return ""
    return f"{describe_failures(measured)}; on_failure = {on_failure}"


def _analyses(checks: Iterable[Check], measured: Measured) -> tuple[Analysis, ...]:
    """Those that suites report of these lists, but for routing on lists without a target to approach."""
    wanted = dict.fromkeys(each for check in checks for each in check.suite.analyses)
    return tuple(each for each in wanted if each != "routing" or measured.tasks.stratum == "controlled")


@contextmanager
def _written_at(place: str, kind: type[InvariError] = InvariError) -> Iterator[None]:
    """Put the *place* that a suite's file names something at before errors of this *kind* about it."""
    try:
        yield
    except kind as error:
        raise InvariError(f"{place}{error}") from error


def _place_of_dataset(check: Check) -> str:
    """File and line, or nothing when the command line names it."""
    if check.plan.dataset not in check.profile.datasets:
        return ""
    return f"{check.suite.place('profile', check.profile.name, 'datasets')}: "


def _place_of_baseline(check: Check) -> str:
    """File and line, or nothing when the command line names it."""
    criterion, suite = check.criterion, check.suite
    if criterion.baseline != BASELINE:
        return f"{criterion.place}: criterion {criterion.name!r}: "
    baseline = check.baseline_subject
    is_suites = baseline is not None and baseline.reranker.label == suite.baseline
    return f"{suite.place('suite', 'baseline')}: [suite]: baseline: " if is_suites else ""
