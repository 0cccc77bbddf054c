"""The bench of one process: measures each subject once for all of its checks, and remembers what broke."""

from __future__ import annotations

import math
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from pytest_invari.criteria.criterion import BASELINE
from pytest_invari.criteria.evidence import Evidence
from pytest_invari.criteria.judgement import Judgement, with_multiplicity
from pytest_invari.errors import InvariError, UnknownNameError
from pytest_invari.metrics.standing import table_metrics
from pytest_invari.observation.views import described
from pytest_invari.protocol.usercode import describe_error
from pytest_invari.reports.html.data import material
from pytest_invari.reports.subjects import Summary, summarise, witness_costs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_invari.measure.measured import Measured
    from pytest_invari.measure.runner import Runner
    from pytest_invari.metrics.catalog import Analysis
    from pytest_invari.observation.plan import Plan
    from pytest_invari.records.manifest import Scalar
    from pytest_invari.registry.spec import RerankerSpec
    from pytest_invari.suitefile.checks import Check
    from pytest_invari.tasks.task import TaskSet


_Subject = tuple[str, "Plan"]


class Judging:
    """What items share. A subject that could not be loaded or measured is not tried again.

    Args:
        laboratory: where subjects are measured.
        checks: those of the run.
        strict: whether an undecided check fails.
        unselected: checks of the same suites that the user has not asked for; failures are judged among all.
        changes: what is measured and not judged here.
        pictures: whether summaries hold what the pictures of a page are drawn from.
    """

    def __init__(
        self,
        laboratory: Runner,
        checks: Iterable[Check],
        strict: bool,
        unselected: Iterable[Check] = (),
        changes: Iterable[Check] = (),
        pictures: bool = False,
    ) -> None:
        self.strict = strict
        self._pictures = pictures
        self._laboratory = laboratory
        self._checks = tuple(checks)
        self._all = (*self._checks, *changes)
        self._subjects: dict[tuple[str, str, Plan], list[Check]] = {}
        for check in (*self._checks, *unselected):
            self._subjects.setdefault(_subject_of(check), []).append(check)
        self._judgements: dict[str, Judgement] = {}
        self._prepared: set[_Subject] = set()
        self._measured: dict[_Subject, Measured] = {}
        self._summaries: dict[_Subject, Summary] = {}
        self._broken: dict[_Subject, str] = {}

    def check(self) -> None:
        """Refuse what can be refused before a model is loaded.

        Raises:
            InvariError: as :meth:`Runner.check`.
        """
        for plan, check in {check.plan: check for check in self._all}.items():
            with _written_at(_place_of_dataset(check), UnknownNameError):
                self._laboratory.check_tasks(plan)
        tested = {(check.reranker, check.plan) for check in self._all}
        checked = set()
        for check in self._all:
            for spec in _specs(check):
                subject = (spec, check.plan)
                if subject not in checked:
                    checked.add(subject)
                    with _written_at(_place_of_baseline(check) if spec is check.baseline else ""):
                        self._laboratory.check(spec, check.plan, is_baseline=subject not in tested)

    def prepare(self, check: Check) -> None:
        """Load the check's reranker and its baseline; a fault is told by :meth:`interval`."""
        for spec in _specs(check):
            subject = (spec.label, check.plan)
            if subject not in self._prepared and subject not in self._broken:
                with _Remembered(self._broken, subject):
                    self._laboratory.prepare(spec, check.plan)
                self._prepared.add(subject)

    def is_measured(self, check: Check) -> bool:
        """Whether nothing is left to measure for this check."""
        if check.criterion.may_ask and check.id not in self._judgements:
            return False
        subjects = [(spec.label, check.plan) for spec in _specs(check)]
        return all(subject in self._measured or subject in self._broken for subject in subjects)

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
        subject = [each for each in self._subjects[_subject_of(check)] if each.criterion.metrics]
        family = [self._judged(other).p_fail for other in subject if other.baseline == check.baseline]
        return with_multiplicity(found, [p for p in family if not math.isnan(p)], of=len(subject))

    def measured(self, check: Check) -> Measured | str:
        """What was measured of the check's reranker, or the fault that leaves nothing."""
        return self._measure(check.reranker, check)

    def tasks_of(self, check: Check) -> TaskSet:
        """The tasks that the check's reranker is measured on, once :meth:`check` has been."""
        return self._laboratory.tasks_of(check.reranker, check.plan)

    def fingerprint(self, check: Check) -> Mapping[str, Scalar]:
        """What the check's reranker, once measured, says of itself."""
        return self._laboratory.fingerprint(check.reranker, check.plan)

    def _judged(self, check: Check) -> Judgement:
        """The judgement of a check by itself."""
        if check.id not in self._judgements:
            self._judgements[check.id] = self._judge(check)
        return self._judgements[check.id]

    def _judge(self, check: Check) -> Judgement:
        evidence = self._evidence(check)
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
        for spec in _specs(check):
            outcome = self._measure(spec, check)
            if isinstance(outcome, str):
                whose = "" if spec is check.reranker else f"baseline {check.shown_baseline}: "
                return f"{whose}{outcome}"
            measured.append(outcome)
        return Evidence(
            measured[0],
            measured[1] if check.baseline else None,
            check.suite.min_queries,
            check.suite.max_undefined,
            self._note(check),
            None
            if self._laboratory.is_replay
            else partial(self._laboratory.asking, check.reranker, check.plan),
        )

    def _note(self, check: Check) -> str:
        """What a verdict has to say of rankings that failed and were not held against the reranker."""
        measured = self._measured.get((check.reranker.label, check.plan))
        if measured is None:
            return ""
        if check.plan.on_failure == "strict" or not measured.failure_count:
            return ""
        return f"{_failures(measured)}; on_failure = {check.plan.on_failure}"

    def summaries(self, check: Check) -> list[Summary]:
        """What was measured of the check's reranker and its baseline."""
        found: list[Summary] = []
        for spec in _specs(check):
            subject = (spec.label, check.plan)
            if subject not in self._measured:
                continue
            if subject not in self._summaries:
                alike = [other for other in self._all if other.plan == check.plan]
                wanted = [metric for other in alike for metric in other.criterion.metrics]
                wanted += [metric for other in alike for metric in other.suite.report]
                metrics = table_metrics(wanted, **check.plan.table)
                shown = check.shown_reranker if spec is check.reranker else check.shown_baseline
                summary = summarise(
                    self._measured[subject],
                    shown,
                    check.shown_dataset,
                    metrics,
                    self._analyses(check),
                    self._laboratory.audit(spec, check.plan),
                )
                if self._pictures:
                    summary["pictures"] = material(self._measured[subject])
                self._summaries[subject] = summary
            # Each witness of the subject takes rankings of its own.
            besides = witness_costs(self._laboratory.asked_besides(spec, check.plan))
            found.append({**self._summaries[subject], **besides})
        return found

    def _analyses(self, check: Check) -> tuple[Analysis, ...]:
        """Those that suites report of these lists, but for routing on lists without a target to approach."""
        stratum = self._measured[check.reranker.label, check.plan].tasks.stratum
        alike = [other for other in self._all if other.plan == check.plan]
        wanted = dict.fromkeys(each for other in alike for each in other.suite.analyses)
        return tuple(each for each in wanted if each != "routing" or stratum == "controlled")

    def _measure(self, spec: RerankerSpec, check: Check) -> Measured | str:
        subject = (spec.label, check.plan)
        if subject not in self._measured and subject not in self._broken:
            with _Remembered(self._broken, subject):
                self._measured[subject] = self._laboratory.measure(spec, check.plan)
        if subject in self._broken:
            return self._broken[subject]
        measured = self._measured[subject]
        if check.plan.on_failure == "strict" and not check.criterion.judges_failures:
            return _failures(measured) or measured
        return measured


class _Remembered:
    """Notes an error of a subject. A user's mistake is then told in one line; another is raised, once."""

    def __init__(self, broken: dict[_Subject, str], subject: _Subject) -> None:
        self._broken, self._subject = broken, subject

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, Exception):
            return False
        if isinstance(error, InvariError):
            self._broken[self._subject] = f"nothing measured: {error}"
            return True
        self._broken[self._subject] = f"nothing measured: {describe_error(error)}"
        return False


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
    is_suites = check.baseline is not None and check.baseline.label == suite.baseline
    return f"{suite.place('suite', 'baseline')}: [suite]: baseline: " if is_suites else ""


def _subject_of(check: Check) -> tuple[str, str, Plan]:
    return check.suite.name, check.reranker.label, check.plan


def _specs(check: Check) -> list[RerankerSpec]:
    return [check.reranker] if check.baseline is None else [check.reranker, check.baseline]


def _failures(measured: Measured) -> str:
    """How many rankings failed, and the first one's query, view and fault; empty when none did."""
    if not measured.failure_count:
        return ""
    first = measured.failures[0]
    total = len(measured.tasks.tasks) * measured.plan.views
    return (
        f"{measured.failure_count} of {total} rankings failed, the first for query {first.query_id!r}, "
        f"{described(first.view)}: {_short(first.fault)}"
    )


def _short(fault: str, most: int = 300) -> str:
    """A reranker's own words, at a length that leaves one line readable."""
    return fault if len(fault) <= most else f"{fault[:most]}…"
