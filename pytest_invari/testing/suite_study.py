"""A study as a suite's own kind of criterion gets it: what its assertions find goes into a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_invari.testing.study import Study

if TYPE_CHECKING:
    from pytest_invari.lookup.registry import RerankerSpec
    from pytest_invari.measure.laboratory import Laboratory
    from pytest_invari.measure.measured import Measured
    from pytest_invari.measure.plan import Plan
    from pytest_invari.testing.study import Rules

__all__ = ["SuiteStudy"]


class SuiteStudy(Study):
    """A study that keeps what its assertions find.

    ``passed`` and ``undecided`` are the lines of assertions with these verdicts; ``values`` those of all, as
    plain values. ``is_measured`` says whether anybody has looked at what was measured.
    """

    def __init__(self, laboratory: Laboratory, reranker: RerankerSpec, plan: Plan, rules: Rules) -> None:
        super().__init__(laboratory, reranker, plan, rules, lambda line, values: None)
        self.passed: list[str] = []
        self.undecided: list[str] = []
        self.values: list[dict[str, Any]] = []
        self.is_measured = False

    @property
    def measured(self) -> Measured:
        """As :attr:`Study.measured`."""
        self.is_measured = True
        return super().measured

    def _told(self, line: str, values: dict[str, Any]) -> None:
        self.values.append(values)
        if values["verdict"] == "pass":
            self.passed.append(line)

    def _leave_undecided(self, line: str) -> None:
        self.undecided.append(line)
