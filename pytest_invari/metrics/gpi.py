"""GPI, global preference inconsistency: how far the preferences are from any one ranking (P1 section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_invari.metrics.arrays import (
    Floats,
    Integers,
    PerQuery,
    query_chunks,
    require_shape,
    too_small,
)
from pytest_invari.metrics.preference import margins, wins

__all__ = ["Consensus", "GlobalInconsistency", "consensus", "gpi"]

# Entries (queries x items x items) that the search works on at once.
_CHUNK_ENTRIES = 1 << 19


@dataclass(frozen=True, eq=False)
class GlobalInconsistency(PerQuery):
    """GPI of each query with its certificate.

    ``lower_bound`` float64 (N,): the mean over item pairs of min(q, 1 − q), which no ranking can go below
    (NaN where undefined). Where GPI equals it, the search has found the best ranking.
    """

    lower_bound: Floats


@dataclass(frozen=True, eq=False)
class Consensus:
    """What the swap search found, one entry a query.

    ``order`` intp (N, K): item indices, best first. ``disagreement`` int64 (N,): 2M·D(σ), the doubled number
    of (view, item pair) that contradict the order, a tie counting half; ``start_disagreement`` the same for
    the order by win score that the search began with. ``swaps`` int64 (N,): the swaps it made.
    """

    order: Integers
    disagreement: Integers
    start_disagreement: Integers
    swaps: Integers


def gpi(ranks: Integers) -> GlobalInconsistency:
    """The share of preferences that contradict the best-fitting ranking, in [0, 1/2]; lower is better.

    The ranking is the paper's: from the order by win score, the swap of two items that helps most, until
    none helps. All comparisons are of integers. GPI is biased low for small M, by about 4 % at M = 20.

    Args:
        ranks: (N, M, K) output ranks, equal where tied. Undefined for M or K below 2.
    """
    queries, views, items = require_shape(ranks)
    reason = too_small(views, items)
    if reason:
        undefined = PerQuery.all_undefined(queries, reason)
        return GlobalInconsistency(undefined.values, undefined.reasons, undefined.values)
    scale = views * items * (items - 1)
    values, lower_bound = np.empty(queries), np.empty(queries)
    for chunk in query_chunks(queries, items * items, _CHUNK_ENTRIES):
        counts = wins(ranks[chunk])
        minority = np.minimum(counts, 2 * views - counts).sum(axis=1, dtype=np.int64)
        lower_bound[chunk] = minority / scale
        values[chunk] = consensus(counts, views, items).disagreement / scale
    return GlobalInconsistency(values, (None,) * queries, lower_bound)


def consensus(counts: Integers, views: int, items: int) -> Consensus:
    """Search for the ranking that contradicts the fewest preferences, by best-improvement swaps.

    Start: descending win score Σ_j q(i, j), ties by item index. Step: of all pairs of places (p, r), swap the
    one that reduces D(σ) most, of equal ones the lexicographically first. Stop: no swap reduces it.

    Args:
        counts: (N, L) doubled win counts as :func:`pytest_invari.metrics.preference.wins` gives them.
        views: M, the number of views they count.
        items: K.
    """
    queries = len(counts)
    order = np.empty((queries, items), np.intp)
    start, end, swaps = (np.empty(queries, np.int64) for _ in range(3))
    for chunk in query_chunks(queries, items * items, _CHUNK_ENTRIES):
        preferred = margins(counts[chunk], views, items)
        score = preferred.sum(axis=1, dtype=np.int64)
        found = np.argsort(-score, axis=0, kind="stable")
        current = _reordered(preferred, found)
        start[chunk] = _disagreement(current, views)
        swaps[chunk] = _improve(current, found)
        end[chunk] = _disagreement(current, views)
        order[chunk] = found.T
    return Consensus(order, end, start, swaps)


def _reordered(matrix: Integers, order: Integers) -> Integers:
    """Bring rows and columns of *matrix* (K, K, n) into each query's *order* (K, n)."""
    items, queries = order.shape
    places = np.empty_like(matrix)
    for place, item in enumerate(order):
        entries = (item * items + order) * queries + np.arange(queries)
        # Indices are in range; to say so spares a buffer.
        matrix.take(entries, out=places[place], mode="clip")
    return places


def _disagreement(current: Integers, views: int) -> Integers:
    """The doubled number of (view, item pair) that contradict the order that *current* (K, K, n) is in."""
    items = len(current)
    agreement = np.zeros(current.shape[2], np.int64)
    for place, row in enumerate(current):
        agreement += row[place + 1 :].sum(axis=0, dtype=np.int64)
    return views * items * (items - 1) // 2 - agreement


def _improve(current: Integers, order: Integers) -> Integers:
    """Swap places of *order* (K, n), and of *current* to match, while it helps; return how often (n,)."""
    queries = np.arange(order.shape[1])
    swaps = np.zeros(len(queries), np.int64)
    while True:
        gains = _swap_gains(current)
        # The matrix is symmetric, so that the best of each column is that of each row.
        best_of_place = gains.max(axis=0)
        upper = best_of_place.argmax(axis=0)
        improving = np.flatnonzero(best_of_place[upper, queries] > 0)
        if not improving.size:
            return swaps
        upper = upper[improving]
        lower = gains[upper, :, improving].argmax(axis=1)
        one, other = (upper, improving), (lower, improving)
        order[one], order[other] = order[other], order[one]
        rows = (upper, slice(None), improving), (lower, slice(None), improving)
        current[rows[0]], current[rows[1]] = current[rows[1]], current[rows[0]]
        columns = (slice(None), upper, improving), (slice(None), lower, improving)
        current[columns[0]], current[columns[1]] = current[columns[1]], current[columns[0]]
        swaps[improving] += 1


def _swap_gains(current: Integers) -> Integers:
    """By how much the swap of places p and r raises the agreement with the preferences, halved, (K, K, n).

    That is −a_pr − Σ_{p<k<r} (a_pk + a_kr) for margins a in the current order. With the column sums
    C_pr = Σ_{k≤p} a_kr and a_kp = −a_pk it equals C_pr + C_rp − C_pp − C_rr: symmetric in p and r and 0 for
    p = r, so the first largest entry of the whole matrix is the lexicographically first best swap.
    """
    sums = np.empty_like(current)
    sums[0] = current[0]
    # A whole matrix row of all queries at a time, which NumPy's cumsum along this axis does not do.
    for place in range(1, len(current)):
        np.add(sums[place - 1], current[place], out=sums[place])
    sums -= np.ascontiguousarray(np.diagonal(sums).T)
    gains: Integers = sums + sums.transpose(1, 0, 2)
    return gains
