"""Effectiveness: hit rate and nDCG against binary relevance, averaged over the views of a query."""

from __future__ import annotations

from collections.abc import Iterator

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
    values = np.empty(ranks.shape[:2])
    for chunk, by_rank in _relevant_by_rank(ranks, relevant, k):
        values[chunk] = by_rank.any(axis=2)
    return _mean_over_views(values, relevant)


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
    values = np.zeros(ranks.shape[:2])
    for chunk, by_rank in _relevant_by_rank(ranks, relevant, k):
        # Added up in the order of the ideal list, so that a perfect ranking is 1 and none exceeds it.
        for rank in range(by_rank.shape[2]):
            values[chunk] += discount[rank] * by_rank[:, :, rank]
    return _mean_over_views(values / np.where(ideal > 0, ideal, 1.0)[:, None], relevant)


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


def _relevant_by_rank(ranks: Integers, relevant: Bools, k: int) -> Iterator[tuple[slice, Bools]]:
    """Yield some queries and whether the item at each rank of their top k is relevant, (n, M, min(k, K))."""
    queries, views, items = ranks.shape
    for chunk in query_chunks(queries, views * items):
        require_strict_ranks(ranks[chunk])
        by_rank = np.empty(ranks[chunk].shape, np.bool_)
        along = np.broadcast_to(relevant[chunk, None, :], by_rank.shape)
        np.put_along_axis(by_rank, ranks[chunk].astype(np.intp), along, 2)
        yield chunk, by_rank[:, :, :k]


def _mean_over_views(values: Floats, relevant: Bools) -> PerQuery:
    if values.shape[1] == 0:
        return PerQuery.all_undefined(len(values), NO_VIEWS)
    without = np.sum(relevant, axis=1) == 0
    return PerQuery.of(values.mean(axis=1), without, NO_RELEVANT_CANDIDATE)
