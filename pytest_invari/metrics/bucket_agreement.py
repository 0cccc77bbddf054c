"""BAG, the bucket agreement gap: do views agree more when they show two items in the same regions?"""

from __future__ import annotations

from pytest_invari.metrics.agreement_gap import AgreementGap, agreement_gap
from pytest_invari.metrics.arrays import Integers, require_shape
from pytest_invari.metrics.cells import cell_counts

__all__ = ["NO_VIEWS_IN_DIFFERENT_CELLS", "NO_VIEWS_IN_ONE_CELL", "bucket_agreement_gap"]

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
