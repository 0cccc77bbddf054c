"""Label agreement: do two views order two items alike because of the labels that the items bear?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_invari.metrics.arrays import (
    Floats,
    Integers,
    PerQuery,
    require_shape,
    too_small,
)
from pytest_invari.metrics.packed import (
    count_views,
    has_ties,
    item_pairs,
    pair_chunks,
    views_last,
    views_where,
)

__all__ = ["LABELS_ALWAYS_DIFFER", "LABELS_NEVER_DIFFER", "LabelAgreement", "label_agreement"]

LABELS_NEVER_DIFFER = "labels_never_differ"
LABELS_ALWAYS_DIFFER = "labels_always_differ"


@dataclass(frozen=True, eq=False)
class LabelAgreement(PerQuery):
    """The label agreement gap of each query, and the two shares whose difference it is.

    ``same`` and ``other`` float64 (N,): the share of (item pair, pair of views) ordered alike, among
    those whose labels stand in the same order and among the rest; NaN where there are none.
    """

    same: Floats
    other: Floats


def label_agreement(labels: Integers, ranks: Integers) -> LabelAgreement:
    """How much more two views agree on two items when the items' labels stand in the same order, in [−1, 1].

    Over all item pairs and pairs of views of one query: P(same preference | same label order) −
    P(same preference | other label order), each a ratio of sums. It is 1 when the label decides all; when
    it decides some item pairs and the items decide the others, its mean is the share of the former. Where
    labels are drawn anew for each view and do not matter, its mean is 0 for every M, however noisy the
    reranker; an invariant one has exactly 0. Whether the first or the last labels are preferred is alike.

    A tie agrees with anything by half. The statistic is built like the bucket agreement gap, with the
    labels in the place of the input regions.

    Args:
        labels: (N, M, K) the 0-based label that each item bore, a permutation in every view.
        ranks: (N, M, K) output ranks, equal where tied.

    Undefined for M or K below 2; where no two items changed the order of their labels, as when labels are
    bound to the items for good; and where all of them did.
    """
    queries, views, items = require_shape(ranks, labels)
    reason = too_small(views, items)
    nothing = np.full(queries, np.nan)
    if reason:
        undefined = PerQuery.all_undefined(queries, reason)
        return LabelAgreement(undefined.values, undefined.reasons, nothing, nothing)
    if not np.array_equal(np.sort(labels, axis=2), np.broadcast_to(np.arange(items), labels.shape)):
        raise ValueError("labels must be a permutation of 0 … K-1 in every view")
    same, other = nothing, nothing.copy()
    for chunk in pair_chunks(queries, views, items):
        same[chunk], other[chunk] = _shares(labels[chunk], ranks[chunk])
    reasons = tuple(
        LABELS_NEVER_DIFFER if never else LABELS_ALWAYS_DIFFER if always else None
        for never, always in zip(np.isnan(other), np.isnan(same), strict=True)
    )
    return LabelAgreement(same - other, reasons, same, other)


def _shares(labels: Integers, ranks: Integers) -> tuple[Floats, Floats]:
    """The share of agreeing (item pair, pair of views) under the same and under another label order, (n,)."""
    views = ranks.shape[1]
    first, second = item_pairs(ranks.shape[2])
    rows, borne = views_last(ranks), views_last(labels)
    earlier = views_where(borne[first] < borne[second])
    above = views_where(rows[first] < rows[second])
    # A view says +1 where i is above j, −1 where it is below and 0 where they tie; two views agree by
    # (1 + product) / 2, and sums of products over pairs of views come from sums over views.
    seen = count_views(earlier).astype(np.int64)
    won, won_all = count_views(above & earlier).astype(np.int64), count_views(above)
    if has_ties(ranks):
        below = views_where(rows[first] > rows[second])
        lost, lost_all = count_views(below & earlier).astype(np.int64), count_views(below)
    else:
        lost, lost_all = seen - won, views - won_all
    excess, excess_later = won - lost, (won_all - won) - (lost_all - lost)
    untied = (won_all + lost_all).sum(axis=0, dtype=np.int64)
    later = views - seen
    same = ((seen * (seen - 1) + later * (later - 1)) // 2).sum(axis=0)
    other = (seen * later).sum(axis=0)
    products_same = ((excess**2 + excess_later**2).sum(axis=0) - untied) // 2
    products_other = (excess * excess_later).sum(axis=0)
    return _agreement(products_same, same), _agreement(products_other, other)


def _agreement(products: Integers, pairs: Integers) -> Floats:
    share: Floats = np.where(pairs > 0, (1 + products / np.maximum(pairs, 1)) / 2, np.nan)
    return share
