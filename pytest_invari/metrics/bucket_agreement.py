"""BAG, the bucket agreement gap: do views agree more when they show two items in the same regions?"""

from __future__ import annotations

import numpy as np

from pytest_invari.metrics.arrays import Integers, PerQuery, require_shape, too_small
from pytest_invari.metrics.cells import cell_counts
from pytest_invari.metrics.packed import pair_chunks

__all__ = ["NO_VIEWS_IN_DIFFERENT_CELLS", "NO_VIEWS_IN_ONE_CELL", "bucket_agreement_gap"]

NO_VIEWS_IN_ONE_CELL = "no_views_in_one_cell"
NO_VIEWS_IN_DIFFERENT_CELLS = "no_views_in_different_cells"


def bucket_agreement_gap(positions: Integers, ranks: Integers, buckets: int = 3) -> PerQuery:
    """How much more two views agree on two items when both show them in the same regions, in [−1, 1].

    Over all item pairs and pairs of views of a query: the share ordered alike where both views show the two
    items in the same ordered bucket pair, minus that share elsewhere. Where input positions are random and
    do not matter its mean is 0, however few the views and however noisy the reranker, so it needs no null
    as PPI does; where they matter its mean does not depend on M.

    A tie agrees with anything by half, as in tau-a: what breaking ties at random would give on average.

    Args:
        positions: (N, M, K) 0-based input positions.
        ranks: (N, M, K) output ranks, equal where tied.
        buckets: the number of input regions (3: head, middle, tail).

    Undefined for M or K below 2, and where no two views show an item pair in one bucket pair, or all do.
    """
    queries, views, items = require_shape(ranks, positions)
    reason = too_small(views, items)
    if reason:
        return PerQuery.all_undefined(queries, reason)
    # These count each pair of views twice, which cancels.
    every = items * (items - 1) // 2 * views * (views - 1)
    alike, alike_signs, all_signs = np.empty((3, queries), np.int64)
    for chunk in pair_chunks(queries, views, items):
        alike[chunk], alike_signs[chunk], all_signs[chunk] = _view_pairs(
            positions[chunk], ranks[chunk], buckets
        )
    elsewhere = every - alike
    agreement = alike_signs / np.maximum(alike, 1)
    gap = (agreement - (all_signs - alike_signs) / np.maximum(elsewhere, 1)) / 2
    reasons = tuple(
        NO_VIEWS_IN_ONE_CELL if count == 0 else NO_VIEWS_IN_DIFFERENT_CELLS if count == every else None
        for count in alike.tolist()
    )
    return PerQuery(np.where((alike == 0) | (elsewhere == 0), np.nan, gap), reasons)


def _view_pairs(positions: Integers, ranks: Integers, buckets: int) -> tuple[Integers, Integers, Integers]:
    """Sums over item pairs and over views s ≠ t, each int64 (N,).

    How often both show the items in one cell, the sum of x(s)·x(t) there, and that sum over all s ≠ t;
    x is 1, 0 or −1 as a view ranks i above, tied with or below j, and two views agree by (1 + x(s)·x(t))/2.
    """
    queries, views, items = ranks.shape
    pairs = items * (items - 1) // 2
    # Over the cells of an item pair, the squares of counts add up to M² at most.
    whole = np.int32 if views**2 <= np.iinfo(np.int32).max else np.int64
    seen_squared, excess_squared, excess_of_all, untied = np.zeros((4, pairs, queries), whole)
    for seen, above, below in cell_counts(positions, ranks, buckets):
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
