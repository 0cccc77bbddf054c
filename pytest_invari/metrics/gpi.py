"""GPI, global preference inconsistency: how far the preferences are from any one ranking (P1 section 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pytest_invari.metrics.arrays import (
    Bools,
    Floats,
    Integers,
    PerQuery,
    query_chunks,
    require_shape,
    too_small,
)
from pytest_invari.metrics.metric import POSITION_BIAS, TIES, QueryMetric
from pytest_invari.metrics.preference import margins, minority, wins
from pytest_invari.metrics.reasons import PAIRWISE

BEST_RANKING_UNPROVEN = "best_ranking_unproven"

# Entries (queries x items x items) that the search works on at once.
_CHUNK_ENTRIES = 1 << 19


@dataclass(frozen=True, eq=False)
class GlobalInconsistency(PerQuery):
    """GPI of each query with its certificate.

    ``lower_bound`` float64 (N,): :func:`gpi_lower_bound`, which no ranking can go below. ``optimal`` bool
    (N,): whether the ranking is proven to be the best. The swap search proves it only by the lower bound,
    so that it may have found the best ranking where this is false.
    """

    lower_bound: Floats
    optimal: Bools


@dataclass(frozen=True, eq=False)
class Consensus:
    """What the swap search found, one entry a query.

    ``order`` intp (N, K): item indices, best first. ``disagreement`` int64 (N,): 2M·D(σ), the doubled number
    of (view, item pair) that contradict the order, a tie counting half; ``lower_bound`` the same for the
    minorities alone, and ``start_disagreement`` for the order by win score that the search began with.
    ``swaps`` int64 (N,): the swaps it made.
    """

    order: Integers
    disagreement: Integers
    lower_bound: Integers
    start_disagreement: Integers
    swaps: Integers

    @property
    def optimal(self) -> Bools:
        """(N,) whether the lower bound proves the order the best."""
        proven: Bools = self.disagreement == self.lower_bound
        return proven


def gpi(ranks: Integers) -> GlobalInconsistency:
    """The share of preferences that contradict the best-fitting ranking, in [0, 1/2]; lower is better.

    The ranking is the paper's: from the order by win score, the swap of two items that helps most, until
    none helps. All comparisons are of integers. GPI is biased low for small M, by about 4 % at M = 20.

    Args:
        ranks: (N, M, K) output ranks, equal where tied. Undefined for M or K below 2.
    """
    return _fitted(ranks, consensus)


def gpi_exact(ranks: Integers) -> GlobalInconsistency:
    """GPI with the best-fitting ranking of all (Kemeny 1959) in place of the one that a search finds.

    Unlike that of :func:`gpi` its value depends neither on the items' names nor on the direction of the
    rankings. It takes milliseconds a query where the views mostly agree, and up to seconds where the order of
    some 50 items or more is all but random.

    Args:
        ranks: (N, M, K) output ranks, equal where tied. Undefined for M or K below 2, and where too many
            items beat each other in cycles to prove a ranking the best; the lower bound is known there too.
    """
    # Here, because few runs ask for a proof.
    from pytest_invari.metrics.kemeny import kemeny

    found = _fitted(ranks, kemeny)
    unproven = found.defined & ~found.optimal
    reasons = tuple(
        BEST_RANKING_UNPROVEN if bad else reason for bad, reason in zip(unproven, found.reasons, strict=True)
    )
    values = np.where(unproven, np.nan, found.values)
    return GlobalInconsistency(values, reasons, found.lower_bound, found.optimal)


def gpi_lower_bound(ranks: Integers) -> PerQuery:
    """The mean over item pairs of min(q, 1 − q), which the GPI of no ranking goes below.

    The GPI of the best ranking equals it exactly where the majorities have no cycle.

    Args:
        ranks: (N, M, K) output ranks, equal where tied. Undefined for M or K below 2.
    """
    queries, views, items = require_shape(ranks)
    reason = too_small(views, items)
    if reason:
        return PerQuery.all_undefined(queries, reason)
    values = np.empty(queries)
    for chunk, counts in _win_chunks(ranks):
        values[chunk] = minority(counts, views) / _scale(views, items)
    return PerQuery.of(values)


class _Fit(Protocol):
    """Rankings found for some queries, as :class:`Consensus` and ``Kemeny`` describe them."""

    @property
    def disagreement(self) -> Integers: ...
    @property
    def lower_bound(self) -> Integers: ...
    @property
    def optimal(self) -> Bools: ...


def _fitted(ranks: Integers, fit: Callable[[Integers, int, int], _Fit]) -> GlobalInconsistency:
    queries, views, items = require_shape(ranks)
    optimal = np.zeros(queries, np.bool_)
    reason = too_small(views, items)
    if reason:
        undefined = PerQuery.all_undefined(queries, reason)
        return GlobalInconsistency(undefined.values, undefined.reasons, undefined.values, optimal)
    values, lower_bound = np.empty(queries), np.empty(queries)
    for chunk, counts in _win_chunks(ranks):
        found = fit(counts, views, items)
        values[chunk] = found.disagreement / _scale(views, items)
        lower_bound[chunk] = found.lower_bound / _scale(views, items)
        optimal[chunk] = found.optimal
    return GlobalInconsistency(values, (None,) * queries, lower_bound, optimal)


def _win_chunks(ranks: Integers) -> Iterator[tuple[slice, Integers]]:
    for chunk in query_chunks(len(ranks), ranks.shape[2] ** 2, _CHUNK_ENTRIES):
        yield chunk, wins(ranks[chunk])


def _scale(views: int, items: int) -> int:
    """2M·L: a doubled number of (view, item pair) over it is a share of preferences."""
    return views * items * (items - 1)


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
    return Consensus(order, end, minority(counts, views), start, swaps)


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


METRICS = (
    QueryMetric(
        family="gpi",
        place=60,
        label="GPI",
        description="the share of preferences that contradict the one ranking that fits them best",
        direction="lower",
        high=0.5,
        source=f"{POSITION_BIAS}, section 3.3",
        reasons=PAIRWISE,
        parameters=(TIES,),
        standing="always",
        function=lambda block, _: gpi(block.compared),
    ),
    QueryMetric(
        family="gpi_exact",
        place=70,
        label="GPI exact",
        description="GPI with the best ranking of all, not the one that swaps lead to",
        direction="lower",
        high=0.5,
        source=f"{POSITION_BIAS}, section 3.3; Kemeny 1959",
        reasons={**PAIRWISE, BEST_RANKING_UNPROVEN: "no best ranking could be proven"},
        parameters=(TIES,),
        function=lambda block, _: gpi_exact(block.compared),
    ),
    QueryMetric(
        family="gpi_lower_bound",
        place=80,
        label="GPI bound",
        description=(
            "the share of preferences that contradict the majority, pair by pair; no ranking contradicts "
            "fewer"
        ),
        direction="lower",
        high=0.5,
        source="the mean of min(q, 1−q)",
        reasons=PAIRWISE,
        parameters=(TIES,),
        standing="always",
        function=lambda block, _: gpi_lower_bound(block.compared),
    ),
)
