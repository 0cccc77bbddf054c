"""From the checks of a run to its changes: each metric of a subject, to be compared with stored values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from pytest_invari.criteria.metric import MetricCriterion
from pytest_invari.errors import InvariError
from pytest_invari.suitefile.checks import AT_BASELINE, Check, Expansion, LeftOut


@dataclass(frozen=True)
class Change(Check):
    """The metric of a check, compared with its stored values; it may be worse by ``margin``."""

    criterion: MetricCriterion
    margin: float = 0.0

    @property
    def name(self) -> str:
        """The item's name: ``loc@baseline[sgs-movielens_small-K10]``."""
        return f"{self.criterion.name}{AT_BASELINE}[{self.subject.label}]"


def with_changes(expansion: Expansion, margin: float | None) -> Expansion:
    """The same with every subject's changes: those of its criteria, then of the suite's reported metrics.

    Args:
        expansion: of the suites.
        margin: in place of each criterion's own.

    Raises:
        InvariError: a criterion has the name of a reported metric and measures another.
    """
    changes: dict[str, Change] = {}
    left_out = list(expansion.left_out)
    for check in (*expansion.checks, *_reports(expansion)):
        if reason := check.criterion.why_not_stored:
            name = f"{check.criterion.name}{AT_BASELINE}"
            left_out.append(LeftOut(check.suite.name, name, check.subject.label, reason))
            continue
        assert isinstance(check.criterion, MetricCriterion)
        # Only the reranker under test is compared, so that another baseline need not be loaded.
        values = {each.name: getattr(check, each.name) for each in fields(Check)} | {"baseline_subject": None}
        allowed = check.criterion.regression_margin if margin is None else margin
        change = Change(**values, margin=allowed)
        if change.id in changes:
            raise InvariError(
                f"{check.criterion.place}: criterion {check.criterion.name!r} has the name of a metric under "
                "report; rename it"
            )
        changes[change.id] = change
    return replace(expansion, changes=tuple(changes.values()), left_out=tuple(left_out))


def reported(check: Check) -> list[Check]:
    """The suite's reported metrics of a check's subject, as criteria that demand nothing."""
    return [
        replace(
            check,
            baseline_subject=None,
            criterion=MetricCriterion(
                name=metric.name,
                place=check.suite.place("suite", "report"),
                metric=metric,
                comparison="at_least",
                value=metric.low,
            ),
        )
        for metric in check.suite.report
    ]


def entry_id(check: Check) -> str:
    """By what a metric of a subject is known in a baseline: ``recsys26::loc[sgs-movielens_small-K10]``."""
    [metric] = check.criterion.metrics
    return f"{check.suite.name}::{metric.name}[{check.subject.label}]"


def forgotten(entries: Iterable[str], checks: Iterable[Check]) -> list[tuple[str, str, str]]:
    """Those of a baseline's entries that no run compares any more, as suite, metric and subject.

    They are of the subjects of *checks*, and of a metric that their suite asks for in no profile, neither in
    a criterion nor under ``report``. Entries of other suites, rerankers, data sets and lengths are not meant.
    """
    suites = {(check.suite.name, check.subject.label): check.suite for check in checks}
    found = []
    for entry in entries:
        name, _, rest = entry.partition("::")
        metric, _, subject = rest.removesuffix("]").partition("[")
        suite = suites.get((name, subject))
        if suite is None:
            continue
        stored = [each for each in suite.criteria if not each.why_not_stored]
        asked = {each.name for criterion in stored for each in criterion.metrics}
        if metric not in asked | {each.name for each in suite.report}:
            found.append((name, metric, subject))
    return found


def _reports(expansion: Expansion) -> list[Check]:
    """The reported metrics of each subject that no criterion of it measures."""
    subjects = {(check.suite.name, check.subject): check for check in expansion.checks}
    measured = {entry_id(check) for check in expansion.checks if check.criterion.metrics}
    return [each for check in subjects.values() for each in reported(check) if entry_id(each) not in measured]
