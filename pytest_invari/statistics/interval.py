"""An interval estimate, and the rules that turn bootstrap replicates into its two bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["FEWER_THAN_2_QUERIES", "NO_DEFINED_QUERY", "Interval", "percentile_bounds"]

NO_DEFINED_QUERY = "no_defined_query"
FEWER_THAN_2_QUERIES = "fewer_than_2_queries"


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate over queries with its confidence interval.

    ``n`` queries had a value and ``undefined`` had none. ``low`` and ``high`` are NaN exactly when there is a
    ``reason`` code; no comparison with NaN is true, so an undefined interval settles nothing. The estimate
    of a single query stands although its interval is undefined. ``standard_error`` is the standard deviation
    of the replicates. ``level`` is two-sided.
    """

    estimate: float
    low: float
    high: float
    n: int
    undefined: int = 0
    method: str = "percentile"
    reason: str | None = None
    standard_error: float = math.nan
    level: float = 0.95
    replicates: int = 0

    def __post_init__(self) -> None:
        if (self.reason is None) == (math.isnan(self.low) or math.isnan(self.high)):
            raise ValueError("a reason code belongs to an interval without bounds and to no other")

    @classmethod
    def without_bounds(cls, estimate: float, n: int, undefined: int, method: str, level: float) -> Interval:
        """The interval of too few queries, n = 0 or 1."""
        reason = NO_DEFINED_QUERY if n == 0 else FEWER_THAN_2_QUERIES
        return cls(estimate, math.nan, math.nan, n, undefined, method, reason, level=level)

    @property
    def defined(self) -> bool:
        """Whether there are bounds."""
        return self.reason is None


def percentile_bounds(replicates: NDArray[np.float64], level: float) -> tuple[float, float]:
    """The quantiles (1 ± level)/2 of bootstrap *replicates* (B,), by linear interpolation.

    Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, not {level}")
    if np.isnan(replicates).any():
        raise ValueError("a statistic was undefined on a resample; drop the queries that make it so")
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
