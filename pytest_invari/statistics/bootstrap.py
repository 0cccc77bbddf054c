"""Bootstrap intervals over queries: of a mean, of a pooled statistic, and of paired differences of both.

Queries are the sampling units, never views or item pairs. Each function drops the queries without a value
and counts them. How replicates become bounds is in :mod:`pytest_invari.statistics.interval`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_invari.statistics.interval import Interval, percentile_bounds
from pytest_invari.statistics.resampling import resample_weights

__all__ = [
    "PooledCounts",
    "Statistic",
    "bootstrap_difference",
    "bootstrap_mean",
    "bootstrap_pooled",
    "bootstrap_pooled_difference",
]

Floats: TypeAlias = NDArray[np.float64]
Statistic: TypeAlias = Callable[[Floats], Floats]
"""Turns pooled ratios (..., C) into one number each (...)."""


class PooledCounts(NamedTuple):
    """What each query adds to ratios that only all queries together define.

    ``numerators`` (N, C) are counts, ``denominators`` (N,) what each query's counts are out of.
    """

    numerators: ArrayLike
    denominators: ArrayLike


def bootstrap_mean(
    values: ArrayLike, seed_id: str, *, replicates: int = 1000, level: float = 0.95
) -> Interval:
    """The unweighted mean over queries with its percentile interval.

    Args:
        values: (N,), NaN for a query without a value.
        seed_id: names what is measured; it seeds the resampling.
        replicates: B, the number of resamples.
        level: the two-sided confidence level.
    """
    given = np.asarray(values, np.float64)
    if given.ndim != 1:
        raise ValueError(f"values must be one a query, not of shape {given.shape}")
    kept = given[~np.isnan(given)]
    # Deviations from one of the values: where all are equal every replicate is exactly that value.
    origin = kept[0] if kept.size else 0.0
    deviations = kept - origin

    def mean(weights: Floats) -> Floats:
        means: Floats = origin + weights @ deviations / len(kept)
        return means

    return _interval(mean, len(kept), len(given) - len(kept), seed_id, replicates, level)


def bootstrap_difference(
    new: ArrayLike, base: ArrayLike, seed_id: str, *, replicates: int = 1000, level: float = 0.95
) -> Interval:
    """The mean of new − base over the same queries, with its percentile interval.

    Args:
        new, base: (N,) each, aligned by query; a query without a value in either is dropped.
        seed_id, replicates, level: as in :func:`bootstrap_mean`.
    """
    first, second = np.asarray(new, np.float64), np.asarray(base, np.float64)
    if first.shape != second.shape:
        raise ValueError(f"a paired difference needs the same queries, not {first.shape} and {second.shape}")
    return bootstrap_mean(first - second, seed_id, replicates=replicates, level=level)


def bootstrap_pooled(
    counts: PooledCounts, statistic: Statistic, seed_id: str, *, replicates: int = 1000, level: float = 0.95
) -> Interval:
    """A statistic of the ratios Σ numerators / Σ denominators over queries, with its percentile interval.

    A statistic that is not linear, such as a largest deviation, is biased away from 0, and its replicates
    once more: the interval may then lie above the estimate. It errs on the side of finding a deviation.

    Args:
        counts: of each query; one whose denominator is 0 is dropped.
        statistic: a function of ratios (..., C) along their last axis.
        seed_id, replicates, level: as in :func:`bootstrap_mean`.
    """
    (ratios,), kept, dropped = _pooled_ratios([counts])
    return _interval(lambda weights: statistic(ratios(weights)), kept, dropped, seed_id, replicates, level)


def bootstrap_pooled_difference(
    new: PooledCounts,
    base: PooledCounts,
    statistic: Statistic,
    seed_id: str,
    *,
    replicates: int = 1000,
    level: float = 0.95,
) -> Interval:
    """A pooled statistic of new minus that of base, both resampled by the same draws.

    Args:
        new, base: aligned by query; a query whose denominator is 0 in either is dropped.
        statistic, seed_id, replicates, level: as in :func:`bootstrap_pooled`.
    """
    (first, second), kept, dropped = _pooled_ratios([new, base])

    def difference(weights: Floats) -> Floats:
        return statistic(first(weights)) - statistic(second(weights))

    return _interval(difference, kept, dropped, seed_id, replicates, level)


def _interval(
    weighted: Statistic, count: int, undefined: int, seed_id: str, replicates: int, level: float
) -> Interval:
    """The interval of a function of query weights (..., count); weight 1 for all gives the estimate."""
    estimate = float(weighted(np.ones((1, count)))[0]) if count else float("nan")
    if count < 2:
        return Interval.without_bounds(estimate, count, undefined, "percentile", level)
    drawn = np.concatenate([weighted(block) for block in resample_weights(count, replicates, seed_id)])
    low, high = percentile_bounds(drawn, level)
    error = float((drawn - estimate).std(ddof=1)) if replicates > 1 else float("nan")
    return Interval(
        estimate, low, high, count, undefined, standard_error=error, level=level, replicates=replicates
    )


def _pooled_ratios(parts: list[PooledCounts]) -> tuple[list[Statistic], int, int]:
    """For each part its ratios as a function of query weights; the queries kept and those dropped."""
    tops = [np.asarray(part.numerators, np.float64) for part in parts]
    totals = [np.asarray(part.denominators, np.float64) for part in parts]
    count = len(totals[0])
    if any(top.ndim != 2 for top in tops) or any(len(each) != count for each in (*tops, *totals)):
        shapes = ", ".join(f"{top.shape} of {total.shape}" for top, total in zip(tops, totals, strict=True))
        raise ValueError(f"pooled counts must be (queries, cells) of (queries,), not {shapes}")
    kept = np.all([total > 0 for total in totals], axis=0)

    def ratios(top: Floats, total: Floats) -> Statistic:
        return lambda weights: (weights @ top) / (weights @ total)[..., None]

    functions = [ratios(top[kept], total[kept]) for top, total in zip(tops, totals, strict=True)]
    return functions, int(kept.sum()), int(count - kept.sum())
