"""A statistic with its value in every resample, paired with others by the resamples they share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_invari.metrics.arrays import Floats
from pytest_invari.statistics.bootstrap import interval_of_replicates
from pytest_invari.statistics.distribution import Percentile
from pytest_invari.statistics.interval import Interval


@dataclass(frozen=True, eq=False)
class Replicated:
    """A value over *queries*, and the replicates (B,), NaN where a resample leaves it undefined.

    The value is NaN exactly when there is a reason code.
    """

    value: float
    replicates: Floats
    queries: int
    reason: str | None = None

    @classmethod
    def undefined(cls, replicates: int, queries: int, reason: str) -> Replicated:
        """No value in the sample, and so none in any resample."""
        return cls(math.nan, np.full(replicates, np.nan), queries, reason)

    def minus(self, base: Replicated) -> Replicated:
        """The difference, paired by resample."""
        return Replicated(
            self.value - base.value,
            self.replicates - base.replicates,
            self.queries,
            self.reason or base.reason,
        )

    def interval(self) -> Interval:
        """The percentile interval of 95 %."""
        if self.reason is not None:
            return undefined_interval(self.queries, self.reason)
        return interval_of_replicates(self.value, self.replicates, self.queries, 0, Percentile, "percentile")


def undefined_interval(queries: int, reason: str) -> Interval:
    """The interval of what has no value for any of the *queries*."""
    return Interval(math.nan, math.nan, math.nan, 0, queries, reason=reason)
