"""Evidence: all that a criterion may look at to judge one subject, and the rules by which it decides."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_invari.observation.view_settings import setting
from pytest_invari.observation.views import described

if TYPE_CHECKING:
    from pytest_invari.measure.measured import Measured
    from pytest_invari.observation.witness import Rank
    from pytest_invari.tasks.task import Task


@dataclass(frozen=True)
class DecisionRules:
    """What a figure must rest on to decide a criterion."""

    min_queries: int = setting(
        30, "verdicts", "the least number of queries that decides a criterion", least=1
    )
    max_undefined: float = setting(
        0.05, "verdicts", "the largest share of queries without a value, from 0 to below 1", below=1
    )


RankingAgain = Callable[["Task", int], AbstractContextManager["Rank"]]
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
        ranking_again: gives further rankings of the reranker; None where none may be made.
    """

    measured: Measured
    baseline: Measured | None
    min_queries: int
    max_undefined: float
    faults: str
    ranking_again: RankingAgain | None = None

    @property
    def k(self) -> int:
        """The length of the lists."""
        return self.measured.plan.k


def describe_failures(measured: Measured, whose: str = "", ellipsis: str = "…") -> str:
    """How many rankings failed, and the first one's query, view and fault; empty when none did.

    Args:
        measured: of the reranker.
        whose: the reranker's name, where it is not clear from what stands before.
        ellipsis: the end of a fault that is cut, at a length that leaves one line readable.
    """
    if not measured.failures:
        return ""
    first, total = measured.failures[0], len(measured.observations)
    fault = first.fault if len(first.fault) <= 300 else f"{first.fault[:300]}{ellipsis}"
    return (
        f"{measured.failure_count} of {total} rankings{f' of {whose}' if whose else ''} failed, the first "
        f"for query {first.query_id!r}, {described(first.view)}: {fault}"
    )
