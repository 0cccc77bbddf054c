"""Criteria and verdicts: a metric with a bound, judged on the whole interval and not on the estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pytest_invari.metrics import Metric
    from pytest_invari.statistics.interval import Interval

__all__ = [
    "BASELINE",
    "Comparison",
    "Criterion",
    "Judgement",
    "Limit",
    "Place",
    "Verdict",
    "decide",
    "judge",
    "queries_needed",
]

Verdict = Literal["pass", "fail", "undecided"]
Side = Literal["at_least", "at_most"]
Comparison = Literal["at_least", "at_most", "not_worse_than", "better_than"]

BASELINE = "baseline"
"""The word by which a criterion names the suite's own baseline, whichever reranker that is."""

# Quantiles of the normal distribution for a two-sided 95% interval and for 80% power.
Z_LEVEL, Z_POWER = 1.96, 0.84


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


@dataclass(frozen=True, slots=True)
class Criterion:
    """One demand of a suite.

    ``value`` is the bound (of ``at_least``, ``at_most``; the text "k" stands for the list length), the
    margin (of ``not_worse_than``) or the least improvement (of ``better_than``). ``baseline`` names the
    other reranker of the latter two. ``profiles``, where given, are the only ones it belongs to.
    ``needs_views`` is the least number of views, ``only_at_views`` the only one, that the bound is meant for.
    """

    name: str
    metric: Metric
    comparison: Comparison
    value: float | Literal["k"]
    place: Place
    baseline: str = ""
    why: str = ""
    profiles: tuple[str, ...] = ()
    needs_views: int = 0
    only_at_views: int = 0

    @property
    def is_relative(self) -> bool:
        """Whether the figure is the subject's difference from a baseline."""
        return self.comparison in ("not_worse_than", "better_than")

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

    def left_out_because(self, profile: str, views: int) -> str:
        """Why a run with this profile and number of views cannot judge it, or the empty text."""
        if self.profiles and profile not in self.profiles:
            return f"it belongs to profile {' and '.join(self.profiles)}, not {profile}"
        if views < self.needs_views:
            return f"its bound needs {self.needs_views} views of each query; this run has {views}"
        if self.only_at_views and views != self.only_at_views:
            return f"its bound is for exactly {self.only_at_views} views of each query; this run has {views}"
        return ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of one criterion.

    ``bound`` is the limit's value. ``reason`` says why the verdict is not what the figures alone would
    suggest, or why there are none. ``n_needed`` estimates the number of queries that would decide.
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

    @property
    def is_measured(self) -> bool:
        """Whether there is a figure at all."""
        return not math.isnan(self.estimate)


def decide(low: float, high: float, limit: Limit) -> Verdict:
    """Compare an interval with a limit: only an interval wholly on one side decides.

    A bound that the interval's end equals is kept to (unless it is strict). NaN decides nothing.
    """
    if math.isnan(low) or math.isnan(high):
        return "undecided"
    if limit.side == "at_most":
        low, high, value = -high, -low, -limit.value
    else:
        value = limit.value
    if low > value or (low == value and not limit.strict):
        return "pass"
    if high < value or (high == value and limit.strict):
        return "fail"
    return "undecided"


def queries_needed(n: int, estimate: float, standard_error: float, bound: float) -> int | None:
    """How many queries would decide with 80% power, if the estimate is the truth.

    n' = n·((1.96 + 0.84)·se/|estimate − bound|)². None where the estimate lies on the bound, so that
    no number would do.
    """
    distance = abs(estimate - bound)
    if not distance > 0 or not math.isfinite(standard_error):
        return None
    needed = n * ((Z_LEVEL + Z_POWER) * standard_error / distance) ** 2
    return max(n + 1, math.ceil(needed - 1e-6)) if needed < 1e9 else None


def judge(
    criterion: Criterion,
    interval: Interval,
    *,
    k: int,
    min_queries: int,
    max_undefined: float,
) -> Judgement:
    """Judge the interval of a criterion's metric, or of its difference from the baseline's.

    Nothing measured fails: a gate must not pass because there was nothing to look at. Fewer than
    *min_queries* queries, or more than the share *max_undefined* of queries without a value, leave the
    verdict undecided, whatever the interval says.
    """
    limit = criterion.limit(k)
    total = interval.n + interval.undefined
    if interval.n == 0 or math.isnan(interval.estimate):
        reason = f"nothing measured: none of {total} queries has a value" if total else "nothing measured"
        return Judgement("fail", limit.value, undefined=interval.undefined, reason=reason)
    verdict = decide(interval.low, interval.high, limit)
    needed, reason = None, ""
    if verdict == "undecided":
        needed = queries_needed(interval.n, interval.estimate, _standard_error(interval), limit.value)
    if interval.n < min_queries:
        verdict, needed = "undecided", max(min_queries, needed or 0)
        reason = f"{interval.n} queries are fewer than the {min_queries} that a verdict needs"
    elif not interval.defined:
        verdict, needed, reason = "undecided", None, f"no interval: {interval.reason}"
    elif interval.undefined > max_undefined * total:
        verdict, needed = "undecided", None
        reason = f"{interval.undefined} of {total} queries have no value, more than {max_undefined:.0%}"
    return Judgement(
        verdict,
        limit.value,
        interval.estimate,
        interval.low,
        interval.high,
        interval.n,
        interval.undefined,
        needed,
        reason,
    )


def _standard_error(interval: Interval) -> float:
    if math.isfinite(interval.standard_error):
        return interval.standard_error
    return (interval.high - interval.low) / (2 * Z_LEVEL)
