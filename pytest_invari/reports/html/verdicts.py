"""The tables at the head of the page: each criterion's verdict, comparisons, and what was left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from pytest_invari.baseline.outcomes import remarks
from pytest_invari.metrics.standing import COSTS
from pytest_invari.reports.closing import closing_lines
from pytest_invari.reports.rows import grouped_left_out, outcome_line, verdict_counts
from pytest_invari.reports.run import Result
from pytest_invari.suitefile.checks import wording
from pytest_invari.text import figure, harmless, number, printable

if TYPE_CHECKING:
    from pytest_invari.reports.change_results import ChangeResult
    from pytest_invari.reports.html.page import Page
    from pytest_invari.suitefile.checks import Check


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


def verdicts(page: Page) -> Head:
    """Gather the head of the page."""
    book, settings = page.book, page.settings
    return Head(
        _suites(page),
        verdict_counts(book, settings),
        [_criterion(result) for result in book.results],
        outcome_line(page.changes, settings) if page.changes.results else "",
        [_change(result) for result in page.changes.results],
        [
            (printable(criterion), printable(", ".join(subjects)), printable(reason))
            for (criterion, reason), subjects in grouped_left_out(page.left_out).items()
        ],
        closing_lines(book.subjects, settings.records),
        [f"pytest-invari {version('pytest-invari')}", *_hashes(page)],
    )


def _hashes(page: Page) -> list[str]:
    """The text of a suite decides what was asked; its hash tells whether two pages asked the same."""
    found = {check.suite.name: check.suite.sha256 for check in _checks(page)}
    return [printable(f"suite {name}: SHA-256 {digest}") for name, digest in found.items()]


def _checks(page: Page) -> list[Check]:
    return [
        *(result.check for result in page.book.results),
        *(result.change for result in page.changes.results),
    ]


def _suites(page: Page) -> list[str]:
    checks = _checks(page)
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


def _change(result: ChangeResult) -> VerdictRow:
    """A comparison; its figure is the metric now minus the stored one."""
    change, comparison = result.change, result.comparison
    metric = change.criterion.metric
    counted = metric.family in COSTS
    shown, reasons = "no figure", []
    if not math.isnan(comparison.difference):
        shown = figure(comparison.difference, comparison.low, comparison.high, comparison.n, counted=counted)
        before, now = (number(each, counted=counted) for each in (comparison.before, comparison.now))
        reasons.append(f"{metric.name} was {before} and is {now}; {metric.direction} is better")
    reasons += map(harmless, remarks(change, comparison))
    margin = f"up to {change.margin:g} worse is no regression" if change.margin else "must not be worse"
    outcome = comparison.outcome
    return VerdictRow(outcome, _KINDS[outcome], printable(change.id), shown, margin, reasons)
