"""Criteria and verdicts; that of a metric with a bound goes by the whole interval and not by the estimate."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pytest_invari.errors import InvariError, counted

if TYPE_CHECKING:
    from pytest_invari.criteria.evidence import Evidence
    from pytest_invari.metrics import Metric
    from pytest_invari.statistics import Interval

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

Verdict = Literal["pass", "fail", "undecided"]
Side = Literal["at_least", "at_most"]
Comparison = Literal["at_least", "at_most", "not_worse_than", "better_than"]

BASELINE = "baseline"
"""The word by which a criterion names the suite's own baseline, whichever reranker that is."""

# 153/180 is not 0.85 in binary, and yet a criterion that asks for 0.85 means it.
_ROUNDING = 1e-12

ERROR = 0.025
"""How often a criterion may fail whose truth lies on the bound: one side of a 95% interval."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written: the file and its 1-based line."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Limit:
    """One side that an interval must keep to; a *strict* limit is not met by equality."""

    side: Side
    value: float
    strict: bool = False


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
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of one criterion.

    ``bound`` is the limit's value. ``reason`` says why the verdict is not what the figures alone would
    suggest, or why there are none. ``n_needed`` estimates the number of queries that would decide,
    and ``detectable`` is the distance from the bound that as many queries as now decide in 80 of 100 runs.
    ``p_fail`` is the p-value of failing. Both are NaN without an interval.

    A kind whose finding is no interval says it in words: ``figure`` opens the line, ``lines``, harmless to
    show, may follow it, and ``details`` are the same as plain values, for programs.
    """

    verdict: Verdict
    bound: float
    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    undefined: int = 0
    n_needed: int | None = None
    reason: str = ""
    detectable: float = math.nan
    p_fail: float = math.nan
    figure: str = ""
    lines: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_measured(self) -> bool:
        """Whether there is a figure at all."""
        return not math.isnan(self.estimate)


def decide(low: float, high: float, limit: Limit) -> Verdict:
    """Compare an interval with a limit: only an interval wholly on one side decides.

    A bound that the interval's end equals is kept to (unless it is strict); an end that differs from it by
    rounding alone equals it. NaN decides nothing.
    """
    if math.isnan(low) or math.isnan(high):
        return "undecided"
    if limit.side == "at_most":
        low, high, value = -high, -low, -limit.value
    else:
        value = limit.value
    low, high = (
        value if math.isclose(end, value, rel_tol=_ROUNDING, abs_tol=_ROUNDING) else end
        for end in (low, high)
    )
    if low > value or (low == value and not limit.strict):
        return "pass"
    if high < value or (high == value and limit.strict):
        return "fail"
    return "undecided"


def judge(
    criterion: MetricCriterion,
    interval: Interval,
    *,
    k: int,
    min_queries: int,
    max_undefined: float,
    excused: int = 0,
    note: str = "",
) -> Judgement:
    """Judge the interval of a criterion's metric, or of its difference from the baseline's.

    Nothing measured fails: a gate must not pass because there was nothing to look at. Fewer than
    *min_queries* queries, or more than the share *max_undefined* of queries without a value, leave the
    verdict undecided, whatever the interval says; *excused* of those, which can have none by their nature,
    do not count. A *note* is added to the reason.
    """
    # Here, because collecting checks must not load NumPy.
    from pytest_invari.statistics import minimum_detectable_effect, queries_needed

    limit = criterion.limit(k)
    total = interval.n + interval.undefined
    if interval.n == 0 or math.isnan(interval.estimate):
        reason = f"nothing measured: none of {total} queries has a value" if total else "nothing measured"
        if interval.n:
            reason = f"undefined: {interval.reason}"
        return Judgement("fail", limit.value, undefined=interval.undefined, reason=reason)
    verdict = decide(interval.low, interval.high, limit)
    needed, reason = None, ""
    if verdict == "undecided":
        needed = queries_needed(interval, limit.value)
    if interval.n < min_queries:
        verdict, needed = "undecided", max(min_queries, needed or 0)
        reason = too_few(interval.n, min_queries)
    elif not interval.defined:
        verdict, needed, reason = "undecided", None, f"no interval: {interval.reason}"
    elif gaps := too_many_gaps(interval.undefined - excused, total - excused, max_undefined):
        verdict, needed, reason = "undecided", None, gaps
    return Judgement(
        verdict,
        limit.value,
        interval.estimate,
        interval.low,
        interval.high,
        interval.n,
        interval.undefined,
        needed,
        "; ".join(filter(None, [reason, note])),
        detectable=minimum_detectable_effect(interval.standard_error),
        p_fail=_p_fail(interval, limit),
    )


def too_few(n: int, min_queries: int, what: str = "a value") -> str:
    """Why *n* queries that have what a verdict goes by decide nothing; empty where they are enough."""
    if n >= min_queries:
        return ""
    return (
        f"{counted(n, 'query')} {'has' if n == 1 else 'have'} {what}, fewer than the {min_queries} that a "
        "verdict needs"
    )


def too_many_gaps(undefined: int, total: int, max_undefined: float, what: str = "value") -> str:
    """Why so many of all queries that lack what a verdict goes by leave it open; empty where they do not."""
    if undefined <= max_undefined * total:
        return ""
    return f"{undefined} of {total} queries have no {what}, more than max_undefined = {max_undefined:g}"


def with_multiplicity(judgement: Judgement, family: Sequence[float], of: int) -> Judgement:
    """Leave a failure undecided that many criteria judged at once make likely to be chance.

    A subject passes when all its criteria do, which needs no correction. But each may fail by chance, so
    that a failure stands only when its p-value, adjusted by Holm's method, is at most 2.5%: it is at most
    2.5% likely then that any criterion of the subject fails wrongly.

    Args:
        judgement: a failure by its interval.
        family: the p-values of all criteria that are judged on the same measurements, its own among them.
        of: how many criteria the subject has in all.
    """
    from pytest_invari.statistics import holm

    adjusted = holm(family, of=of)[list(family).index(judgement.p_fail)]
    if adjusted <= ERROR:
        return judgement
    reason = (
        f"multiplicity: with {of} criteria one such failure may be chance (p = {judgement.p_fail:.3g}, "
        f"adjusted {adjusted:.3g}, more than {ERROR:g})"
    )
    return replace(judgement, verdict="undecided", reason="; ".join(filter(None, [judgement.reason, reason])))


def _p_fail(interval: Interval, limit: Limit) -> float:
    """The p-value of the claim that the truth is on the wrong side of the limit."""
    if limit.side == "at_most":
        return interval.probability_at_most(limit.value)
    return interval.probability_at_least(limit.value)
