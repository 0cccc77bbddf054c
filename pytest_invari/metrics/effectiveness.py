"""Effectiveness: hit rate and nDCG against binary relevance, averaged over the views of a query."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pytest_invari.metrics.arrays import (
    Bools,
    Floats,
    Integers,
    PerQuery,
    query_chunks,
    require_shape,
    require_strict_ranks,
)

__all__ = ["NO_RELEVANT_CANDIDATE", "NO_VIEWS", "hit_rate", "ndcg", "ndcg_candidates"]

NO_RELEVANT_CANDIDATE = "no_relevant_candidate"
NO_VIEWS = "no_views"


def hit_rate(ranks: Integers, relevant: Bools, k: int) -> PerQuery:
    """HR@k: the share of a query's views with any relevant item in the top k, in [0, 1].

    Args:
        ranks: (N, M, K) strict output ranks.
        relevant: (N, K) true for the relevant candidates. Undefined for queries that have none: their list
            holds nothing to find and says nothing about the reranker.
        k: the length of the top.
    """
    _check(ranks, relevant, k)
    return _mean_over_views(ranks, relevant, k, _any_hit)


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

    def gained(by_rank: Bools) -> Floats:
        total = np.zeros(by_rank.shape[:2])
        # Added up in the order of the ideal list, so that a perfect ranking gains all and none gains more.
        for rank in range(by_rank.shape[2]):
            total += discount[rank] * by_rank[:, :, rank]
        return total

    return _mean_over_views(ranks, relevant, k, gained, ideal)


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


def _any_hit(by_rank: Bools) -> Floats:
    return np.asarray(by_rank.any(axis=2), np.float64)


def _mean_over_views(
    ranks: Integers,
    relevant: Bools,
    k: int,
    value: Callable[[Bools], Floats],
    ideal: Floats | None = None,
) -> PerQuery:
    """Average over views what *value* gives for (n, M, min(k, K)), the relevance at each rank of a top k.

    With *ideal* (N,) each view's value is divided by that of its query.
    """
    queries, views, items = ranks.shape
    if views == 0:
        return PerQuery.all_undefined(queries, NO_VIEWS)
    without = np.sum(relevant, axis=1) == 0
    best = np.ones(queries) if ideal is None else np.where(without, 1.0, ideal)
    means = np.empty(queries)
    for chunk in query_chunks(queries, views * items):
        require_strict_ranks(ranks[chunk])
        by_rank = np.empty(ranks[chunk].shape, np.bool_)
        along = np.broadcast_to(relevant[chunk, None, :], by_rank.shape)
        np.put_along_axis(by_rank, ranks[chunk].astype(np.intp), along, 2)
        means[chunk] = (value(by_rank[:, :, :k]) / best[chunk, None]).mean(axis=1)
    return PerQuery.of(means, without, NO_RELEVANT_CANDIDATE)
