"""GPI, global preference inconsistency: how far the preferences are from any one ranking (P1 section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_invari.metrics.arrays import Floats, Integers, PerQuery, query_chunks, require_shape, too_small
from pytest_invari.metrics.packed import item_pairs
from pytest_invari.metrics.preference import preference_counts

__all__ = ["Consensus", "GlobalInconsistency", "consensus", "gpi"]

# Entries (queries x items x items) that the search works on at once.
_CHUNK_ENTRIES = 1 << 17


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
    for chunk, above, below in preference_counts(ranks):
        counts = views + above.astype(np.int32) - below
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
        margins = _margins(counts[chunk], views, items)
        score = margins.sum(axis=2, dtype=np.int64)
        order[chunk] = np.argsort(-score, axis=1, kind="stable")
        start[chunk] = _disagreement(margins, order[chunk], views)
        swaps[chunk] = _improve(margins, order[chunk])
        end[chunk] = _disagreement(margins, order[chunk], views)
    return Consensus(order, end, start, swaps)


def _margins(counts: Integers, views: int, items: int) -> Integers:
    """Views for i above j minus views for j above i, (n, K, K), skew-symmetric."""
    # The search adds four row sums of at most K·M; where int16 holds them it moves a quarter of the bytes.
    narrow = np.int16 if 4 * items * views <= np.iinfo(np.int16).max else np.int64
    first, second = item_pairs(items)
    margins = np.zeros((len(counts), items, items), narrow)
    margins[:, first, second] = counts - views
    margins[:, second, first] = views - counts
    return margins


def _disagreement(margins: Integers, order: Integers, views: int) -> Integers:
    first, second = item_pairs(order.shape[1])
    along = np.take_along_axis(np.take_along_axis(margins, order[:, :, None], 1), order[:, None, :], 2)
    agreement: Integers = along[:, first, second].sum(axis=1, dtype=np.int64)
    return views * len(first) - agreement


def _improve(margins: Integers, order: Integers) -> Integers:
    """Apply improving swaps to *order* (n, K) in place; return their number (n,)."""
    swaps = np.zeros(len(order), np.int64)
    active = np.arange(len(order))
    current = np.take_along_axis(np.take_along_axis(margins, order[:, :, None], 1), order[:, None, :], 2)
    while active.size:
        agreement = _swap_agreement(current).reshape(len(active), -1)
        best = agreement.argmin(axis=1)
        improving = agreement[np.arange(len(active)), best] < 0
        active, current, best = active[improving], current[improving], best[improving]
        upper, lower = np.divmod(best, order.shape[1])
        rows = np.arange(len(active))
        order[active, upper], order[active, lower] = order[active, lower], order[active, upper]
        current[rows, upper], current[rows, lower] = current[rows, lower], current[rows, upper]
        current[rows, :, upper], current[rows, :, lower] = current[rows, :, lower], current[rows, :, upper]
        swaps[active] += 1
    return swaps


def _swap_agreement(current: Integers) -> Integers:
    """How much the preferences agree with what the swap of places p and r would turn round, (n, K, K).

    That is a_pr + Σ_{p<k<r} (a_pk + a_kr), for margins a in the current order. With row sums
    C_pr = Σ_{k≤r} a_pk and a_kr = −a_rk it equals C_pr + C_rp − C_pp − C_rr: symmetric in p and r and 0 for
    p = r, so the first smallest entry of the whole matrix is the lexicographically first best swap.
    """
    sums = np.cumsum(current, axis=2, dtype=current.dtype)
    diagonal = np.diagonal(sums, axis1=1, axis2=2)
    agreement = sums + sums.transpose(0, 2, 1)
    agreement -= diagonal[:, :, None]
    agreement -= diagonal[:, None, :]
    return agreement
