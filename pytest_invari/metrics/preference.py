"""Pairwise preferences: how many views rank one item above another (P1 section 3.1)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pytest_invari.metrics.arrays import Floats, Integers, PerQuery, require_shape
from pytest_invari.metrics.metric import QueryMetric
from pytest_invari.metrics.packed import (
    count_views,
    has_ties,
    item_pairs,
    pair_chunks,
    pairs_where,
    views_last,
)
from pytest_invari.metrics.reasons import FEWER_THAN_2_ITEMS, PAIRWISE


def wins(ranks: Integers) -> Integers:
    """Count the views in which item i is above item j, doubled so that a tie, half a win, stays whole.

    Args:
        ranks: (N, M, K) output ranks, equal where tied.

    Returns:
        int32 (N, L), in 0 … 2M, for the pairs i < j in the order of ``triu_indices(K, 1)``. The count of
        (j, i) is 2M minus it.
    """
    queries, views, items = require_shape(ranks)
    doubled = np.empty((queries, items * (items - 1) // 2), np.int32)
    for chunk, above, below in preference_counts(ranks):
        doubled[chunk] = views + above - below
    return doubled


def preferences(ranks: Integers) -> Floats:
    """The share q(i, j) of views that rank i above j, a tie counting half (P1 section 3.1).

    Args:
        ranks: (N, M, K), M at least 1.

    Returns:
        float64 (N, L) for the pairs i < j; q(j, i) = 1 − q(i, j).
    """
    if ranks.shape[1] == 0:
        raise ValueError("a preference needs at least one view")
    shares: Floats = wins(ranks) / (2 * ranks.shape[1])
    return shares


def margins(counts: Integers, views: int, items: int) -> Integers:
    """How many more views rank i above j than j above i, as a matrix that is skew-symmetric in i and j.

    Args:
        counts: (N, L) doubled win counts as :func:`wins` gives them.
        views: M, the number of views they count.
        items: K.

    Returns:
        (K, K, N), the queries last, so that what is done for every query runs along memory. int16 where that
        holds 4·K·M, four row sums of it; else int64.
    """
    first, second = item_pairs(items)
    pairs = len(first)
    narrow = np.int16 if 4 * items * views <= np.iinfo(np.int16).max else np.int64
    # The margins of (i, j), those of (j, i), and 0 for (i, i); each entry of the matrix is one of them.
    signed = np.zeros((2 * pairs + 1, len(counts)), narrow)
    np.subtract(counts.T, views, out=signed[:pairs], casting="unsafe")
    np.negative(signed[:pairs], out=signed[pairs:-1])
    row = np.full((items, items), 2 * pairs)
    row[first, second] = np.arange(pairs)
    row[second, first] = np.arange(pairs, 2 * pairs)
    matrix: Integers = signed[row]
    return matrix


def minority(counts: Integers, views: int) -> Integers:
    """The doubled number of (view, item pair) that contradict the majority of their own pair, int64 (N,).

    Args:
        counts: (N, L) doubled win counts as :func:`wins` gives them.
        views: M, the number of views they count.
    """
    least: Integers = np.minimum(counts, 2 * views - counts).sum(axis=1, dtype=np.int64)
    return least


def preference_counts(ranks: Integers) -> Iterator[tuple[slice, Integers, Integers]]:
    """Count, some queries at a time, the views with i above j and those with i below j; the rest are ties.

    Yields the slice of queries and two integer arrays (n, L), in the pair order of :func:`wins`.
    """
    queries, views, items = require_shape(ranks)
    for chunk in pair_chunks(queries, views, items):
        rows = views_last(ranks[chunk])
        above = count_views(pairs_where(np.less, rows)).T
        if has_ties(ranks[chunk]):
            yield chunk, above, count_views(pairs_where(np.greater, rows)).T
        else:
            yield chunk, above, (views - above).astype(above.dtype)


def tie_rate(ranks: Integers) -> PerQuery:
    """The share of item pairs, over all views, that the reranker could not tell apart.

    Args:
        ranks: (N, M, K), M at least 1, equal where tied. Undefined for K below 2.
    """
    queries, views, items = require_shape(ranks)
    if items < 2:
        return PerQuery.all_undefined(queries, FEWER_THAN_2_ITEMS)
    if views == 0:
        raise ValueError("a tie rate needs at least one view")
    values = np.empty(queries)
    for chunk, above, below in preference_counts(ranks):
        values[chunk] = 1 - (above + below).sum(axis=1, dtype=np.int64) / (views * above.shape[1])
    return PerQuery.of(values)


METRICS = (
    QueryMetric(
        family="tie_rate",
        place=230,
        description="the share of item pairs with equal scores",
        direction="lower",
        source="counted",
        reasons={FEWER_THAN_2_ITEMS: PAIRWISE[FEWER_THAN_2_ITEMS]},
        standing="always",
        is_hidden_at_zero=True,
        function=lambda block, _: tie_rate(block.tied_ranks),
    ),
)
