"""Metrics that only all queries together have: its counts are pooled over them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_invari import statistics

if TYPE_CHECKING:
    from pytest_invari.metrics.block import Block
    from pytest_invari.metrics.metric import PooledMetric
    from pytest_invari.statistics import PooledCounts


@dataclass(frozen=True, eq=False)
class Pooled:
    """A metric that only all queries together have: a statistic of pooled counts, and its value.

    ``distance_from`` is the number that the statistic tells the distance from, where it is a distance.
    """

    counts: PooledCounts
    statistic: statistics.bootstrap.Statistic
    distance_from: float | None = None

    @property
    def value(self) -> float:
        """The statistic over all queries; NaN when there are none."""
        total = np.asarray(self.counts.denominators).sum()
        if not total:
            return float("nan")
        return float(self.statistic(np.asarray(self.counts.numerators).sum(axis=0) / total))


def pool(metric: PooledMetric, blocks: Iterable[Block], queries: int, items: int) -> Pooled:
    """A metric of the *blocks* of *queries*, whose lists have *items*."""
    k = metric.k or 0
    numerators = np.zeros((queries, items), np.int64)
    denominators = np.zeros(queries, np.int64)
    for block in blocks:
        numerators[block.queries], denominators[block.queries] = metric.counts(block, k)
    return Pooled(
        statistics.PooledCounts(numerators, denominators),
        lambda shares: metric.statistic(shares, k),
        metric.distance_from(k, items),
    )
