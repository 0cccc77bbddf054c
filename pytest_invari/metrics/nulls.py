"""What PPI would be if positions did not matter: the noise that a maximum minus a minimum collects."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from pytest_invari.metrics.arrays import Floats, Integers, PerQuery, require_shape, too_small
from pytest_invari.metrics.cells import position_buckets
from pytest_invari.metrics.metric import REGIONS, QueryMetric
from pytest_invari.metrics.ppi import ppi
from pytest_invari.metrics.preference import preference_counts
from pytest_invari.metrics.reasons import PAIRWISE

_DRAWS = 1 << 16
# Counts (views + 1, cells, draws) held at once.
_CHUNK_ENTRIES = 1 << 20


def ppi_null(ranks: Integers, buckets: int = 3, min_observations: int = 1) -> PerQuery:
    """The PPI to expect from the same rankings if input positions were random and did not matter, in [0, 1].

    Then the views that rank i above j have nothing to do with the regions where the two were shown, and a
    pair's expected PPI depends only on how many of the M views these are, and how many are ties. That
    expectation is taken over positions drawn at random and independently for each view, not over those
    that were in fact shown: exactly for up to 5 views and 3 buckets, and otherwise by 65,536 draws from a
    fixed seed, the same on every machine, with a standard error of about 0.001.

    A tie stays a tie, half a win for each item, wherever its view falls.

    Args:
        ranks: (N, M, K) output ranks, equal where tied.
        buckets, min_observations: as in :func:`~pytest_invari.metrics.ppi.ppi`, with pairs that are seen in
            one cell counting 0.

    Undefined for M or K below 2.
    """
    if buckets < 1 or min_observations < 1:
        raise ValueError("buckets and min_observations must be at least 1")
    queries, views, items = require_shape(ranks)
    reason = too_small(views, items)
    if reason:
        return PerQuery.all_undefined(queries, reason)
    table = _null_table(views, items, buckets, min_observations)
    values = np.empty(queries)
    for chunk, above, below in preference_counts(ranks):
        values[chunk] = table.expected(above, below).mean(axis=1)
    return PerQuery.of(values)


def ppi_excess(positions: Integers, ranks: Integers, buckets: int = 3, min_observations: int = 1) -> PerQuery:
    """PPI minus :func:`ppi_null`: what noise does not explain, in [−1, 1]; about 0 without position bias.

    Arguments and undefined queries as in :func:`~pytest_invari.metrics.ppi.ppi`.
    """
    observed = ppi(positions, ranks, buckets, min_observations)
    return PerQuery(observed.values - ppi_null(ranks, buckets, min_observations).values, observed.reasons)


@final
class _NullTable:
    """Expected PPI of an item pair by its wins and ties, for one M, K, number of buckets and of observations.

    Entries are computed when first asked for, all from the same draws.
    """

    def __init__(self, views: int, items: int, buckets: int, min_observations: int) -> None:
        sizes = np.bincount(position_buckets(items, buckets))
        # Ordered pairs of distinct positions in each pair of buckets, out of K(K−1).
        cells = np.outer(sizes, sizes) - np.diag(sizes)
        self._ways = cells[cells > 0].astype(np.int64)
        self._views = views
        self._min_observations = min_observations
        self._known = np.full((views // 2 + 1, views + 1), np.nan)

    def expected(self, above: Integers, below: Integers) -> Floats:
        """E[PPI(i, j)] for the pairs (N, L) that *above* views rank one way and *below* the other."""
        fewer, tied = np.minimum(above, below), self._views - above - below
        values = self._known[fewer, tied]
        unknown = np.isnan(values)
        if unknown.any():
            wanted = np.unique(np.stack([fewer[unknown], tied[unknown]]), axis=1)
            self._known[wanted[0], wanted[1]] = self._compute(wanted.T.tolist())
            values = self._known[fewer, tied]
        # Rows of their own, so that a query's mean rounds the same in every batch.
        return np.ascontiguousarray(values)

    def _compute(self, wanted: list[list[int]]) -> Floats:
        totals = np.zeros(len(wanted))
        for cells, weights in self._draws():
            # Views are exchangeable, so let the wins be the first ones, then the ties, then the losses.
            in_cell = cells[:, None, :] == np.arange(len(self._ways))[:, None]
            first_views = np.zeros((self._views + 1, *in_cell.shape[1:]), np.int32)
            np.cumsum(in_cell, axis=0, out=first_views[1:])
            seen = first_views[-1]
            counted = seen >= self._min_observations
            weights = np.where(counted.sum(axis=0) >= 2, weights, 0.0)
            per_half_win = counted / (2 * np.maximum(seen, 1))
            not_counted = np.where(counted, 0.0, 2.0)
            for entry, (won, tied) in enumerate(wanted):
                share = (first_views[won] + first_views[won + tied]) * per_half_win
                spread = share.max(axis=0) - (share + not_counted).min(axis=0)
                totals[entry] += (weights * spread).sum()
        return totals

    def _draws(self) -> Iterator[tuple[Integers, Floats]]:
        """The cell of each view (M, draws) and the probability of each draw, some draws at a time."""
        cells, views = len(self._ways), self._views
        few = cells**views <= _DRAWS
        draws = cells**views if few else _DRAWS
        step = max(1, _CHUNK_ENTRIES // (cells * (views + 1)))
        # Only the raw stream of PCG64, which NumPy promises to keep.
        stream = np.random.PCG64(0)
        for start in range(0, draws, step):
            part = np.arange(start, min(start + step, draws))
            if few:
                drawn = part // cells ** np.arange(views)[:, None] % cells
                yield drawn, (self._ways / self._ways.sum())[drawn].prod(axis=0)
            else:
                yield self._random_cells(stream, len(part)), np.full(len(part), 1 / draws)

    def _random_cells(self, stream: np.random.PCG64, draws: int) -> Integers:
        raw: NDArray[np.uint64] = stream.random_raw(draws * self._views).reshape(draws, self._views).T
        # The high half of each word, scaled to 0 … K(K−1)−1: one of the ordered pairs of positions.
        places = (raw >> np.uint64(32)) * np.uint64(self._ways.sum()) >> np.uint64(32)
        return np.searchsorted(np.cumsum(self._ways), places.astype(np.int64), side="right")


@lru_cache(maxsize=32)
def _null_table(views: int, items: int, buckets: int, min_observations: int) -> _NullTable:
    return _NullTable(views, items, buckets, min_observations)


METRICS = (
    QueryMetric(
        family="ppi_null",
        place=20,
        label="PPI null",
        description="the PPI to expect of these rankings if the places of the items did not matter",
        direction="lower",
        source="the null of PPI: each input order with a random output of its query",
        reasons=PAIRWISE,
        parameters=REGIONS,
        standing="always",
        function=lambda block, _: ppi_null(block.compared),
    ),
    QueryMetric(
        family="ppi_excess",
        place=30,
        label="PPI excess",
        description="PPI less its null",
        direction="lower",
        low=-1.0,
        source="PPI and its null",
        null=0.0,
        reasons=PAIRWISE,
        parameters=REGIONS,
        function=lambda block, _: ppi_excess(block.positions, block.compared),
    ),
)
