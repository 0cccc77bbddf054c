"""PPI without its noise floor: regions chosen on one half of the views, preferences compared on the other."""

from __future__ import annotations

import numpy as np

from pytest_invari.metrics.arrays import (
    Bools,
    Floats,
    Integers,
    PerQuery,
    query_chunks,
    require_shape,
)
from pytest_invari.metrics.cells import cell_counts
from pytest_invari.metrics.metric import REGIONS, QueryMetric
from pytest_invari.metrics.ppi import NO_PAIR_WITH_2_CELLS
from pytest_invari.metrics.reasons import FEWER_THAN_2_ITEMS, PAIRWISE

FEWER_THAN_4_VIEWS = "fewer_than_4_views"


def ppi_split(positions: Integers, ranks: Integers, buckets: int = 3, min_observations: int = 1) -> PerQuery:
    """The spread of preferences between regions that other views have singled out, in [−1, 1].

    PPI takes the largest and the smallest of noisy shares q(i, j | b, c) and so keeps their noise. Here the
    views 0, 2, 4, … say in which bucket pairs an item pair is most and least preferred, the views 1, 3, 5, …
    say how far apart these are, then the halves change roles; the mean of both is the pair's value. Its
    mean is 0 where positions do not matter. Where they do it is too low, the more the fewer the views,
    because half of them may pick the wrong regions.

    A bucket pair counts where each half has enough views of it; bucket pairs that stand out equally are
    averaged; an item pair needs two bucket pairs, and the others are left out of the mean.

    Args:
        positions, ranks, buckets: as in :func:`~pytest_invari.metrics.ppi.ppi`.
        min_observations: the views that a bucket pair needs in each half.

    Undefined for M below 4 (halves of one view show one bucket pair each) or K below 2, and where no item
    pair is left.
    """
    if min_observations < 1:
        raise ValueError("min_observations must be at least 1")
    queries, views, items = require_shape(ranks, positions)
    if views < 4 or items < 2:
        return PerQuery.all_undefined(queries, FEWER_THAN_4_VIEWS if views < 4 else FEWER_THAN_2_ITEMS)
    total, counted = np.zeros(queries), np.zeros(queries, np.int64)
    # The shares of all cells are held at once, eight bytes each; the flags of views are one byte.
    cells = min(buckets, items) ** 2
    for chunk in query_chunks(queries, items * (items - 1) // 2 * max(8 * cells, views)):
        (first, in_first), (second, in_second) = (
            _shares(positions[chunk, half::2], ranks[chunk, half::2], buckets, min_observations)
            for half in (0, 1)
        )
        in_both = in_first & in_second
        enough = in_both.sum(axis=0) >= 2
        spread = (_spread(first, second, in_both) + _spread(second, first, in_both)) / 2
        # Rows of their own, so that a query's sum rounds the same in every batch.
        total[chunk] = np.ascontiguousarray(np.where(enough, spread, 0.0).T).sum(axis=1)
        counted[chunk] = enough.sum(axis=0)
    return PerQuery.of(total / np.maximum(counted, 1), counted == 0, NO_PAIR_WITH_2_CELLS)


def _shares(
    positions: Integers, ranks: Integers, buckets: int, min_observations: int
) -> tuple[Floats, Bools]:
    """The shares q(i, j | b, c), float64 (cells, L, N), and whether their views are enough."""
    counts = list(cell_counts(positions, ranks, buckets))
    seen = np.stack([cell.seen for cell in counts])
    doubled = np.stack([cell.seen + cell.above - cell.below for cell in counts])
    return doubled / (2 * np.maximum(seen, 1)), seen >= min_observations


def _spread(chosen_by: Floats, measured_by: Floats, usable: Bools) -> Floats:
    """The difference (L, N) in *measured_by* between the cells that *chosen_by* has highest and lowest."""
    highest = np.where(usable, chosen_by, -1.0)
    lowest = np.where(usable, chosen_by, 2.0)
    top = _mean_over(highest == highest.max(axis=0), measured_by)
    return top - _mean_over(lowest == lowest.min(axis=0), measured_by)


def _mean_over(cells: Bools, shares: Floats) -> Floats:
    return np.asarray((shares * cells).sum(axis=0) / cells.sum(axis=0))


METRICS = (
    QueryMetric(
        family="ppi_split",
        place=50,
        label="PPI split",
        description="PPI with the regions chosen on one half of the views and compared on the other",
        direction="lower",
        low=-1.0,
        source="cross-fitting of PPI; 0 on average without position effects",
        null=0.0,
        reasons={
            FEWER_THAN_2_ITEMS: PAIRWISE[FEWER_THAN_2_ITEMS],
            FEWER_THAN_4_VIEWS: "",
            NO_PAIR_WITH_2_CELLS: "",
        },
        parameters=REGIONS,
        function=lambda block, _: ppi_split(block.positions, block.compared),
    ),
)
