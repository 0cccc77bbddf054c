"""Label agreement: do two views order two items alike because of the labels that the items bear?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pytest_invari.metrics.agreement_gap import AgreementGap, agreement_gap
from pytest_invari.metrics.arrays import Integers, PerQuery, require_shape
from pytest_invari.metrics.block import Block
from pytest_invari.metrics.cells import CellCounts
from pytest_invari.metrics.metric import TIES, QueryMetric
from pytest_invari.metrics.packed import count_views, has_ties, pairs_where, views_last
from pytest_invari.metrics.reasons import PAIRWISE

NO_LABELS = "no_labels"
LABELS_NEVER_DIFFER = "labels_never_differ"
LABELS_ALWAYS_DIFFER = "labels_always_differ"


def label_agreement(labels: Integers, ranks: Integers) -> AgreementGap:
    """How much more two views agree on two items when the items' labels stand in the same order, in [−1, 1].

    Over all item pairs and pairs of views of one query: P(same preference | same label order) −
    P(same preference | other label order). It is 1 when the label decides all; when it decides some item
    pairs and the items decide the others, its mean is the share of the former. Where labels are drawn anew
    for each view and do not matter, its mean is 0 for every M, however noisy the reranker; an invariant one
    has exactly 0. Whether the first or the last labels are preferred is alike.

    It is built like the bucket agreement gap, with the labels in the place of the input regions.

    Args:
        labels: (N, M, K) the 0-based label that each item bore, a permutation in every view.
        ranks: (N, M, K) output ranks, equal where tied.

    Undefined for M or K below 2; where no two items changed the order of their labels, as when labels are
    bound to the items for good; and where all of them did.
    """
    shape = require_shape(ranks, labels)
    if not np.array_equal(np.sort(labels, axis=2), np.broadcast_to(np.arange(shape[2]), shape)):
        raise ValueError("labels must be a permutation of 0 … K-1 in every view")
    return agreement_gap(
        shape,
        lambda chunk: _label_orders(labels[chunk], ranks[chunk]),
        never_same=LABELS_ALWAYS_DIFFER,
        always_same=LABELS_NEVER_DIFFER,
    )


def _label_orders(labels: Integers, ranks: Integers) -> Iterator[CellCounts]:
    """The views of each item pair in two cells: i bears the earlier label, or j does."""
    rows, borne = views_last(ranks), views_last(labels)
    above = pairs_where(np.less, rows)
    below = pairs_where(np.greater, rows) if has_ties(ranks) else None
    for compare in (np.less, np.greater):
        cell = pairs_where(compare, borne)
        seen, won = count_views(cell), count_views(above & cell)
        yield CellCounts(seen, won, seen - won if below is None else count_views(below & cell))


def _of_block(block: Block, _: int) -> PerQuery:
    if (block.labels < 0).any():
        return PerQuery.all_undefined(len(block.queries), NO_LABELS)
    return label_agreement(block.labels, block.compared)


METRICS = (
    QueryMetric(
        family="label_agreement_gap",
        place=210,
        label="label agreement",
        description=(
            "how much more often two views agree on two items when their labels stand in the same order"
        ),
        direction="lower",
        low=-1.0,
        source="as the bucket agreement gap, of labels; needs labels that are redrawn for each view",
        null=0.0,
        reasons={
            **PAIRWISE,
            NO_LABELS: "",
            LABELS_NEVER_DIFFER: "all views give the items the same labels",
            LABELS_ALWAYS_DIFFER: "no two views give two items the same labels",
        },
        parameters=(TIES,),
        standing="redrawn_labels",
        function=_of_block,
    ),
)
