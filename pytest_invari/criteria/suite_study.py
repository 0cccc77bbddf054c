"""A study as a suite's own kind of criterion gets it: what its assertions find goes into a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_invari.criteria.judgement import too_few, too_many_gaps
from pytest_invari.criteria.study import Rules, Study

if TYPE_CHECKING:
    import pandas as pd

    from pytest_invari.criteria.evidence import Evidence
    from pytest_invari.measure.measured import Measured
    from pytest_invari.statistics import Interval


class SuiteStudy(Study):
    """A study that keeps what its assertions find.

    ``passed`` and ``undecided`` are the lines of assertions with these verdicts; ``values`` those of all, as
    plain values. ``is_measured`` says whether anybody has looked at what was measured, and ``thin`` for each
    figure that was looked at, and rests on too few queries by the suite's rules, why it decides nothing.
    """

    def __init__(self, evidence: Evidence) -> None:
        measured = evidence.measured
        # An undecided assertion leaves the criterion undecided, and what that means is said there.
        rules = Rules(evidence.min_queries, evidence.max_undefined)
        super().__init__(
            lambda: measured, measured.name.reranker, measured.plan, rules, lambda line, values: None
        )
        self.passed: list[str] = []
        self.undecided: list[str] = []
        self.values: list[dict[str, Any]] = []
        self.is_measured = False
        self._thin: dict[str, str] = {}

    @property
    def measured(self) -> Measured:
        """As :attr:`Study.measured`."""
        self.is_measured = True
        measured = super().measured
        self._note_thin("", too_few(len(measured.query_ids), self._rules.min_queries, "rankings"))
        return measured

    def interval(self, metric: str) -> Interval:
        """As :meth:`Study.interval`."""
        found = super().interval(metric)
        self._note_queries(metric, found.n, found.undefined)
        return found

    def frame(self, *metrics: str) -> pd.DataFrame:
        """As :meth:`Study.frame`; of columns that nobody has named, nobody may look at all."""
        found = super().frame(*metrics)
        for name in metrics:
            defined = int(found[name].count())
            self._note_queries(name, defined, len(found) - defined)
        return found

    @property
    def thin(self) -> list[str]:
        """Why figures that were looked at decide nothing, that of all rankings first."""
        return [self._thin[""]] if "" in self._thin else list(self._thin.values())

    def _note_queries(self, metric: str, n: int, undefined: int) -> None:
        excused = self.measured.excused(metric)
        few = too_few(n, self._rules.min_queries)
        gaps = too_many_gaps(undefined - excused, n + undefined - excused, self._rules.max_undefined)
        why = few or gaps
        self._note_thin(metric, f"{metric}: {why}" if why else "")

    def _note_thin(self, metric: str, why: str) -> None:
        if why:
            self._thin[metric] = why

    def _keep_verdict(self, line: str, values: dict[str, Any]) -> None:
        self.values.append(values)
        if values["verdict"] == "pass":
            self.passed.append(line)

    def _leave_undecided(self, line: str) -> None:
        self.undecided.append(line)
