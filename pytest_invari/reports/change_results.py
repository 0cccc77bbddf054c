"""What became of a run's changes, gathered from its reports wherever items ran, and what is to be stored."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_invari.baseline.changes import forgotten
from pytest_invari.baseline.file import Entry, read_baseline
from pytest_invari.baseline.outcomes import FAILING, BaselineComparison, describe_change, missing
from pytest_invari.reports.run import why_nothing

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pytest_invari.baseline.changes import Change
    from pytest_invari.suitefile.checks import Check


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """One change and what became of it."""

    change: Change
    comparison: BaselineComparison

    @property
    def line(self) -> str:
        """The difference, both values and the reason."""
        return describe_change(self.change, self.comparison)


class ChangeBook:
    """The results of a run's changes, and the entries that its checks and changes were measured for.

    Of a change that is reported twice, because a worker of pytest-xdist crashed, the failure stays.
    """

    def __init__(self, changes: Iterable[Change]) -> None:
        self._changes = {change.id: change for change in changes}
        self._results: dict[str, ChangeResult] = {}
        self._entries: dict[str, Entry] = {}
        self._unmeasured: dict[str, None] = {}
        self.dropped = 0
        """How many entries of the file :meth:`merged` has left out."""

    def add(self, report: pytest.TestReport) -> None:
        """Take note of an item's report; those of other tests are ignored."""
        carried = getattr(report, "invari", None)
        if carried is not None:
            for name, entry in carried["entries"].items():
                if entry is None:
                    self._unmeasured[name] = None
                else:
                    self._entries[name] = Entry(**entry)
        change = self._changes.get(report.nodeid)
        if change is None:
            return
        if carried is not None:
            comparison = BaselineComparison(**carried["change"])
        elif report.failed:
            comparison = missing(why_nothing(report))
        elif report.skipped:
            comparison = BaselineComparison("undecided", reason=why_nothing(report))
        else:
            return
        known = self._results.get(report.nodeid)
        if known is None or known.comparison.outcome not in FAILING:
            self._results[report.nodeid] = ChangeResult(change, comparison)

    @property
    def results(self) -> list[ChangeResult]:
        """In the order of the suites, whichever order the items ran in."""
        return [self._results[name] for name in self._changes if name in self._results]

    @property
    def counts(self) -> dict[str, int]:
        """How many changes there were of each outcome."""
        return dict(Counter(result.comparison.outcome for result in self.results))

    @property
    def measured(self) -> int:
        """How many entries a baseline would store."""
        return len(self._entries)

    @property
    def unmeasured(self) -> list[str]:
        """The entries that a baseline lacks because they could not be measured."""
        return [name for name in self._unmeasured if name not in self._entries]

    def merged(self, path: Path, checks: Iterable[Check]) -> dict[str, Entry]:
        """The entries of the file at *path*, where there is one, with those of this run in their places.

        Of the subjects that this run stores, those are dropped whose metric the suites of *checks* ask for no
        more.

        Raises:
            InvariError: the file is no baseline.
        """
        known = read_baseline(path) if path.exists() else {}
        stored = {_subject_of(name) for name in self._entries}
        lost = [f"{suite}::{metric}[{subject}]" for suite, metric, subject in forgotten(known, checks)]
        dropped = {name for name in lost if _subject_of(name) in stored}
        self.dropped = len(dropped)
        return {name: entry for name, entry in known.items() if name not in dropped} | self._entries

    def report(self) -> list[dict[str, Any]]:
        """The part ``changes`` of the JSON report; what is undefined is null."""
        return [_plain(result) for result in self.results]


def _subject_of(entry: str) -> tuple[str, str]:
    """Suite and subject of an entry's id."""
    return entry.partition("::")[0], entry.partition("[")[2]


def _plain(result: ChangeResult) -> dict[str, Any]:
    change = result.change
    values = {
        "id": change.id,
        "suite": change.suite.name,
        "criterion": change.criterion.name,
        "metric": change.criterion.metric.name,
        "reranker": change.shown_reranker,
        "dataset": change.shown_dataset,
        "k": change.plan.k,
        "margin": change.margin,
        **asdict(result.comparison),
        "text": result.line,
    }
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }
