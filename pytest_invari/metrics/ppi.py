"""PPI, pairwise preference instability: does a preference depend on where the two items stood? (P1 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pytest_invari.metrics.arrays import Floats, Integers, PerQuery, require_shape, too_small
from pytest_invari.metrics.cells import cell_counts
from pytest_invari.metrics.metric import POSITION_BIAS, REGIONS, Parameter, QueryMetric
from pytest_invari.metrics.packed import pair_chunks
from pytest_invari.metrics.reasons import PAIRWISE

NO_PAIR_WITH_2_CELLS = "no_pair_with_2_cells"


@dataclass(frozen=True, eq=False)
class PairInstability(PerQuery):
    """PPI of each query and how much it rests on.

    ``cells_observed_mean`` float64 (N,): the mean number of bucket pairs that an item pair was seen in.
    ``single_cell_pairs`` int64 (N,): the item pairs seen in fewer than two, which nothing can be said of.
    Both are 0 where there was nothing to measure.
    """

    cells_observed_mean: Floats
    single_cell_pairs: Integers


def ppi(
    positions: Integers,
    ranks: Integers,
    buckets: int = 3,
    min_observations: int = 1,
    single_cell: Literal["zero", "drop"] = "zero",
) -> PairInstability:
    """The mean over item pairs of the spread of their preference between input regions, in [0, 1].

    For each pair, q(i, j | b, c) is the share of views with i above j among those that show i in bucket b
    and j in bucket c; the pair's instability is the largest minus the smallest over the ordered bucket pairs
    seen often enough. It has a large noise floor that depends on M: compare at equal M, K and buckets only.

    Args:
        positions: (N, M, K) 0-based input positions.
        ranks: (N, M, K) output ranks, equal where tied (half a win).
        buckets: the number of input regions (3: head, middle, tail).
        min_observations: the views that a bucket pair needs in order to count.
        single_cell: an item pair with fewer than two counted bucket pairs is 0 ("zero", the paper's
            text) or left out of the mean ("drop", the paper's code).

    Undefined for M or K below 2, and with "drop" where no item pair is left.
    """
    if single_cell not in ("zero", "drop"):
        raise ValueError(f"single_cell is 'zero' or 'drop', not {single_cell!r}")
    queries, views, items = require_shape(ranks, positions)
    none = np.zeros(queries)
    cells_mean, single = none.copy(), np.zeros(queries, np.int64)
    reason = too_small(views, items)
    if reason:
        undefined = PerQuery.all_undefined(queries, reason)
        return PairInstability(undefined.values, undefined.reasons, cells_mean, single)
    total = none.copy()
    pairs = items * (items - 1) // 2
    for chunk in pair_chunks(queries, views, items):
        spread, cells = ppi_of_pairs(positions[chunk], ranks[chunk], buckets, min_observations)
        total[chunk] = spread.sum(axis=1)
        cells_mean[chunk] = cells.sum(axis=1, dtype=np.int64) / pairs
        single[chunk] = (cells < 2).sum(axis=1)
    counted = pairs - single if single_cell == "drop" else np.full(queries, pairs)
    result = PerQuery.of(total / np.maximum(counted, 1), counted == 0, NO_PAIR_WITH_2_CELLS)
    return PairInstability(result.values, result.reasons, cells_mean, single)


def ppi_of_pairs(
    positions: Integers, ranks: Integers, buckets: int = 3, min_observations: int = 1
) -> tuple[Floats, Integers]:
    """The instability PPI(i, j) of each item pair and the bucket pairs it rests on.

    Args:
        positions, ranks, buckets, min_observations: as in :func:`ppi`. Memory grows with N; :func:`ppi`
            calls this on a few queries at a time.

    Returns:
        float64 (N, L), 0 for pairs with fewer than two counted bucket pairs, and int16 (N, L), the number
        of counted bucket pairs.
    """
    if buckets < 1 or min_observations < 1:
        raise ValueError("buckets and min_observations must be at least 1")
    queries, _, items = require_shape(ranks, positions)
    shape = (items * (items - 1) // 2, queries)
    highest, lowest = np.zeros(shape), np.ones(shape)
    cells = np.zeros(shape, np.int16)
    for seen, above, below in cell_counts(positions, ranks, buckets):
        counted = seen >= min_observations
        with np.errstate(invalid="ignore"):
            share = (seen + above - below) / (2 * seen)
        if min_observations > 1:
            share[~counted] = np.nan
        # These two pass over an undefined share.
        np.fmax(highest, share, out=highest)
        np.fmin(lowest, share, out=lowest)
        cells += counted
    spread = np.where(cells >= 2, highest - lowest, 0.0)
    # Rows of their own, so that a query's sum rounds the same in every batch.
    return np.ascontiguousarray(spread.T), np.ascontiguousarray(cells.T)


METRICS = (
    QueryMetric(
        family="ppi",
        place=10,
        label="PPI",
        description="how much the preference between two items changes with the regions they are shown in",
        direction="lower",
        source=f"{POSITION_BIAS}, section 3.2",
        null="ppi_null",
        reasons=PAIRWISE,
        parameters=(
            *REGIONS,
            Parameter("single_cell", "zero", "item pairs seen in one pair of regions count 0 or are dropped"),
        ),
        standing="always",
        function=lambda block, _: ppi(block.positions, block.compared),
    ),
)
