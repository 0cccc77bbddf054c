"""Evidence: all that a criterion may look at to judge one subject."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_invari.measure.measured import Measured
    from pytest_invari.observation.witness import Rank
    from pytest_invari.tasks.task import Task


Asking = Callable[["Task", int], AbstractContextManager["Rank"]]
"""From a task and the most rankings that there will be to a function that ranks some of its candidates."""


@dataclass(frozen=True)
class Evidence:
    """What was measured of a subject, and the suite's rules.

    Args:
        measured: of the reranker under test.
        baseline: of the other one, where the criterion compares with one.
        min_queries: the suite's.
        max_undefined: the suite's.
        faults: what a verdict has to say of rankings that failed and were not held against the reranker.
        asking: gives further rankings of the reranker; None where none may be made.
    """

    measured: Measured
    baseline: Measured | None
    min_queries: int
    max_undefined: float
    faults: str
    asking: Asking | None = None

    @property
    def k(self) -> int:
        """The length of the lists."""
        return self.measured.plan.k
