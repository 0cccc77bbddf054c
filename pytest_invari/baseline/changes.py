"""From the checks of a run to its comparisons: each metric of a subject with its stored values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_invari.baseline.file import Entry
from pytest_invari.baseline.regression import RegressionCriterion
from pytest_invari.criteria.metric import MetricCriterion
from pytest_invari.errors import InvariError
from pytest_invari.suitefile.suite import AT_BASELINE, Check, Expansion, LeftOut


def with_changes(
    expansion: Expansion, path: Path, stored: Mapping[str, Entry], margin: float | None
) -> Expansion:
    """The same with every subject's comparisons: of its criteria, then of the suite's reported metrics.

    What the baseline has values for and the suites ask for no more is left out, and lost.

    Args:
        expansion: of the suites.
        path: of the baseline.
        stored: its entries by their ids.
        margin: in place of each criterion's own.

    Raises:
        InvariError: a criterion has the name of a reported metric and measures another.
    """
    changes: dict[str, Check] = {}
    left_out = list(expansion.left_out)
    for check in (*expansion.checks, *_reports(expansion)):
        criterion = check.criterion
        if reason := criterion.why_not_stored:
            name = f"{criterion.name}{AT_BASELINE}"
            left_out.append(LeftOut(check.suite.name, name, check.subject.label, reason))
            continue
        assert isinstance(criterion, MetricCriterion)
        regression = RegressionCriterion(
            name=criterion.name,
            place=criterion.place,
            metric=criterion.metric,
            margin=criterion.regression_margin if margin is None else margin,
            path=path,
            entry_id=entry_id(check),
            entry=stored.get(entry_id(check)),
        )
        # Only the reranker under test is compared, so that another baseline need not be loaded.
        change = replace(check, criterion=regression, baseline_subject=None)
        if change.id in changes:
            raise InvariError(
                f"{criterion.place}: criterion {criterion.name!r} has the name of a metric under report; "
                "rename it"
            )
        changes[change.id] = change
    return replace(expansion, changes=tuple(changes.values()), left_out=tuple(left_out))


def with_lost(expansion: Expansion, path: Path, stored: Iterable[str]) -> Expansion:
    """The same with what the baseline has values for and the suites ask for no more: left out, and lost."""
    reason = f"{path} has values of it, and the suite asks for it no more; --invari-save={path} drops them"
    lost = [
        LeftOut(suite, f"{metric}{AT_BASELINE}", subject, reason, is_lost=True)
        for suite, metric, subject in forgotten(stored, expansion.items)
    ]
    return replace(expansion, left_out=(*expansion.left_out, *lost))


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
        wanted = {each.name for criterion in stored for each in criterion.metrics}
        if metric not in wanted | {each.name for each in suite.report}:
            found.append((name, metric, subject))
    return found


def _reports(expansion: Expansion) -> list[Check]:
    """The reported metrics of each subject that no criterion of it measures."""
    subjects = {(check.suite.name, check.subject): check for check in expansion.checks}
    measured = {entry_id(check) for check in expansion.checks if check.criterion.metrics}
    return [each for check in subjects.values() for each in reported(check) if entry_id(each) not in measured]
