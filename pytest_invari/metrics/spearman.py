"""Spearman's ρ between the rankings of one query's views, by Kendall's coefficient of concordance."""

from __future__ import annotations

import numpy as np

from pytest_invari.metrics.arrays import Bools, Integers, PerQuery, query_chunks, require_shape, too_small
from pytest_invari.metrics.metric import TIES, QueryMetric, least_mean_correlation
from pytest_invari.metrics.reasons import PAIRWISE
from pytest_invari.metrics.tie_groups import TieGroups

CONSTANT_RANKING = "constant_ranking"


def spearman(ranks: Integers) -> PerQuery:
    """The mean Spearman correlation over the M(M−1)/2 pairs of views, in [−1/(M−1), 1].

    Tied items have the mean of the places that they take. Without ties, and wherever all views have as many,
    it is (M·W − 1)/(M − 1), W being the coefficient of concordance (Kendall and Babington Smith 1939). It
    needs no pair of views: of vectors z of length 1 about their mean, Σ_s≠t z_s·z_t = |Σ z|² − M.

    Args:
        ranks: (N, M, K) output ranks, the number of items above, equal where tied. Undefined for M or K below
            2, and where a view ties all items, which leaves it no order to correlate with.
    """
    queries, views, items = require_shape(ranks)
    reason = too_small(views, items)
    if reason:
        return PerQuery.all_undefined(queries, reason)
    values, constant = np.empty(queries), np.zeros(queries, np.bool_)
    for chunk in query_chunks(queries, views * items):
        deviations = _doubled_deviations(ranks[chunk])
        squares = (deviations * deviations).sum(axis=2)
        constant[chunk] = (squares == 0).any(axis=1)
        # In integers where all views have one length, so that what is invariant comes out as 1.
        alike = (squares == squares[:, :1]).all(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            exact = (deviations.sum(axis=1) ** 2).sum(axis=1) / squares[:, 0]
            sums = (deviations / np.sqrt(squares)[:, :, None]).sum(axis=1)
        lengths = np.where(alike, exact, (sums * sums).sum(axis=1))
        values[chunk] = (lengths - views) / (views * (views - 1))
    return PerQuery.of(values, constant, CONSTANT_RANKING)


def _doubled_deviations(ranks: Integers) -> Integers:
    """(n, M, K) int64: twice the distance of each item's place, or mean place, from the middle (K − 1)/2."""
    nobody: Bools = np.zeros((len(ranks), ranks.shape[2]), np.bool_)
    tied_with = np.take_along_axis(TieGroups.of(ranks, nobody).size, ranks.astype(np.int64), axis=2)
    deviations: Integers = 2 * ranks.astype(np.int64) + tied_with - ranks.shape[2]
    return deviations


METRICS = (
    QueryMetric(
        family="spearman",
        place=95,
        label="Spearman",
        description="the mean Spearman correlation between the rankings of two orders of the same items",
        direction="higher",
        low=-1.0,
        low_of_views=least_mean_correlation,
        source="Spearman 1904; Kendall and Babington Smith 1939",
        null=0.0,
        reasons={**PAIRWISE, CONSTANT_RANKING: "a view ties all items, and has no order"},
        parameters=(TIES,),
        function=lambda block, _: spearman(block.compared),
    ),
)
