"""Effectiveness: hit rate and nDCG against binary relevance, averaged over the views of a query.

Ranks may be tied. A view then counts as the mean over all orders of its tied items, each as likely, in closed
form (McSherry and Najork 2008); strict ranks have one order and are the special case.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pytest_invari.metrics.arrays import Bools, Floats, Integers, PerQuery, query_chunks, require_shape
from pytest_invari.metrics.metric import POSITION_BIAS, QueryMetric
from pytest_invari.metrics.tie_groups import TieGroups

NO_RELEVANT_CANDIDATE = "no_relevant_candidate"
NO_VIEWS = "no_views"


def hit_rate(ranks: Integers, relevant: Bools, k: int) -> PerQuery:
    """HR@k: the share of a query's views with any relevant item in the top k, in [0, 1].

    Args:
        ranks: (N, M, K) output ranks, equal where tied: then the number of items above.
        relevant: (N, K) true for the relevant candidates. Undefined for queries that have none: their list
            holds nothing to find and says nothing about the reranker.
        k: the length of the top.
    """
    _check(ranks, relevant, k)
    return _mean_over_views(ranks, relevant, lambda groups: groups.any_relevant(k))


def ndcg(ranks: Integers, relevant: Bools, relevant_total: Integers, k: int) -> PerQuery:
    """nDCG@k whose ideal list holds min(k, all held-out positives), in [0, 1].

    Positives that the first stage did not retrieve count in the ideal, so the best possible value of a query
    may be below 1; :func:`ndcg_candidates` is limited to the candidates. Gains are binary and the discount
    is 1/log2(rank + 1) for ranks from 1 (Järvelin and Kekäläinen 2002, in its usual form).

    Args:
        ranks, relevant, k: as in :func:`hit_rate`, undefined for the same queries.
        relevant_total: (N,) the number of all held-out positives, at least that of relevant candidates.
    """
    _check(ranks, relevant, k)
    if relevant_total.shape != relevant.shape[:1] or (relevant_total < relevant.sum(axis=1)).any():
        raise ValueError("relevant_total (N,) must count at least the relevant candidates of each query")
    discount = 1.0 / np.log2(np.arange(2, k + 2))
    ideal = np.append(0.0, np.cumsum(discount))[np.minimum(relevant_total, k)]

    def gained(groups: TieGroups) -> Floats:
        relevance = groups.relevance_of_places(k)
        total = np.zeros(relevance.shape[:2])
        # Added up in the order of the ideal list, so that a perfect ranking gains all and none gains more.
        for place in range(relevance.shape[2]):
            total += discount[place] * relevance[:, :, place]
        return total

    return _mean_over_views(ranks, relevant, gained, ideal)


def ndcg_candidates(ranks: Integers, relevant: Bools, k: int) -> PerQuery:
    """nDCG@k whose ideal list holds min(k, relevant candidates): 1 is always within reach.

    Arguments and undefined queries as in :func:`hit_rate`. Not comparable with :func:`ndcg`.
    """
    return ndcg(ranks, relevant, relevant.sum(axis=1), k)


def _check(ranks: Integers, relevant: Bools, k: int) -> None:
    queries, _, items = require_shape(ranks)
    if relevant.shape != (queries, items) or relevant.dtype != np.bool_:
        raise ValueError(
            f"relevant must be booleans ({queries}, {items}), not {relevant.dtype} {relevant.shape}"
        )
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")


def _mean_over_views(
    ranks: Integers,
    relevant: Bools,
    value: Callable[[TieGroups], Floats],
    ideal: Floats | None = None,
) -> PerQuery:
    """Average over views what *value* gives for their groups of tied items, (n, M).

    With *ideal* (N,) each view's value is divided by that of its query.
    """
    queries, views, items = ranks.shape
    if views == 0:
        return PerQuery.all_undefined(queries, NO_VIEWS)
    without = np.sum(relevant, axis=1) == 0
    if without.all():
        return PerQuery.all_undefined(queries, NO_RELEVANT_CANDIDATE)
    best = np.ones(queries) if ideal is None else np.where(without, 1.0, ideal)
    means = np.empty(queries)
    for chunk in query_chunks(queries, views * items):
        groups = TieGroups.of(ranks[chunk], relevant[chunk])
        means[chunk] = (value(groups) / best[chunk, None]).mean(axis=1)
    return PerQuery.of(means, without, NO_RELEVANT_CANDIDATE)


_UNDEFINED = {NO_RELEVANT_CANDIDATE: "no candidate is marked as relevant", NO_VIEWS: ""}

METRICS = (
    QueryMetric(
        family="hr",
        place=120,
        label="HR",
        description="the share of views with a relevant item in the top k",
        direction="higher",
        source=f"{POSITION_BIAS}, section 4",
        reasons=_UNDEFINED,
        has_cutoff=True,
        standing="always",
        function=lambda block, k: hit_rate(block.compared, block.relevant, k),
    ),
    QueryMetric(
        family="ndcg",
        place=130,
        label="nDCG",
        description="binary nDCG whose ideal holds min(k, all held-out positives), retrieved or not",
        direction="higher",
        source=f"{POSITION_BIAS}, section 4; Järvelin and Kekäläinen 2002",
        reasons=_UNDEFINED,
        has_cutoff=True,
        standing="always",
        function=lambda block, k: ndcg(block.compared, block.relevant, block.relevant_total, k),
    ),
    QueryMetric(
        family="ndcg_candidates",
        place=140,
        label="nDCG candidates",
        description="binary nDCG whose ideal holds min(k, relevant candidates)",
        direction="higher",
        source="Järvelin and Kekäläinen 2002",
        reasons=_UNDEFINED,
        has_cutoff=True,
        function=lambda block, k: ndcg_candidates(block.compared, block.relevant, k),
    ),
)
