"""The tables at the head of the page: each criterion's verdict, comparisons, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from pytest_invari.baseline.regression import RegressionCriterion
from pytest_invari.criteria.judgement import remarks_of
from pytest_invari.reports.rows import closing_lines, grouped_left_out, outcome_line, verdict_counts
from pytest_invari.reports.run import Result
from pytest_invari.suitefile.suite import wording
from pytest_invari.text import harmless, printable

if TYPE_CHECKING:
    from pytest_invari.reports.run import Results, Run
    from pytest_invari.suitefile.suite import Check


_KINDS = {
    **{"pass": "good", "fail": "bad", "undecided": "open", "skipped": "open", "xfailed": "open"},
    **{"improved": "good", "same": "good", "regressed": "bad", "missing": "bad"},
}


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """One verdict: the word, what it is about, and why. ``kind`` is good, bad or open, for its mark."""

    word: str
    kind: str
    name: str
    figure: str
    demand: str
    reasons: Sequence[str]


@dataclass(frozen=True, slots=True)
class Head:
    """What stands around the pictures. ``left_out`` has criterion, subjects and reason.

    ``made_of`` says what the page was made by and from.
    """

    suites: Sequence[str]
    counts: str
    criteria: Sequence[VerdictRow]
    outcomes: str
    changes: Sequence[VerdictRow]
    left_out: Sequence[tuple[str, str, str]]
    lines: Sequence[str]
    made_of: Sequence[str]


def verdicts(run: Run) -> Head:
    """Gather the head of the page."""
    results = run.results
    return Head(
        _suites(results),
        verdict_counts(run),
        [_criterion(result) for result in results.criteria],
        outcome_line(run),
        [_change(result) for result in results.comparisons],
        [
            (printable(criterion), printable(", ".join(subjects)), printable(reason))
            for (criterion, reason), subjects in grouped_left_out(run.expansion.left_out).items()
        ],
        closing_lines(results.subjects, run.settings.records),
        [f"pytest-invari {version('pytest-invari')}", *_hashes(results)],
    )


def _hashes(results: Results) -> list[str]:
    """The text of a suite decides what was asked; its hash tells whether two pages asked the same."""
    found = {check.suite.name: check.suite.sha256 for check in _checks(results)}
    return [printable(f"suite {name}: SHA-256 {digest}") for name, digest in found.items()]


def _checks(results: Results) -> list[Check]:
    return [result.check for result in (*results.criteria, *results.comparisons)]


def _suites(results: Results) -> list[str]:
    checks = _checks(results)
    found = {f"{check.suite.name} ({check.profile.name})": check.suite.title for check in checks}
    return [printable(f"{name}: {title}" if title else name) for name, title in found.items()]


def _criterion(result: Result) -> VerdictRow:
    check, judgement = result.check, result.judgement
    words = wording(check, judgement)
    verdict = result.aside or judgement.verdict
    reasons = [harmless(remark) for remark in words.remarks]
    if judgement.verdict == "fail" and check.criterion.why:
        reasons.append(harmless(f"why it is asked: {check.criterion.why}"))
    return VerdictRow(
        verdict, _KINDS[verdict], printable(check.id), harmless(words.figure), harmless(words.demand), reasons
    )


def _change(result: Result) -> VerdictRow:
    """A comparison; its figure is the metric now minus the stored one."""
    check, judgement, criterion = result.check, result.judgement, result.check.criterion
    assert isinstance(criterion, RegressionCriterion)
    shown, reasons = "no figure", []
    if judgement.is_measured:
        shown = criterion.difference(judgement)
        reasons.append(f"{criterion.before_and_now(judgement)}; {criterion.metric.direction} is better")
    reasons += map(harmless, remarks_of(judgement, check.suite.min_queries))
    outcome = result.outcome
    return VerdictRow(outcome, _KINDS[outcome], printable(check.id), shown, criterion.demanded, reasons)
