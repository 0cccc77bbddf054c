"""In how many views an item pair was shown in each pair of input regions, and who was ranked above there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pytest_invari.metrics.arrays import Integers, require_shape
from pytest_invari.metrics.packed import (
    Words,
    count_views,
    has_ties,
    item_pairs,
    pairs_where,
    views_last,
    views_where,
)


class CellCounts(NamedTuple):
    """The views of each item pair i < j in one cell: i shown in bucket b and j in bucket c, in this order.

    ``seen``, ``above`` and ``below`` are integers (L, N): all such views, those that rank i above j, and
    those that rank it below. The rest are ties.
    """

    seen: Integers
    above: Integers
    below: Integers


def cell_counts(positions: Integers, ranks: Integers, buckets: int = 3) -> Iterator[CellCounts]:
    """Count the views of each cell (b, c), for all buckets that have positions.

    Args:
        positions, ranks, buckets: as in :func:`~pytest_invari.metrics.ppi.ppi`. Memory grows with N; give
            it a few queries at a time.
    """
    if buckets < 1:
        raise ValueError("buckets must be at least 1")
    first, second = item_pairs(require_shape(ranks, positions)[2])
    rows = views_last(ranks)
    above = pairs_where(np.less, rows)
    below = pairs_where(np.greater, rows) if has_ties(ranks) else None
    shown = _bucket_views(positions, buckets)
    shown_second = [bucket[second] for bucket in shown]
    for bucket in shown:
        shown_first = bucket[first]
        for in_bucket in shown_second:
            cell = shown_first & in_bucket
            seen, won = count_views(cell), count_views(above & cell)
            yield CellCounts(seen, won, seen - won if below is None else count_views(below & cell))


def position_buckets(items: int, buckets: int = 3) -> Integers:
    """The bucket ⌊p·B/K⌋ of each of the K input positions (K,); the first ones are the larger."""
    return np.minimum(np.arange(items) * buckets // max(items, 1), buckets - 1)


def _bucket_views(positions: Integers, buckets: int) -> list[Words]:
    """For each bucket that has positions, the views (K, N, words) that show an item there."""
    used, bucket_of = np.unique(position_buckets(positions.shape[-1], buckets), return_inverse=True)
    rows = views_last(bucket_of[positions])
    return [views_where(rows == bucket) for bucket in range(len(used))]
