"""Judgements: the verdict goes by the whole of an interval, not by the estimate; and what is said of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from pytest_invari.errors import counted
from pytest_invari.text import harmless

if TYPE_CHECKING:
    from pytest_invari.statistics import Interval


Verdict = Literal["pass", "fail", "undecided"]
Side = Literal["at_least", "at_most"]

# 153/180 is not 0.85 in binary, and yet a criterion that asks for 0.85 means it.
_ROUNDING = 1e-12

ERROR = 0.025
"""How often a criterion may fail whose truth lies on the bound: one side of a 95% interval."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One side that an interval must keep to; a *strict* limit is not met by equality."""

    side: Side
    value: float
    strict: bool = False


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

    def plain(self) -> dict[str, Any]:
        """What programs read of it, in the types that JSON has; None is undefined or empty."""
        numbers = {
            name: getattr(self, name) for name in ("estimate", "low", "high", "bound", "detectable", "p_fail")
        }
        return {
            "verdict": self.verdict,
            **{name: None if math.isnan(number) else number for name, number in numbers.items()},
            "n": self.n,
            "n_needed": self.n_needed,
            "reason": self.reason or None,
            "details": dict(self.details) or None,
        }


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
    limit: Limit,
    interval: Interval,
    *,
    min_queries: int,
    max_undefined: float,
    excused: int = 0,
    note: str = "",
    why: str = "",
) -> Judgement:
    """Judge the interval of a metric, or of its difference from a baseline's, by the *limit* it must keep to.

    Nothing measured fails: a gate must not pass because there was nothing to look at. Fewer than
    *min_queries* queries, or more than the share *max_undefined* of queries without a value, leave the
    verdict undecided, whatever the interval says; *excused* of those, which can have none by their nature,
    do not count. A *note* is added to the reason; *why* is the reason where no query has a value.
    """
    # Here, because collecting checks must not load NumPy.
    from pytest_invari.statistics import minimum_detectable_effect, queries_needed

    total = interval.n + interval.undefined
    if interval.n == 0 or math.isnan(interval.estimate):
        reason = "nothing measured"
        if total:
            reason += f": none of {counted(total, 'query')} has a value" + (f": {why}" if why else "")
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


MOST_QUERIES = 100_000
"""The most queries that a report says would decide; estimates beyond are in the JSON report alone."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What is said of a judgement: its figure, what was demanded, and what else must be known."""

    figure: str
    demand: str
    remarks: tuple[str, ...]

    @property
    def line(self) -> str:
        """All of it in one line."""
        said = ": ".join(filter(None, [self.figure, self.demand]))
        return harmless("; ".join(filter(None, [said, *self.remarks])))


def remarks_of(judgement: Judgement, min_queries: int) -> list[str]:
    """The reason, and how many queries would decide what is undecided."""
    remarks = [judgement.reason] if judgement.reason else []
    if judgement.verdict == "undecided" and judgement.is_measured:
        has_undefined = bool(judgement.undefined)
        remarks += what_would_decide(judgement.n_needed, judgement.reason, has_undefined, min_queries)
    return remarks


def what_would_decide(needed: int | None, reason: str, has_undefined: bool, min_queries: int) -> list[str]:
    """How many queries would decide what is undecided; nothing where the *reason* leaves nothing to say.

    Of a number that no data set has, only the size is told.
    """
    if needed is None:
        on_bound = "the figure, or nearly every query, lies on the bound, so more queries may not decide"
        return [] if reason else [on_bound]
    # That the least number of queries is wanted has been said by the reason.
    if needed == min_queries:
        return []
    queries = "queries with a value" if has_undefined else "queries"
    if needed > MOST_QUERIES:
        return [f"more than {MOST_QUERIES:,} {queries} would be needed to decide"]
    return [f"about {needed:,} {queries} would decide"]
