"""One run as all reports see it: its results, gathered from the items, and what was not judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pytest

from pytest_invari.criteria.judgement import Judgement
from pytest_invari.reports.models import Rerun, Unjudged
from pytest_invari.reports.subjects import SubjectKey, Summary
from pytest_invari.suitefile.suite import describe

if TYPE_CHECKING:
    from pytest_invari.baseline.entries import MeasuredEntries
    from pytest_invari.settings import Settings
    from pytest_invari.suitefile.suite import Check, Expansion


@dataclass(frozen=True, slots=True)
class Result:
    """One check and what became of it; *aside* is pytest's own word for one that was not to count."""

    check: Check
    judgement: Judgement
    aside: Literal["", "skipped", "xfailed"] = ""

    @property
    def line(self) -> str:
        """The figure, then what was demanded of it: the message of a failing item."""
        return describe(self.check, self.judgement)

    @property
    def outcome(self) -> str:
        """What became of a comparison with a stored baseline; empty of other criteria."""
        return self.check.criterion.outcome(self.judgement)


class Results:
    """The results of a run, gathered from its reports wherever the items ran.

    A check may be reported twice, when a worker of pytest-xdist crashes and another one takes over. The
    failure stays then.
    """

    def __init__(self, expansion: Expansion) -> None:
        self._expansion = expansion
        self._checks = {check.id: check for check in expansion.items}
        self._found: dict[str, Result] = {}
        self._subjects: dict[SubjectKey, Summary] = {}

    def add(self, report: pytest.TestReport) -> None:
        """Take note of an item's report; those of other tests are ignored."""
        transported = getattr(report, "invari", None)
        if transported is not None:
            for values in transported["subjects"]:
                self._add_subject(msgspec.convert(values, Summary))
        check = self._checks.get(report.nodeid)
        if check is None:
            return
        bound = check.criterion.bound(check.plan.k)
        is_expected = report.skipped and hasattr(report, "wasxfail")
        if transported is not None:
            result = Result(check, Judgement(**transported["judgement"]), "xfailed" if is_expected else "")
        elif report.failed:
            result = Result(check, Judgement("fail", bound, reason=why_nothing(report)))
        elif report.skipped:
            judgement = Judgement("undecided", bound, reason=why_nothing(report))
            result = Result(check, judgement, "xfailed" if is_expected else "skipped")
        else:
            return
        known = self._found.get(report.nodeid)
        if known is None or known.judgement.verdict != "fail":
            self._found[report.nodeid] = result

    def _add_subject(self, summary: Summary) -> None:
        known = self._subjects.get(summary.key, summary)
        most = max(known, summary, key=lambda each: each.witness_rankings)
        # Workers that share a baseline find in the records what another has just ranked; that is not old.
        self._subjects[summary.key] = msgspec.structs.replace(
            summary,
            rankings_from_records=min(known.rankings_from_records, summary.rankings_from_records),
            failures_from_records=min(known.failures_from_records, summary.failures_from_records),
            witness_rankings=most.witness_rankings,
            witness_cost=most.witness_cost,
        )

    @property
    def criteria(self) -> list[Result]:
        """Those of the suites' criteria, in their order, whichever order the items ran in."""
        return self._of(self._expansion.checks)

    @property
    def comparisons(self) -> list[Result]:
        """Those of the comparisons with a stored baseline, likewise."""
        return self._of(self._expansion.changes)

    @property
    def subjects(self) -> list[Summary]:
        """Sorted as the checks are: each subject's baseline follows it."""
        order: dict[SubjectKey, None] = {}
        for check in self._checks.values():
            for reranker in (check.shown_reranker, check.shown_baseline):
                order[reranker, check.shown_dataset, check.plan.k] = None
        return [self._subjects[key] for key in order if key in self._subjects]

    def _of(self, checks: Iterable[Check]) -> list[Result]:
        return [self._found[check.id] for check in checks if check.id in self._found]


@dataclass(frozen=True)
class Run:
    """All that a report of a run says, as far as the run has come.

    ``unjudged`` is all that was not judged, ``blamed`` what of it people are told; ``reruns`` are all
    attempts that did not stand, ``flaky`` those of items that did not fail in the end.
    """

    command: str
    settings: Settings
    expansion: Expansion
    results: Results
    entries: MeasuredEntries | None
    unjudged: Sequence[Unjudged]
    blamed: Sequence[Unjudged]
    reruns: Sequence[Rerun]
    flaky: Sequence[Rerun]

    @property
    def has_results(self) -> bool:
        """Whether anything was judged, or should have been and was not."""
        return bool(self.results.criteria or self.results.comparisons or self.blamed)


def plain_values(
    judgement: Judgement, summaries: list[Summary], entries: Mapping[str, Any]
) -> dict[str, Any]:
    """The value that rides on a report as its attribute ``invari``; *entries* are those of a baseline."""
    subjects = [msgspec.to_builtins(summary) for summary in summaries]
    return {"judgement": asdict(judgement), "subjects": subjects, "entries": entries}


def why_nothing(report: pytest.TestReport) -> str:
    """Why an item that failed, was skipped or was expected to fail has no verdict of its own."""
    if report.failed:
        return "nothing measured: " + why_failed(report)
    if hasattr(report, "wasxfail"):
        reason = str(report.wasxfail).removeprefix("reason: ")
        return f"expected to fail: {reason}" if reason else "expected to fail"
    return "skipped: " + _skip_reason(report)


def why_failed(report: pytest.TestReport) -> str:
    """What the error said, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = report.longreprtext if crash is None else crash.message.strip().partition("\n")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("E ").strip() if lines else "no reason was reported"


def _skip_reason(report: pytest.TestReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")
