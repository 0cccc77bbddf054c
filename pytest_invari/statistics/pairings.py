"""A null that keeps the data: pair each query's input orders with its output orders anew, at random."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pytest_invari.metrics.arrays import Floats, Integers, PerQuery
from pytest_invari.statistics.resampling import seed_from

PairedStatistic: TypeAlias = Callable[[Integers, Integers], PerQuery]
"""A metric of positions and ranks (N, M, K), such as ``ppi`` or ``bucket_agreement_gap``."""

ManyPairings: TypeAlias = Callable[[Integers, Integers, NDArray[np.intp]], Floats]
"""The values (S, N) of such a metric where the inputs are paired anew by orders (S, N, M)."""

# For each block of queries, (n, M): which input order stands beside each output order.
_Pairing: TypeAlias = list[NDArray[np.intp]]


def mean_over_pairings(
    positions: Integers, ranks: Integers, statistic: PairedStatistic, seed_id: str, pairings: int = 20
) -> PerQuery:
    """What each query's *statistic* is on average when its outputs have nothing to do with its inputs.

    Positions and ranks stay those that were observed; only which of a query's M inputs each output is said
    to answer is permuted. *pairings* random permutations are averaged for each query, or all M! where they
    are no more.

    Args:
        positions, ranks: (N, M, K), as *statistic* takes them.
        statistic: a query that has no value under one of the pairings has none here.
        seed_id: names what is measured; it seeds the permutations.
        pairings: how many.
    """
    _require_some(pairings)
    queries, views = ranks.shape[:2]
    drawn: Iterable[_Pairing]
    if math.factorial(views) <= pairings:
        drawn = ([np.tile(order, (queries, 1))] for order in itertools.permutations(range(views)))
    else:
        drawn = _random_pairings([(queries, views)], pairings, seed_id)
    total, reasons, count = np.zeros(queries), (None,) * queries, 0
    for (order,) in drawn:
        result = statistic(_paired(positions, order), ranks)
        total += result.values
        reasons = tuple(old or new for old, new in zip(reasons, result.reasons, strict=True))
        count += 1
    return PerQuery(total / count, reasons)


def pairing_p_value(
    blocks: Sequence[tuple[Integers, Integers]],
    statistic: PairedStatistic,
    seed_id: str,
    pairings: int = 199,
    at_once: ManyPairings | None = None,
) -> float:
    """How often chance alone brings the mean over queries to the observed one or above: a p-value.

    (1 + the random pairings that reach the observed mean) / (S + 1), so never below 1 / (S + 1). The pairing
    as observed is the 1. Where the data set has no more than S + 1 pairings in all, each is taken once.

    Args:
        blocks: the data set's queries as (positions, ranks), each (n, M, K), grouped by M.
        statistic: large where inputs matter. The mean is over the queries that have a value.
        seed_id: names what is measured; it seeds the permutations.
        pairings: S, how many random pairings of the whole data set.
        at_once: the *statistic* of many pairings, where that is faster than one after another.

    Returns:
        NaN where no query has a value.
    """
    _require_some(pairings)
    shapes = [(len(ranks), ranks.shape[1]) for _, ranks in blocks]

    def means(drawn: Sequence[_Pairing]) -> list[float]:
        values = np.concatenate(
            [
                (at_once or _one_by_one(statistic))(positions, ranks, np.array([each[at] for each in drawn]))
                for at, (positions, ranks) in enumerate(blocks)
            ]
            or [np.empty((len(drawn), 0))],
            axis=1,
        )
        return [float(np.nanmean(row)) if (~np.isnan(row)).any() else math.nan for row in values]

    as_observed = [np.tile(np.arange(views), (queries, 1)) for queries, views in shapes]
    [observed] = means([as_observed])
    if math.isnan(observed):
        return math.nan
    if math.prod(math.factorial(views) ** queries for queries, views in shapes) <= pairings + 1:
        reached = [_reaches(mean, observed) for mean in means(list(_every_pairing(shapes)))]
    else:
        drawn = list(_random_pairings(shapes, pairings, seed_id))
        reached = [True, *(_reaches(mean, observed) for mean in means(drawn))]
    return sum(reached) / len(reached)


def _one_by_one(statistic: PairedStatistic) -> ManyPairings:
    def values(positions: Integers, ranks: Integers, orders: NDArray[np.intp]) -> Floats:
        return np.array([statistic(_paired(positions, order), ranks).values for order in orders])

    return values


def _reaches(value: float, observed: float) -> bool:
    """Whether *value* is at least *observed* but for rounding; one that is undefined counts as such."""
    return not value < observed - 1e-12


def _paired(positions: Integers, order: NDArray[np.intp]) -> Integers:
    return positions[np.arange(len(order))[:, None], order]


def _every_pairing(shapes: Sequence[tuple[int, int]]) -> Iterator[_Pairing]:
    ends = np.cumsum([queries for queries, _ in shapes])[:-1]
    of_each_query = [
        itertools.permutations(range(views)) for queries, views in shapes for _ in range(queries)
    ]
    for orders in itertools.product(*of_each_query):
        yield [np.array(orders[start:end]) for start, end in itertools.pairwise([0, *ends, len(orders)])]


def _random_pairings(shapes: Sequence[tuple[int, int]], count: int, seed_id: str) -> Iterator[_Pairing]:
    # Sorting raw words of PCG64, a stream that NumPy promises to keep, is a random permutation.
    stream = np.random.PCG64(seed_from(seed_id))
    for _ in range(count):
        yield [
            stream.random_raw(queries * views).reshape(queries, views).argsort(axis=1, kind="stable")
            for queries, views in shapes
        ]


def _require_some(pairings: int) -> None:
    if pairings < 1:
        raise ValueError(f"pairings must be at least 1, not {pairings}")
