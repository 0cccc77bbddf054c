"""Spearman's correlation over queries, and its bootstrap for many correlations by the same draws.

Ranks of a resample are midranks of weighted queries: in sorted order, the weight before a group of ties and
half of the group's own. Ranks are kept doubled and centred, so that all sums are whole numbers and what is
equal is equal exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pytest_invari.metrics.arrays import Bools, Floats
from pytest_invari.statistics.bootstrap import interval_of_replicates
from pytest_invari.statistics.distribution import Percentile
from pytest_invari.statistics.interval import Interval
from pytest_invari.statistics.resampling import Resamples

FEWER_THAN_3_QUERIES = "fewer_than_3_queries"
CONSTANT_VALUES = "constant_values"

# Entries of all ranks held at once, (vectors, N, b): about what stays in a core's cache.
_CHUNK_ENTRIES = 1 << 20
_LEAST_CHUNK = 4


@dataclass(frozen=True, slots=True)
class Correlation:
    """Spearman's ρ over the *n* queries with both values; NaN exactly when there is a reason code."""

    value: float
    n: int
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class CorrelationBootstrap:
    """Correlations by name, each with its replicates (B,), all of the same resamples.

    A replicate is NaN where the resample leaves fewer than three queries or a constant.
    """

    estimates: Mapping[str, Correlation]
    replicates: Mapping[str, Floats]
    queries: int

    def interval(self, name: str, *, level: float = 0.95) -> Interval:
        """The percentile interval of one correlation, the one that P2 gives."""
        found = self.estimates[name]
        return self._interval(found.value, self.replicates[name], found.n, found.reason, level)

    def contrast(self, name: str, base: str, *, level: float = 0.95) -> Interval:
        """The percentile interval of one correlation less another, paired by resample."""
        one, other = self.estimates[name], self.estimates[base]
        return self._interval(
            one.value - other.value,
            self.replicates[name] - self.replicates[base],
            min(one.n, other.n),
            one.reason or other.reason,
            level,
        )

    def _interval(self, value: float, drawn: Floats, n: int, reason: str | None, level: float) -> Interval:
        undefined = self.queries - n
        if reason is not None:
            return Interval(math.nan, math.nan, math.nan, n, undefined, reason=reason, level=level)
        return interval_of_replicates(value, drawn, n, undefined, Percentile, "percentile", level)


def spearman(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Spearman's ρ: Pearson's correlation of midranks.

    Args:
        x, y: (N,) each, aligned by query; a query without a value (NaN) in either does not count.

    Returns:
        Undefined for fewer than 3 queries or where either is constant.
    """
    pair = {"pair": ("x", "y")}
    (found,) = _estimates({"x": _vector(x), "y": _vector(y)}, pair).values()
    return found


def bootstrap_spearman(
    vectors: Mapping[str, ArrayLike], pairs: Mapping[str, tuple[str, str]], resamples: Resamples
) -> CorrelationBootstrap:
    """Correlate named pairs of vectors, and again in every resample.

    Values that are equal but for rounding must be rounded first: ranks tell them apart.

    Args:
        vectors: (N,) each, aligned by query; NaN where a query has no value.
        pairs: for each correlation's name the names of its two vectors.
        resamples: of the N queries.
    """
    given = {name: _vector(values) for name, values in vectors.items()}
    if any(len(values) != resamples.count for values in given.values()):
        shapes = ", ".join(f"{name} {len(values)}" for name, values in given.items())
        raise ValueError(f"resamples of {resamples.count} queries do not fit: {shapes}")
    correlate = _plan(given, pairs)
    step = max(_LEAST_CHUNK, _CHUNK_ENTRIES // (resamples.count * max(1, 2 * len(given))))
    parts = []
    for block in resamples.blocks():
        for start in range(0, len(block), step):
            # Queries first: sorting, summing along and matching are then moves and sums of whole rows.
            parts.append(correlate(np.ascontiguousarray(block[start : start + step].T)))
    replicates = dict(zip(pairs, np.concatenate(parts, axis=1), strict=True))
    return CorrelationBootstrap(_estimates(given, pairs), replicates, resamples.count)


def _estimates(vectors: Mapping[str, Floats], pairs: Mapping[str, tuple[str, str]]) -> dict[str, Correlation]:
    count = len(next(iter(vectors.values())))
    values = _plan(vectors, pairs)(np.ones((count, 1)))[:, 0]
    found = {}
    for (name, (first, second)), value in zip(pairs.items(), values, strict=True):
        n = int((_defined(vectors[first]) & _defined(vectors[second])).sum())
        reason = None if not math.isnan(value) else FEWER_THAN_3_QUERIES if n < 3 else CONSTANT_VALUES
        found[name] = Correlation(float(value), n, reason)
    return found


def _plan(vectors: Mapping[str, Floats], pairs: Mapping[str, tuple[str, str]]) -> Callable[[Floats], Floats]:
    """A function from weights (N, b) to correlations (P, b) that ranks a vector once for all its pairs."""
    rankers: dict[tuple[str, bytes], _Ranker] = {}
    sides = []
    for first, second in pairs.values():
        kept = _defined(vectors[first]) & _defined(vectors[second])
        keys = [(name, kept.tobytes()) for name in (first, second)]
        for key in keys:
            if key not in rankers:
                rankers[key] = _Ranker(vectors[key[0]], kept)
        sides.append(keys)

    def correlate(weights: Floats) -> Floats:
        ranked = {key: ranker(weights) for key, ranker in rankers.items()}
        found = [_correlation(ranked[first], ranked[second]) for first, second in sides]
        return np.stack(found) if found else np.empty((0, weights.shape[1]))

    return correlate


@dataclass(frozen=True, slots=True, eq=False)
class _WeightedRanks:
    """Doubled, centred ranks (n, b), these times the weights, and what a correlation divides by (b,)."""

    ranks: Floats
    weighted: Floats
    norm: Floats


class _Ranker:
    """Ranks the *kept* queries of one vector under any weights."""

    def __init__(self, values: Floats, kept: Bools) -> None:
        self.kept = slice(None) if kept.all() else np.flatnonzero(kept)
        order = np.argsort(values[kept], kind="stable")
        ordered = values[kept][order]
        is_first = np.ones(len(ordered), np.bool_)
        is_first[1:] = ordered[1:] != ordered[:-1]
        self.order = order
        self.starts = np.flatnonzero(is_first)
        self.groups = np.empty(len(order), np.intp)
        self.groups[order] = np.cumsum(is_first) - 1

    def __call__(self, weights: Floats) -> _WeightedRanks:
        own = weights[self.kept]
        sizes = own[self.order]
        if len(self.starts) < len(sizes):
            sizes = np.add.reduceat(sizes, self.starts, axis=0)
        ends = np.cumsum(sizes, axis=0)
        total = ends[-1] if len(ends) else np.zeros(weights.shape[1])
        # Twice the midrank less (n + 1): the weight before the group, twice, plus the group's, less n.
        doubled = 2 * ends
        doubled -= sizes
        doubled -= total
        ranks = doubled[self.groups]
        weighted = own * ranks
        squares = np.einsum("ib,ib->b", weighted, ranks)
        return _WeightedRanks(ranks, weighted, np.where(total < 3, 0.0, np.sqrt(squares)))


def _correlation(one: _WeightedRanks, other: _WeightedRanks) -> Floats:
    """ρ (b,), NaN where either side is constant or fewer than three queries are there."""
    scale = one.norm * other.norm
    together = np.einsum("ib,ib->b", one.weighted, other.ranks)
    rho = np.full_like(scale, np.nan)
    np.divide(together, scale, out=rho, where=scale > 0)
    return rho.clip(-1.0, 1.0)


def _vector(values: ArrayLike) -> Floats:
    given = np.asarray(values, np.float64)
    if given.ndim != 1:
        raise ValueError(f"values must be one a query, not of shape {given.shape}")
    return given


def _defined(values: Floats) -> Bools:
    return ~np.isnan(values)
