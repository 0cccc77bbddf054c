"""Now against then: the paired difference of a metric from its stored values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pytest_invari.baseline.file import Entry, Value
from pytest_invari.baseline.outcomes import ROUNDING, VERDICTS, Outcome, classify
from pytest_invari.criteria.judgement import Judgement
from pytest_invari.errors import InvariError, counted
from pytest_invari.measure.blocks import Pooled
from pytest_invari.measure.measured import Measured
from pytest_invari.metrics.arrays import PerQuery
from pytest_invari.statistics import PooledCounts, queries_needed

if TYPE_CHECKING:
    from pytest_invari.criteria.evidence import Evidence
    from pytest_invari.metrics import Metric
    from pytest_invari.metrics.arrays import Floats
    from pytest_invari.metrics.metric import Direction
    from pytest_invari.statistics import Interval


def values_of(measured: Measured, name: str) -> dict[str, Value]:
    """Each query's value of a metric, as a baseline stores it."""
    found = measured.metric(name)
    if isinstance(found, Pooled):
        counts, totals = np.asarray(found.counts.numerators), np.asarray(found.counts.denominators)
        return {
            query: (tuple(map(int, row)), int(total))
            for query, row, total in zip(measured.query_ids, counts, totals, strict=True)
        }
    return {
        query: float(value) if reason is None else reason
        for query, value, reason in zip(measured.query_ids, found.values, found.reasons, strict=True)
    }


def compare(metric: Metric, margin: float, evidence: Evidence, entry: Entry) -> Judgement:
    """Compare what was measured with the stored values of the same queries.

    Fewer queries than a verdict needs, or too many without a value, leave the outcome undecided, as they do
    with criteria. Where no query's value has changed, nothing has, however few they are.

    Raises:
        InvariError: the entry lacks a query, or has values of another kind.
    """
    measured, name = evidence.measured, metric.name
    now = measured.metric(name)
    base = _aligned(entry, measured, now)
    interval = measured.difference_from(base, name)
    before_mean, now_mean = _means(now, base)
    direction = metric.direction
    outcome: Outcome = classify(interval.low, interval.high, margin, direction)
    needed = _queries_needed(interval, margin, direction) if outcome == "undecided" else None
    reason = _why_undecided(interval, evidence.min_queries, evidence.max_undefined, measured.excused(name))
    if interval.n == 0:
        outcome, reason = "missing", "nothing to compare: no query has a value in both"
    elif _is_unchanged(now, base):
        outcome, reason = "same", "no query's value has changed"
    elif reason:
        outcome = "undecided"
        needed = max(evidence.min_queries, needed or 0) if interval.n < evidence.min_queries else None
    return Judgement(
        VERDICTS[outcome],
        math.nan,
        interval.estimate,
        interval.low,
        interval.high,
        interval.n,
        interval.undefined,
        needed if outcome == "undecided" else None,
        reason,
        details={"outcome": outcome, "before": before_mean, "now": now_mean},
    )


def _queries_needed(interval: Interval, margin: float, direction: Direction) -> int | None:
    """How many queries would decide if the estimate is the truth, for the outcome that needs the fewest."""
    sign = 1 if direction == "lower" else -1
    worsening = sign * interval.estimate
    bounds = [margin] if worsening > margin else []
    if margin and abs(worsening) <= margin:
        # "same" has to clear both sides of the margin, and the nearer one is the harder.
        bounds.append(math.copysign(margin, worsening))
    if worsening < 0:
        bounds.append(0.0)
    needed = [queries_needed(interval, sign * bound) for bound in bounds]
    return min((each for each in needed if each is not None), default=None)


def _why_undecided(interval: Interval, min_queries: int, max_undefined: float, excused: int) -> str:
    """Why the interval decides nothing; *excused* queries can have no value by their nature."""
    undefined = interval.undefined - excused
    total = interval.n + undefined
    if interval.n < min_queries:
        has = "has" if interval.n == 1 else "have"
        fewer = f"fewer than the {min_queries} that a verdict needs"
        return f"{counted(interval.n, 'query')} {has} a value in both, {fewer}"
    if not interval.defined:
        return f"no interval: {interval.reason}"
    if undefined > max_undefined * total:
        return f"{undefined} of {total} queries have no value in both, more than {max_undefined:.0%}"
    return ""


def _aligned(entry: Entry, measured: Measured, now: PerQuery | Pooled) -> Floats | PooledCounts:
    """The stored values in the order of the measured queries."""
    lacking = [query for query in measured.query_ids if query not in entry.queries]
    if lacking:
        raise InvariError(f"it has no value for query {lacking[0]!r}")
    stored = [entry.queries[query] for query in measured.query_ids]
    for query, value in zip(measured.query_ids, stored, strict=True):
        if isinstance(value, tuple) != isinstance(now, Pooled) or (
            isinstance(value, tuple) and len(value[0]) != measured.plan.k
        ):
            raise InvariError(f"query {query!r} has a value of another kind than the metric")
    if isinstance(now, Pooled):
        pairs = [value for value in stored if isinstance(value, tuple)]
        counts = np.array([pair[0] for pair in pairs], np.int64).reshape(len(pairs), measured.plan.k)
        return PooledCounts(counts, np.array([pair[1] for pair in pairs], np.int64))
    return np.array([value if isinstance(value, float) else math.nan for value in stored], np.float64)


def _means(now: PerQuery | Pooled, base: Floats | PooledCounts) -> tuple[float, float]:
    """The metric then and now, over the queries that have a value in both; NaN where there are none."""
    if isinstance(base, PooledCounts):
        assert isinstance(now, Pooled)
        both = (np.asarray(base.denominators) > 0) & (np.asarray(now.counts.denominators) > 0)
        pooled = [
            Pooled(
                PooledCounts(np.asarray(each.numerators)[both], np.asarray(each.denominators)[both]),
                now.statistic,
            )
            for each in (base, now.counts)
        ]
        return pooled[0].value, pooled[1].value
    assert isinstance(now, PerQuery)
    values = now.values
    both = ~np.isnan(base) & ~np.isnan(values)
    return (float(base[both].mean()), float(values[both].mean())) if both.any() else (math.nan, math.nan)


def _is_unchanged(now: PerQuery | Pooled, base: Floats | PooledCounts) -> bool:
    if isinstance(base, PooledCounts):
        assert isinstance(now, Pooled)
        return np.array_equal(base.numerators, now.counts.numerators) and np.array_equal(
            base.denominators, now.counts.denominators
        )
    assert isinstance(now, PerQuery)
    values = now.values
    return bool(np.allclose(values, base, rtol=ROUNDING, atol=ROUNDING, equal_nan=True))
