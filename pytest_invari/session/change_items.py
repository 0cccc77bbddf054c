"""The pytest item of a change: improved and same pass, regressed fails, undecided is a skip.

PYTEST_DONT_REWRITE: outcomes are composed messages, not asserts.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pytest_invari.baseline.outcomes import FAILING, BaselineComparison, describe_change
from pytest_invari.session.items import CheckItem, showing_progress

if TYPE_CHECKING:
    from pytest_invari.baseline.changes import Change


class ChangeItem(CheckItem):
    """One metric of one subject, compared with its baseline."""

    check: Change

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.comparison: BaselineComparison | None = None

    def runtest(self) -> None:
        """Measure, unless another item of the same subject has, and compare.

        Raises:
            CheckFailed: it is worse by more than its margin, or there is nothing to compare.
            CheckUndecided: the interval tells neither that it is worse nor that it is not.
        """
        change = self.check
        with showing_progress(self, shown=not self._judging.is_measured(change)):
            comparison = self._gate.comparison(change)
            self._make_what_is_carried()
        self.comparison = comparison
        self._put_properties(_properties(change, comparison))
        message, outcome = describe_change(change, comparison), comparison.outcome
        self._end(f"{outcome}: {message}", outcome in FAILING, outcome == "undecided")

    def excuse(self, reason: str) -> None:
        """See :class:`CheckItem`."""
        if self.comparison is not None:
            said = "; ".join(filter(None, [self.comparison.reason, reason]))
            self.comparison = replace(self.comparison, outcome="undecided", reason=said)
            self._put_properties(_properties(self.check, self.comparison))

    def carried(self) -> dict[str, Any] | None:
        """What rides on the report to the controller; None when nothing was compared."""
        if self.comparison is None:
            return None
        return {
            "change": asdict(self.comparison),
            "subjects": self._subjects,
            "entries": self._entries,
        }


def _properties(change: Change, comparison: BaselineComparison) -> dict[str, object]:
    """The outcome, and what there is of its figures."""
    values: dict[str, object] = {
        "outcome": comparison.outcome,
        "margin": change.margin,
        "n": comparison.n,
        "n_needed": comparison.n_needed,
        "reason": comparison.reason or None,
    }
    if comparison.n:
        values |= {name: getattr(comparison, name) for name in ("before", "now", "difference")}
        if comparison.low == comparison.low:
            values |= {"low": comparison.low, "high": comparison.high}
    return values
