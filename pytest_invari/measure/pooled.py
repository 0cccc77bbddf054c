"""Metrics that only all queries together have: exposure is counted over all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pytest_invari import statistics
from pytest_invari.metrics import exposure

if TYPE_CHECKING:
    from pytest_invari.measure.blocks import Block
    from pytest_invari.metrics import Metric
    from pytest_invari.statistics import PooledCounts


_DEVIATIONS = {
    "exposure_deviation": exposure.maximum_exposure_deviation,
    "exposure_deviation_mean": exposure.mean_exposure_deviation,
}


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


def pooled_deviation(metric: Metric, blocks: Iterable[Block], queries: int, items: int) -> Pooled:
    """An exposure deviation of lists of *items* over the *blocks* of *queries*."""
    k = metric.k or 0
    top = np.zeros((queries, items), np.int64)
    views = np.zeros(queries, np.int64)
    for block in blocks:
        counts = exposure.exposure_counts(block.positions, block.ranks, k)
        top[block.queries], views[block.queries] = counts.top, counts.views
    statistic = partial(_DEVIATIONS[metric.family], k=k)
    return Pooled(statistics.PooledCounts(top, views), statistic, distance_from=k / items)
