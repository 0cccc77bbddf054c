"""Exposure: does the input position decide what gets into the top k? (P1 section 3.5)."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import cache

import numpy as np

from pytest_invari.metrics.arrays import Floats, Integers, query_chunks, require_shape, require_strict_ranks
from pytest_invari.metrics.block import Block
from pytest_invari.metrics.metric import POSITION_BIAS, PooledMetric


@dataclass(frozen=True, eq=False)
class ExposureCounts:
    """The counts of each query that add up to an exposure table, for resampling over queries.

    ``top`` int64 (N, K): the views in which the item shown at position p came out in the top k.
    ``views`` int64 (N,): the views of each query; each shows one item at every position.
    Counts of different K never belong in one table.
    """

    top: Integers
    views: Integers
    k: int

    @property
    def table(self) -> Floats:
        """E_k(p), float64 (K,), pooled over queries, views and items; NaN when there is no view."""
        total = int(self.views.sum())
        return self.top.sum(axis=0) / total if total else np.full(self.top.shape[1], np.nan)


def exposure(positions: Integers, ranks: Integers, k: int) -> Floats:
    """The share E_k(p) of views whose item at input position p comes out in the top k.

    Args:
        positions: (N, M, K) 0-based input positions.
        ranks: (N, M, K) strict output ranks.
        k: the length of the top; from K on every share is 1.

    Returns:
        float64 (K,), which adds up to min(k, K). Under random input orders a reranker that ignores them
        has k/K everywhere, in expectation.
    """
    return exposure_counts(positions, ranks, k).table


def exposure_counts(positions: Integers, ranks: Integers, k: int) -> ExposureCounts:
    """Count, for each query, the top-k places that each input position won; arguments as :func:`exposure`."""
    queries, views, items = require_shape(ranks, positions)
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    top = np.empty((queries, items), np.int64)
    for chunk in query_chunks(queries, views * items):
        require_strict_ranks(ranks[chunk])
        first = np.arange(len(ranks[chunk]))[:, None, None] * items
        winners = (positions[chunk] + first)[ranks[chunk] < k]
        top[chunk] = np.bincount(winners, minlength=len(first) * items).reshape(-1, items)
    return ExposureCounts(top, np.full(queries, views, np.int64), k)


def maximum_exposure_deviation(tables: Floats, k: int) -> Floats:
    """The largest |E_k(p) − k/K| over positions, (...), of *tables* (..., K).

    It is not 0 for a reranker that ignores the input order: about .02 for 100 queries of 20 views at
    K = 25, k = 5, and it falls with the square root of the number of views.
    """
    result: Floats = _deviation(tables, k).max(axis=-1)
    return result


def mean_exposure_deviation(tables: Floats, k: int) -> Floats:
    """The mean |E_k(p) − k/K| over positions, (...), of *tables* (..., K)."""
    result: Floats = _deviation(tables, k).mean(axis=-1)
    return result


def _deviation(tables: Floats, k: int) -> Floats:
    items = tables.shape[-1]
    deviation: Floats = np.abs(tables - min(k, items) / items)
    return deviation


# From this length on, that the data set's own order is never drawn moves no share by more than 0.01.
_LONG_ENOUGH = 5


def expected_deviation(top: int, items: int, views: int) -> tuple[float, float]:
    """The largest and the mean |E_k(p) − k/K| to expect of chance alone over *views* views; NaN without any.

    NaN, too, for lists so short that it depends on the reranker: views are drawn from all orders but the data
    set's own.

    Each view fills *top* of *items* places at random, so the shares of many views are normal with variance
    s² = k/K·(1 − k/K)/views and add up to k.
    """
    if not views or items < _LONG_ENOUGH:
        return math.nan, math.nan
    level = min(top, items) / items
    largest, mean = _distances(items)
    scale = math.sqrt(level * (1 - level) / views)
    return scale * largest, scale * mean


@cache
def _distances(items: int) -> tuple[float, float]:
    """The largest and the mean distance from 0 of standard normals that add up to 0, over 20,000 draws."""
    draws = np.random.default_rng(0).standard_normal((20_000, items))
    draws -= draws.mean(axis=1, keepdims=True)
    distances = math.sqrt(items / (items - 1)) * np.abs(draws)
    return float(distances.max(axis=1).mean()), float(distances.mean())


def _counts(block: Block, k: int) -> tuple[Integers, Integers]:
    # Not the tied ranks: a top k of tied items may hold any number of them.
    counted = exposure_counts(block.positions, block.ranks, k)
    return counted.top, counted.views


METRICS = (
    PooledMetric(
        family="exposure_deviation",
        place=100,
        label="exposure dev.",
        description="the largest distance of a position's share of top-k places from k/K",
        direction="lower",
        source=f"{POSITION_BIAS}, section 3.5",
        null=lambda k, items, views: expected_deviation(k, items, views)[0],
        has_cutoff=True,
        standing="always",
        counts=_counts,
        statistic=maximum_exposure_deviation,
        distance_from=operator.truediv,
    ),
    PooledMetric(
        family="exposure_deviation_mean",
        place=110,
        label="exposure dev. mean",
        description="the mean distance of the positions' shares of top-k places from k/K",
        direction="lower",
        source=f"{POSITION_BIAS}, section 3.5",
        null=lambda k, items, views: expected_deviation(k, items, views)[1],
        has_cutoff=True,
        counts=_counts,
        statistic=mean_exposure_deviation,
        distance_from=operator.truediv,
    ),
)
