"""Do two probes name the same quarter of the queries as the least stable? (P2 section 5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pytest_invari.independent_views.replicated import Replicated
from pytest_invari.metrics.arrays import Bools, Floats
from pytest_invari.statistics.correlation import CONSTANT_VALUES
from pytest_invari.statistics.resampling import Resamples


def chance_jaccard(queries: int) -> float:
    """The Jaccard overlap of two quarters that have nothing to do with each other: about 1/7, not 0.

    k / (2N − k) for k = ⌈N/4⌉, where the quarters share the k²/N queries that chance lets them expect.
    """
    top = _quarter(queries)
    return top / (2 * queries - top)


def top_quartile_jaccard(
    one: Floats, other: Floats, query_ids: Sequence[str], resamples: Resamples
) -> Replicated:
    """The Jaccard overlap of the ⌈N/4⌉ queries with the largest values, by one probe and by the other.

    Ties go by query id. A query that a resample draws twice is two queries there.

    Args:
        one, other: (N,).
        query_ids: of the N queries.
        resamples: of the N queries.

    Returns:
        Undefined where either is the same for all queries.
    """
    count = len(one)
    value = jaccard_with(one, query_ids)(other)
    if math.isnan(value):
        return Replicated.undefined(resamples.replicates, count, CONSTANT_VALUES)
    places = _places(query_ids)
    tops = [_Top(values, places) for values in (one, other)]
    return Replicated(value, np.concatenate([_overlap(tops, block) for block in resamples.blocks()]), count)


def jaccard_with(one: Floats, query_ids: Sequence[str]) -> Callable[[Floats], float]:
    """The overlap of other values (N,) with *one* (N,), as :func:`top_quartile_jaccard`; NaN if undefined."""
    places = _places(query_ids)
    once = np.ones((1, len(one)))
    top = _Top(one, places)
    return lambda other: float(_overlap([top, _Top(other, places)], once)[0])


class _Top:
    """The top quarter by one probe, under any weights."""

    def __init__(self, values: Floats, places: Floats) -> None:
        self.order = np.lexsort((places, -values))
        self.ordered = values[self.order]

    def __call__(self, weights: Floats) -> tuple[Floats, Bools]:
        """How many of each query's draws (b, N) are in the top, and whether all drawn have one value (b,)."""
        in_order = weights[:, self.order]
        before = np.cumsum(in_order, axis=1)
        before -= in_order
        taken = np.empty_like(weights)
        taken[:, self.order] = np.clip(_quarter(weights.shape[1]) - before, 0, in_order)
        is_drawn = in_order > 0
        first = is_drawn.argmax(axis=1)
        last = is_drawn.shape[1] - 1 - is_drawn[:, ::-1].argmax(axis=1)
        return taken, self.ordered[first] == self.ordered[last]


def _overlap(tops: Sequence[_Top], weights: Floats) -> Floats:
    """The Jaccard overlap (b,) of two tops under weights (b, N)."""
    (one, one_is_constant), (other, other_is_constant) = (top(weights) for top in tops)
    shared = np.minimum(one, other).sum(axis=1)
    overlap = shared / (2 * _quarter(weights.shape[1]) - shared)
    return np.where(one_is_constant | other_is_constant, np.nan, overlap)


def _places(query_ids: Sequence[str]) -> Floats:
    """The place of each query in the order of ids."""
    places = np.empty(len(query_ids))
    places[sorted(range(len(query_ids)), key=query_ids.__getitem__)] = np.arange(len(query_ids))
    return places


def _quarter(queries: int) -> int:
    return math.ceil(queries / 4)
