"""Criteria: one demand of a suite, of whichever kind."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_invari.criteria.judgement import Judgement, Wording, remarks_of
from pytest_invari.metrics.costs import COSTS
from pytest_invari.text import figure

if TYPE_CHECKING:
    from pytest_invari.criteria.evidence import Evidence
    from pytest_invari.metrics import Metric


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
    def may_rank_again(self) -> bool:
        """Whether judging may take rankings besides the measured ones."""
        return False

    @property
    def item_name(self) -> str:
        """What its items are called, but for the subject in brackets."""
        return self.name

    @property
    def fault(self) -> str:
        """Why it cannot be judged, known before anything is measured; empty where it can."""
        return ""

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

    def outcome(self, judgement: Judgement) -> str:
        """What became of it where the verdict does not say it all; empty where it does."""
        return ""

    def wording(self, judgement: Judgement, *, k: int, baseline: str, min_queries: int) -> Wording:
        """What is said of a judgement on lists of *k*; *baseline* is what the other reranker is called."""
        shown = judgement.figure or "no figure"
        if judgement.is_measured:
            counted = any(metric.family in COSTS for metric in self.metrics)
            shown = figure(judgement.estimate, judgement.low, judgement.high, judgement.n, counted=counted)
        remarks = remarks_of(judgement, min_queries)
        distance = abs(judgement.bound)
        if self.is_relative and judgement.verdict == "undecided" and 0 < distance < judgement.detectable:
            remarks.append(
                f"{judgement.n:,} queries mostly show differences of {judgement.detectable:.2g} and more, "
                f"and {distance:g} is asked for"
            )
        return Wording(shown, self.demand(k, baseline), tuple(remarks))

    def properties(self, judgement: Judgement) -> dict[str, object]:
        """The verdict in plain types, and the figure where there is one; None is left out."""
        plain = judgement.plain()
        names = ["bound", "n", "n_needed", "reason"]
        names += ["estimate", "low", "high"] if judgement.is_measured else []
        said = {"verdict": judgement.verdict, "figure": judgement.figure or None}
        return {**said, **{name: plain[name] for name in names}}

    def left_out_because(self, profile: str, views: int) -> str:
        """Why a run with this profile and number of views cannot judge it, or the empty text."""
        if self.profiles and profile not in self.profiles:
            return f"it belongs to profile {' and '.join(self.profiles)}, not {profile}"
        if views < self.needs_views:
            return f"its bound needs {self.needs_views} views of each query; this run has {views}"
        if self.only_at_views and views != self.only_at_views:
            return f"its bound is for exactly {self.only_at_views} views of each query; this run has {views}"
        return ""
