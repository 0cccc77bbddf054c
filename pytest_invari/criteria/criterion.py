"""Criteria: one demand of a suite, of whichever kind."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_invari.criteria.judgement import (
    Judgement,
    Limit,
    Verdict,
    decide,
    judge,
    too_few,
    too_many_gaps,
    with_multiplicity,
)
from pytest_invari.errors import InvariError

if TYPE_CHECKING:
    from pytest_invari.criteria.evidence import Evidence
    from pytest_invari.metrics import Metric

__all__ = [
    "BASELINE",
    "Comparison",
    "Criterion",
    "Judgement",
    "Limit",
    "MetricCriterion",
    "Place",
    "Verdict",
    "decide",
    "judge",
    "too_few",
    "too_many_gaps",
    "with_multiplicity",
]

Comparison = Literal["at_least", "at_most", "not_worse_than", "better_than"]

BASELINE = "baseline"
"""The word by which a criterion names the suite's own baseline, whichever reranker that is."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written: the file and its 1-based line."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion(ABC):
    """One demand of a suite, of whichever kind; a kind knows what it judges by and how.

    ``profiles``, where given, are the only ones it belongs to. ``needs_views`` is the least number of views,
    ``only_at_views`` the only one, that the demand is meant for.
    """

    name: str
    place: Place
    why: str = ""
    profiles: tuple[str, ...] = ()
    needs_views: int = 0
    only_at_views: int = 0

    @property
    @abstractmethod
    def kind(self) -> str:
        """What a suite calls the kind."""

    @abstractmethod
    def demand(self, k: int, baseline: str) -> str:
        """What is asked of lists of *k*, for people; *baseline* is what the other reranker is called."""

    @abstractmethod
    def judged(self, evidence: Evidence) -> Judgement:
        """The verdict by itself on what was measured."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics whose figures it looks at, as far as a suite says it."""
        return ()

    @property
    def baseline(self) -> str:
        """The reranker that it compares with; empty where it compares with none."""
        return ""

    @property
    def is_relative(self) -> bool:
        """Whether the figure is the subject's difference from a baseline."""
        return False

    @property
    def judges_failures(self) -> bool:
        """Whether it sees by itself to rankings that failed, also where a failure fails all others."""
        return False

    @property
    def may_ask(self) -> bool:
        """Whether judging may take rankings besides the measured ones."""
        return False

    @property
    def why_not_stored(self) -> str:
        """Why a baseline holds nothing of it; empty where it does."""
        return f"kind {self.kind} has no value for each query"

    def bound(self, k: int) -> float:
        """The number that the figure is held against; NaN where there is none."""
        return math.nan

    def facts(self) -> dict[str, str]:
        """What the reports say of the criterion besides its name, by the names of their keys."""
        return {"kind": self.kind}

    def left_out_because(self, profile: str, views: int) -> str:
        """Why a run with this profile and number of views cannot judge it, or the empty text."""
        if self.profiles and profile not in self.profiles:
            return f"it belongs to profile {' and '.join(self.profiles)}, not {profile}"
        if views < self.needs_views:
            return f"its bound needs {self.needs_views} views of each query; this run has {views}"
        if self.only_at_views and views != self.only_at_views:
            return f"its bound is for exactly {self.only_at_views} views of each query; this run has {views}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricCriterion(Criterion):
    """A metric and one bound.

    ``value`` is the bound (of ``at_least``, ``at_most``; the text "k" stands for the list length), the
    margin (of ``not_worse_than``) or the least improvement (of ``better_than``). ``baseline`` names the
    other reranker of the latter two. ``regression_margin`` is how much worse than a stored baseline the
    metric may be.
    """

    metric: Metric
    comparison: Comparison
    value: float | Literal["k"]
    baseline: str = ""
    regression_margin: float = 0.0

    @property
    def kind(self) -> str:
        """See :class:`Criterion`."""
        return "metric"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """See :class:`Criterion`."""
        return (self.metric,)

    @property
    def is_relative(self) -> bool:
        """See :class:`Criterion`."""
        return self.comparison in ("not_worse_than", "better_than")

    @property
    def judges_failures(self) -> bool:
        """See :class:`Criterion`."""
        return self.metric.family == "invalid_view_rate"

    @property
    def why_not_stored(self) -> str:
        """See :class:`Criterion`."""
        is_finding = self.metric.kind == "analysis"
        return "a finding of an analysis has no value for each query" if is_finding else ""

    def bound(self, k: int) -> float:
        """See :class:`Criterion`."""
        return self.limit(k).value

    def facts(self) -> dict[str, str]:
        """See :class:`Criterion`."""
        return {"kind": self.kind, "metric": self.metric.name, "comparison": self.comparison}

    def limit(self, k: int) -> Limit:
        """What the interval must keep to for lists of *k* candidates.

        That of a relative criterion is for subject minus baseline: an improvement is positive where
        higher is better and negative where lower is.
        """
        value = float(k) if self.value == "k" else self.value
        if self.comparison in ("at_least", "at_most"):
            return Limit(self.comparison, value)
        improvement = value if self.comparison == "better_than" else -value
        strict = self.comparison == "better_than" and value == 0
        if self.metric.direction == "higher":
            return Limit("at_least", improvement, strict)
        return Limit("at_most", -improvement + 0.0, strict)

    def demand(self, k: int, baseline: str) -> str:
        """What is asked, with its bound: ``loc must be at least 0.75``."""
        limit = self.limit(k)
        side = "at least" if limit.side == "at_least" else "at most"
        if limit.strict:
            side = "above" if limit.side == "at_least" else "below"
        whose = f" minus {baseline}'s" if self.is_relative else ""
        return f"{self.metric.name}{whose} must be {side} {limit.value:g}"

    def judged(self, evidence: Evidence) -> Judgement:
        """See :class:`Criterion` and :func:`judge`."""
        measured, name = evidence.measured, self.metric.name
        try:
            interval = (
                measured.interval(name)
                if evidence.baseline is None
                else measured.difference(evidence.baseline, name)
            )
        except InvariError as error:
            return Judgement("fail", self.bound(evidence.k), reason=f"nothing measured: {error}")
        return judge(
            self,
            interval,
            k=evidence.k,
            min_queries=evidence.min_queries,
            max_undefined=evidence.max_undefined,
            excused=measured.excused(name),
            note=measured.analyses.note(self.metric) if self.metric.kind == "analysis" else evidence.faults,
            why=None if interval.n else measured.why_undefined(name),
        )
