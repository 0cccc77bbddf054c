"""An interval estimate over queries, with the p-values of its bounds, and what more queries would tell."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from pytest_invari.statistics.distribution import Distribution
from pytest_invari.statistics.guard import Guarded

NO_DEFINED_QUERY = "no_defined_query"
FEWER_THAN_2_QUERIES = "fewer_than_2_queries"
UNDEFINED_REPLICATES = "undefined_replicates"


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate over queries with its confidence interval.

    ``n`` queries had a value and ``undefined`` had none. ``low`` and ``high`` are NaN exactly when there is a
    ``reason`` code; no comparison with NaN is true, so an undefined interval settles nothing. The estimate
    of a single query stands although its interval is undefined. ``method`` is "bca" or "percentile", with
    "+guard" where a guard is in force. ``standard_error`` is the standard deviation of the replicates times
    sqrt(n / (n−1)), which resampling n queries leaves out. ``level`` is two-sided. Of ``replicates``,
    ``undefined_replicates`` were dropped, because nothing in them had a value. ``distribution`` gives other
    bounds and p-values.
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
    undefined_replicates: int = 0
    distribution: Distribution | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (self.reason is None) == (math.isnan(self.low) or math.isnan(self.high)):
            raise ValueError("a reason code belongs to an interval without bounds and to no other")

    @property
    def defined(self) -> bool:
        """Whether there are bounds."""
        return self.reason is None

    def probability_at_most(self, value: float) -> float:
        """The one-sided p-value of the claim that the true value is above *value*.

        It is (1 − level) / 2 where *value* is ``low`` and smaller below it. Where replicates tie at *value*,
        all of them count, so that it is below (1 − level) / 2 exactly when ``low`` is above *value*. It is
        never nearer to 0 than 1 / (B + 1). NaN for an interval without a distribution.
        """
        return math.nan if self.distribution is None else self.distribution.at_most(value)

    def probability_at_least(self, value: float) -> float:
        """The one-sided p-value of the claim that the true value is below *value*; see above, mirrored."""
        return math.nan if self.distribution is None else self.distribution.at_least(value)


# Quantiles of the normal distribution for a two-sided 95 % interval and for 80 % power.
_Z_LEVEL, _Z_POWER = 1.96, 0.84
# More queries than anyone will have are no advice.
_MOST = 1e9


def minimum_detectable_effect(standard_error: float) -> float:
    """The distance from a bound at which a 95 % interval clears it in 80 of 100 runs: (1.96 + 0.84)·se."""
    return (_Z_LEVEL + _Z_POWER) * standard_error


def queries_needed(interval: Interval, bound: float) -> int | None:
    """How many queries would decide against *bound* with 80 % power, if the estimate is the truth.

    n' = n·(minimum detectable effect / |estimate − bound|)², and where the guard against rare events holds
    the interval open, at least as many as make it give way. None where the estimate lies on the bound, so
    that no number would do, or where there is no interval.
    """
    distance = abs(interval.estimate - bound)
    if not distance > 0 or not math.isfinite(interval.standard_error):
        return None
    needed = interval.n * (minimum_detectable_effect(interval.standard_error) / distance) ** 2
    if isinstance(interval.distribution, Guarded):
        rare = interval.distribution.above if bound > interval.estimate else interval.distribution.below
        needed = max(needed, 0.0 if rare is None else rare.queries_to_reach(bound))
    return max(interval.n + 1, math.ceil(needed - 1e-6)) if needed < _MOST else None
