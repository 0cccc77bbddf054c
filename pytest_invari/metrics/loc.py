"""LOC, listwise output consistency: do two views of one query give the same ranking? (P1 section 3.4)."""

from __future__ import annotations

import numpy as np

from pytest_invari.metrics.arrays import Integers, PerQuery, require_shape, too_small
from pytest_invari.metrics.metric import POSITION_BIAS, TIES, QueryMetric, least_mean_correlation
from pytest_invari.metrics.preference import preference_counts
from pytest_invari.metrics.reasons import PAIRWISE


def loc(ranks: Integers) -> PerQuery:
    """The mean Kendall tau over the M(M−1)/2 pairs of views, in [−1/(M−1), 1]; higher is more consistent.

    It needs no pair of views: with S views more for i than for j and T views that tell them apart,
    LOC = Σ(S² − T) / (L·M(M−1)) over the L item pairs. For tied ranks this is tau-a. Without ties it is
    Kendall's coefficient of agreement, an unbiased estimate for every M.

    Args:
        ranks: (N, M, K) output ranks, equal where tied. Undefined for M or K below 2.
    """
    queries, views, items = require_shape(ranks)
    reason = too_small(views, items)
    if reason:
        return PerQuery.all_undefined(queries, reason)
    values = np.empty(queries)
    for chunk, above, below in preference_counts(ranks):
        excess = above.astype(np.int64) - below
        agreeing = (excess * excess - (above + below)).sum(axis=1)
        values[chunk] = agreeing / (excess.shape[1] * views * (views - 1))
    return PerQuery.of(values)


METRICS = (
    QueryMetric(
        family="loc",
        place=90,
        label="LOC",
        description="the mean Kendall tau between the rankings of the same items shown in two orders",
        direction="higher",
        low=-1.0,
        low_of_views=least_mean_correlation,
        source=f"{POSITION_BIAS}, section 3.4",
        null=0.0,
        reasons=PAIRWISE,
        parameters=(TIES,),
        standing="always",
        function=lambda block, _: loc(block.compared),
    ),
)
