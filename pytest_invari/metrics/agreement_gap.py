"""Agreement gaps: do two views order two items alike more often where something else is alike as well?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from pytest_invari.metrics.arrays import Floats, Integers, PerQuery, too_small
from pytest_invari.metrics.cells import CellCounts
from pytest_invari.metrics.packed import pair_chunks


@dataclass(frozen=True, eq=False)
class AgreementGap(PerQuery):
    """The gap of each query and the two shares whose difference it is.

    ``same`` and ``other`` float64 (N,): the share of (item pair, pair of views) ordered alike, among those
    that have the item pair in one cell and among the rest; NaN where there are none.
    """

    same: Floats
    other: Floats


def agreement_gap(
    shape: tuple[int, int, int],
    cells_of: Callable[[slice], Iterable[CellCounts]],
    *,
    never_same: str,
    always_same: str,
) -> AgreementGap:
    """P(two views order two items alike | one cell) − P(… | different cells), in [−1, 1].

    Both are ratios of sums over the item pairs and pairs of views of one query. Where views fall into cells
    at random and the cell does not matter, the mean of the gap is 0, however few the views and however
    noisy the reranker; where it matters, the mean does not depend on M.

    A tie agrees with anything by half, as in tau-a: what breaking ties at random would give on average.

    Args:
        shape: (N, M, K).
        cells_of: for a slice of the queries, the cells of their item pairs; every view is in one of them.
        never_same: the reason where no two views have an item pair in one cell.
        always_same: the reason where all have.

    Undefined for these reasons, and for M or K below 2.
    """
    queries, views, items = shape
    reason = too_small(views, items)
    if reason:
        nothing = PerQuery.all_undefined(queries, reason)
        return AgreementGap(nothing.values, nothing.reasons, nothing.values, nothing.values)
    # These count each pair of views twice, which cancels.
    every = items * (items - 1) // 2 * views * (views - 1)
    alike, alike_signs, all_signs = np.empty((3, queries), np.int64)
    for chunk in pair_chunks(queries, views, items):
        count = len(range(*chunk.indices(queries)))
        alike[chunk], alike_signs[chunk], all_signs[chunk] = _view_pairs(cells_of(chunk), count, views, items)
    same = _mean_sign(alike_signs, alike)
    other = _mean_sign(all_signs - alike_signs, every - alike)
    reasons = tuple(
        never_same if count == 0 else always_same if count == every else None for count in alike.tolist()
    )
    return AgreementGap((same - other) / 2, reasons, (1 + same) / 2, (1 + other) / 2)


def _view_pairs(
    cells: Iterable[CellCounts], queries: int, views: int, items: int
) -> tuple[Integers, Integers, Integers]:
    """Sums over item pairs and over views s ≠ t, each int64 (n,).

    How often both have the items in one cell, the sum of x(s)·x(t) there, and that sum over all s ≠ t;
    x is 1, 0 or −1 as a view ranks i above, tied with or below j, and two views agree by (1 + x(s)·x(t))/2.
    """
    pairs = items * (items - 1) // 2
    # Over the cells of an item pair, the squares of counts add up to M² at most.
    whole = np.int32 if views**2 <= np.iinfo(np.int32).max else np.int64
    seen_squared, excess_squared, excess_of_all, untied = np.zeros((4, pairs, queries), whole)
    for seen, above, below in cells:
        excess = above - below
        seen_squared += np.square(seen, dtype=whole)
        excess_squared += np.square(excess, dtype=whole)
        excess_of_all += excess
        untied += above + below
    # A square counts each view with itself as well, which adds x(t)²: 1 unless it ties the two.
    own = untied.sum(axis=0)
    return (
        seen_squared.sum(axis=0) - pairs * views,
        excess_squared.sum(axis=0) - own,
        np.square(excess_of_all).sum(axis=0) - own,
    )


def _mean_sign(signs: Integers, count: Integers) -> Floats:
    mean: Floats = np.where(count > 0, signs / np.maximum(count, 1), np.nan)
    return mean
