"""How much a run can tell: the least effect that it would find, and the queries that a verdict needs."""

from __future__ import annotations

import math

from pytest_invari.statistics.guard import Guarded
from pytest_invari.statistics.interval import Interval

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
