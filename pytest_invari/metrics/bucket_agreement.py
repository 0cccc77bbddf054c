"""BAG, the bucket agreement gap: do views agree more when they show two items in the same regions?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pytest_invari.metrics.agreement_gap import AgreementGap, agreement_gap
from pytest_invari.metrics.arrays import Floats, Integers, query_chunks, require_shape, too_small
from pytest_invari.metrics.cells import cell_counts, position_buckets
from pytest_invari.metrics.metric import BUCKETS, TIES, QueryMetric
from pytest_invari.metrics.packed import item_pairs
from pytest_invari.metrics.reasons import PAIRWISE

# The products of all pairs of inputs and of outputs grow with M⁴: for more views, counting anew is faster.
_MOST_VIEWS = 16
_CHUNK_ENTRIES = 1 << 20
# Up to here float32 counts exactly.
_MOST_PAIRS = 1 << 24

NO_VIEWS_IN_ONE_CELL = "no_views_in_one_cell"
NO_VIEWS_IN_DIFFERENT_CELLS = "no_views_in_different_cells"


def bucket_agreement_gap(positions: Integers, ranks: Integers, buckets: int = 3) -> AgreementGap:
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
    return agreement_gap(
        require_shape(ranks, positions),
        lambda chunk: cell_counts(positions[chunk], ranks[chunk], buckets),
        never_same=NO_VIEWS_IN_ONE_CELL,
        always_same=NO_VIEWS_IN_DIFFERENT_CELLS,
    )


def bucket_agreement_gaps(
    positions: Integers, ranks: Integers, orders: NDArray[np.intp], buckets: int = 3
) -> Floats:
    """:func:`bucket_agreement_gap` where the views' inputs are paired with their outputs anew, S times.

    The gap is a sum over pairs of views, each of which adds the product of what its two inputs and its two
    outputs are alike in. For few views these products are made once, and each pairing looks them up.

    Args:
        positions, ranks, buckets: as there.
        orders: (S, N, M), which of a query's inputs stands beside each of its outputs.

    Returns:
        float64 (S, N), NaN where it is undefined.
    """
    queries, views, items = require_shape(ranks, positions)
    pairs = items * (items - 1) // 2
    if too_small(views, items) or views > _MOST_VIEWS or pairs >= _MOST_PAIRS:
        each = np.arange(queries)[:, None]
        gaps = [bucket_agreement_gap(positions[each, order], ranks, buckets).values for order in orders]
        return np.array(gaps, np.float64).reshape(len(orders), queries)
    one, other = np.triu_indices(views, 1)
    first, second = item_pairs(items)
    number = np.zeros((views, views), np.intp)
    number[one, other] = number[other, one] = np.arange(len(one))
    bucket_of = position_buckets(items, buckets)
    found = np.empty((len(orders), queries))
    for chunk in query_chunks(queries, len(one) * pairs, _CHUNK_ENTRIES):
        shown = bucket_of[positions[chunk]]
        cells = shown[..., first] * buckets + shown[..., second]  # (n, M, L)
        same, signs = _alike(cells, ranks[chunk], one, other)
        products = same.astype(np.float32) @ signs.astype(np.float32).transpose(0, 2, 1)  # (n, P, P)
        order = orders[:, chunk]
        inputs = number[order[..., one], order[..., other]]  # (S, n, P)
        looked_up = products[np.arange(len(products))[:, None], inputs, np.arange(len(one))]
        here = looked_up.sum(axis=-1, dtype=np.float64)  # whole numbers all the same
        alike = same.sum(axis=(1, 2), dtype=np.int64)
        every_sign = signs.sum(axis=(1, 2), dtype=np.int64)
        apart = len(one) * pairs - alike
        with np.errstate(invalid="ignore", divide="ignore"):
            gap = (here / alike - (every_sign - here) / apart) / 2
        found[:, chunk] = np.where((alike > 0) & (apart > 0), gap, np.nan)
    return found


def _alike(
    cells: Integers, ranks: Integers, one: NDArray[np.intp], other: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], NDArray[np.int8]]:
    """How alike two views are, for each of P pairs of views and L item pairs, (n, P, L) each.

    Whether their inputs show the item pair in one cell; and the product of the signs by which their outputs
    rank it: 1 where alike, -1 where turned round, 0 where one ties it.
    """
    first, second = item_pairs(ranks.shape[-1])
    signs = np.sign(ranks[..., second] - ranks[..., first]).astype(np.int8)
    return cells[:, one] == cells[:, other], signs[:, one] * signs[:, other]


METRICS = (
    QueryMetric(
        family="bucket_agreement_gap",
        place=40,
        label="bucket agreement",
        description=(
            "how much more often two views agree on two items when both show them in the same regions"
        ),
        direction="lower",
        low=-1.0,
        source="0 on average without position effects, for every number of views",
        null=0.0,
        reasons={
            **PAIRWISE,
            NO_VIEWS_IN_ONE_CELL: (
                "no two views show two items in the same two buckets, as in lists of 2 or 3: use longer "
                "lists, or more views"
            ),
            NO_VIEWS_IN_DIFFERENT_CELLS: "all views show the items in the same pairs of buckets",
        },
        parameters=(BUCKETS, TIES),
        standing="always",
        function=lambda block, _: bucket_agreement_gap(block.positions, block.compared),
    ),
)
