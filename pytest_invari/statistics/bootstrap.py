"""Bootstrap intervals over queries: of a mean, of a pooled statistic, and of paired differences of both.

Queries are the sampling units, never views or item pairs. Every statistic here is a function of sums over
queries, so that a replicate is that function of weighted sums, and the jackknife takes one query's part off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_invari.metrics.arrays import Floats
from pytest_invari.settings import IntervalMethod
from pytest_invari.statistics.distribution import BCa, Distribution, Percentile, acceleration, bias_correction
from pytest_invari.statistics.guard import guard_distance, guard_mean
from pytest_invari.statistics.interval import (
    FEWER_THAN_2_QUERIES,
    NO_DEFINED_QUERY,
    UNDEFINED_REPLICATES,
    Interval,
)
from pytest_invari.statistics.resampling import Resamples

Statistic: TypeAlias = Callable[[Floats], Floats]
"""Turns rows (..., C), of sums or of pooled ratios, into one number each (...); NaN where it is undefined."""

Guard: TypeAlias = Callable[[Distribution], Distribution]

# The largest share of replicates that may be undefined.
UNDEFINED_SHARE = 0.05
# Columns of sums up to which one at a time is faster.
_NARROW = 4
# Rows of leave-one-out sums held at once.
_CHUNK_ENTRIES = 1 << 20


class PooledCounts(NamedTuple):
    """What each query adds to ratios that only all queries together define.

    ``numerators`` (N, C) are counts, ``denominators`` (N,) what each query's counts are out of.
    """

    numerators: ArrayLike
    denominators: ArrayLike


def bootstrap_mean(
    values: ArrayLike,
    resamples: Resamples,
    *,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    method: IntervalMethod = "bca",
    level: float = 0.95,
) -> Interval:
    """The unweighted mean over the queries that have a value, with its interval.

    Args:
        values: (N,), NaN for a query without a value.
        resamples: of the N queries; statistics that share them are paired.
        bounds: the range of the values; finite ones allow the guard against rare events.
        method: "bca" with its guard, or the plain "percentile" interval of P2, without.
        level: the two-sided confidence level.
    """
    given = _one_a_query(values)
    defined = ~np.isnan(given)
    kept = given[defined]
    # Deviations from one of the values: where all are equal every replicate is exactly that value.
    origin = kept[0] if kept.size else 0.0
    columns = np.stack([np.where(defined, given - origin, 0.0), defined], axis=1)

    def mean(sums: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            means: Floats = origin + sums[..., 0] / sums[..., 1]
        return means

    def guarded(distribution: Distribution) -> Distribution:
        return guard_mean(distribution, kept, *bounds)

    return bootstrap_sums(
        columns,
        mean,
        resamples,
        defined=defined,
        method=method,
        guard=guarded if method == "bca" else None,
        level=level,
    )


def bootstrap_difference(
    new: ArrayLike,
    base: ArrayLike,
    resamples: Resamples,
    *,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    method: IntervalMethod = "bca",
    level: float = 0.95,
) -> Interval:
    """The mean of new − base over the queries that have a value in both, with its interval.

    Args:
        new, base: (N,) each, aligned by query.
        bounds: the range of the values, not of their differences.
        resamples, method, level: as in :func:`bootstrap_mean`.
    """
    first, second = _one_a_query(new), _one_a_query(base)
    if first.shape != second.shape:
        raise ValueError(f"a paired difference needs the same queries, not {first.shape} and {second.shape}")
    low, high = bounds
    return bootstrap_mean(
        first - second, resamples, bounds=(low - high, high - low), method=method, level=level
    )


def bootstrap_pooled(
    counts: PooledCounts,
    statistic: Statistic,
    resamples: Resamples,
    *,
    distance_from: float | None = None,
    method: IntervalMethod = "bca",
    level: float = 0.95,
) -> Interval:
    """A statistic of the ratios Σ numerators / Σ denominators over queries, with its interval.

    Args:
        counts: of each query; one whose denominator is 0 has no value.
        statistic: a function of ratios (..., C) along their last axis.
        distance_from: where the statistic is a norm of the ratios less a number, such as their largest
            deviation from it, that number. Noise makes a distance larger and resampling makes it larger once
            more, which BCa does not mend: the bounds are then percentiles, the lower with a guard.
        resamples, method, level: as in :func:`bootstrap_mean`.
    """
    columns, kept = _pooled_columns([counts])
    total = columns.sum(axis=0)

    def from_truth(sums: Floats) -> Floats:
        return statistic(_ratios(sums) - _ratios(total) + (distance_from or 0.0))

    def guard(distribution: Distribution) -> Distribution:
        noise = _replicates(columns, from_truth, resamples)
        return guard_distance(distribution, float(statistic(_ratios(total))), noise, int(kept.sum()))

    is_guarded = method == "bca" and distance_from is not None
    return bootstrap_sums(
        columns,
        lambda sums: statistic(_ratios(sums)),
        resamples,
        defined=kept,
        method="percentile" if is_guarded else method,
        guard=guard if is_guarded else None,
        level=level,
    )


def bootstrap_pooled_difference(
    new: PooledCounts,
    base: PooledCounts,
    statistic: Statistic,
    resamples: Resamples,
    *,
    method: IntervalMethod = "bca",
    level: float = 0.95,
) -> Interval:
    """A pooled statistic of new minus that of base, both resampled by the same draws.

    Args:
        new, base: aligned by query; a query whose denominator is 0 in either has no value.
        statistic, resamples, method, level: as in :func:`bootstrap_pooled`.
    """
    columns, kept = _pooled_columns([new, base])
    middle = np.asarray(new.numerators).shape[1] + 1

    def difference(sums: Floats) -> Floats:
        return statistic(_ratios(sums[..., :middle])) - statistic(_ratios(sums[..., middle:]))

    return bootstrap_sums(columns, difference, resamples, defined=kept, method=method, level=level)


def bootstrap_sums(
    columns: Floats,
    statistic: Statistic,
    resamples: Resamples,
    *,
    defined: NDArray[np.bool_],
    method: IntervalMethod = "bca",
    guard: Guard | None = None,
    level: float = 0.95,
) -> Interval:
    """A statistic of sums over queries, with its interval.

    Args:
        columns: (N, C), what each query adds to each sum; zeros for a query without a value.
        statistic: a function of sums (..., C) along their last axis.
        defined: (N,), which queries have a value.
        guard: what widens the distribution that *method* makes of the replicates.
        resamples, method, level: as in :func:`bootstrap_mean`.
    """
    if len(columns) != resamples.count:
        raise ValueError(f"resamples of {resamples.count} queries do not fit values of {len(columns)}")
    count = int(defined.sum())
    undefined = len(defined) - count
    total = columns.sum(axis=0)
    estimate = float(statistic(total[None])[0]) if count else math.nan
    if count < 2:
        reason = FEWER_THAN_2_QUERIES if count else NO_DEFINED_QUERY
        return Interval(estimate, math.nan, math.nan, count, undefined, method, reason, level=level)
    drawn = _replicates(columns, statistic, resamples)

    def distribution(replicates: Floats) -> Distribution:
        made: Distribution = Percentile(replicates)
        if method == "bca":
            jackknife = _jackknife(columns[defined], total, statistic)
            made = BCa(replicates, bias_correction(replicates, estimate), acceleration(jackknife), count)
        return made if guard is None else guard(made)

    return interval_of_replicates(estimate, drawn, count, undefined, distribution, method, level)


def interval_of_replicates(
    estimate: float,
    drawn: Floats,
    count: int,
    undefined: int,
    distribution: Callable[[Floats], Distribution],
    method: str,
    level: float = 0.95,
) -> Interval:
    """The interval of *drawn* replicates (B,), of which NaN are dropped and counted.

    More than 5 % of them undefined leave the interval undefined. *distribution* takes the others, sorted.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, not {level}")
    replicates = np.sort(drawn[~np.isnan(drawn)])
    dropped = len(drawn) - len(replicates)
    if dropped > UNDEFINED_SHARE * len(drawn):
        return Interval(
            estimate,
            math.nan,
            math.nan,
            count,
            undefined,
            method,
            UNDEFINED_REPLICATES,
            level=level,
            replicates=len(drawn),
            undefined_replicates=dropped,
        )
    found = distribution(replicates)
    spread = (replicates - estimate).std(ddof=1) if len(replicates) > 1 else math.nan
    return Interval(
        estimate,
        found.quantile((1 - level) / 2),
        found.quantile((1 + level) / 2),
        count,
        undefined,
        found.method,
        standard_error=float(spread * math.sqrt(count / (count - 1))),
        level=level,
        replicates=len(drawn),
        undefined_replicates=dropped,
        distribution=found,
    )


def _replicates(columns: Floats, statistic: Statistic, resamples: Resamples) -> Floats:
    """The statistic (B,) of every resample."""
    if columns.shape[1] > _NARROW:
        return np.concatenate([statistic(block @ columns) for block in resamples.blocks()])
    # One product of matrix and vector after the other: twice as fast as a matrix of two columns.
    each = [np.ascontiguousarray(column) for column in columns.T]
    return np.concatenate(
        [statistic(np.stack([block @ column for column in each], axis=-1)) for block in resamples.blocks()]
    )


def _jackknife(columns: Floats, total: Floats, statistic: Statistic) -> Floats:
    """The statistic (n,) without each of the queries in turn; those without a value change nothing."""
    step = max(1, _CHUNK_ENTRIES // max(1, columns.shape[1]))
    parts = [statistic(total - columns[start : start + step]) for start in range(0, len(columns), step)]
    values = np.concatenate(parts)
    return values[~np.isnan(values)]


def _ratios(sums: Floats) -> Floats:
    """Numerators over the denominator, which is the last column."""
    with np.errstate(invalid="ignore"):
        ratios: Floats = sums[..., :-1] / sums[..., -1:]
    return ratios


def _pooled_columns(parts: list[PooledCounts]) -> tuple[Floats, NDArray[np.bool_]]:
    """Numerators and denominator of each part side by side, and which queries have a value in all parts."""
    tops = [np.asarray(part.numerators, np.float64) for part in parts]
    totals = [np.asarray(part.denominators, np.float64) for part in parts]
    count = len(totals[0])
    if any(top.ndim != 2 for top in tops) or any(len(each) != count for each in (*tops, *totals)):
        shapes = ", ".join(f"{top.shape} of {total.shape}" for top, total in zip(tops, totals, strict=True))
        raise ValueError(f"pooled counts must be (queries, cells) of (queries,), not {shapes}")
    kept = np.all([total > 0 for total in totals], axis=0)
    sides = [np.column_stack([top, total]) for top, total in zip(tops, totals, strict=True)]
    return np.where(kept[:, None], np.concatenate(sides, axis=1), 0.0), kept


def _one_a_query(values: ArrayLike) -> Floats:
    given = np.asarray(values, np.float64)
    if given.ndim != 1:
        raise ValueError(f"values must be one a query, not of shape {given.shape}")
    return given
