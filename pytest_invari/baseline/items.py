"""The pytest item of a change: improved and same pass, regressed fails, undecided is a skip.

PYTEST_DONT_REWRITE: outcomes are composed messages, not asserts.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pytest_invari.baseline.outcomes import FAILING, Comparison, describe_change
from pytest_invari.session.items import CheckFailed, CheckItem, CheckUndecided, showing_progress

if TYPE_CHECKING:
    from pytest_invari.baseline.changes import Change

__all__ = ["ChangeItem"]


class ChangeItem(CheckItem):
    """One metric of one subject, compared with its baseline."""

    check: Change

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.comparison: Comparison | None = None

    def runtest(self) -> None:
        """Measure, unless another item of the same subject has, and compare.

        Raises:
            CheckFailed: it is worse by more than its margin, or there is nothing to compare.
            CheckUndecided: the interval tells neither that it is worse nor that it is not.
        """
        change = self.check
        with showing_progress(self, shown=not self._bench.is_measured(change)):
            comparison = self._gate.comparison(change)
        self._make_entries()
        self.comparison = comparison
        self.user_properties.extend(_properties(change, comparison))
        message = f"{comparison.outcome}: {describe_change(change, comparison)}"
        if comparison.outcome in FAILING:
            raise CheckFailed(message)
        if comparison.outcome == "undecided":
            if self._bench.strict:
                raise CheckFailed(f"{message}; undecided fails under --invari-strict")
            raise CheckUndecided(message)

    def carried(self) -> dict[str, Any] | None:
        """What rides on the report to the controller; None when nothing was compared."""
        if self.comparison is None:
            return None
        return {
            "change": asdict(self.comparison),
            "subjects": self._bench.summaries(self.check),
            "entries": self._entries,
        }


def _properties(change: Change, comparison: Comparison) -> list[tuple[str, object]]:
    """The outcome in plain types."""
    values = {
        "suite": change.suite.name,
        "profile": change.profile.name,
        "criterion": change.criterion.name,
        "metric": change.criterion.metric.name,
        "reranker": change.shown_reranker,
        "dataset": change.shown_dataset,
        "k": change.plan.k,
        "views": change.plan.views,
        "outcome": comparison.outcome,
        "margin": change.margin,
        "n": comparison.n,
        "reason": comparison.reason or None,
    }
    if comparison.n:
        values |= {name: getattr(comparison, name) for name in ("before", "now", "difference")}
        if comparison.low == comparison.low:
            values |= {"low": comparison.low, "high": comparison.high}
    return [(f"invari_{name}", value) for name, value in values.items() if value is not None]
