"""Statistics over queries: an estimate with its interval, from values that the metrics gave each query."""

from pytest_invari.statistics.bootstrap import (
    PooledCounts,
    bootstrap_difference,
    bootstrap_mean,
    bootstrap_pooled,
    bootstrap_pooled_difference,
)
from pytest_invari.statistics.interval import Interval

__all__ = [
    "Interval",
    "PooledCounts",
    "bootstrap_difference",
    "bootstrap_mean",
    "bootstrap_pooled",
    "bootstrap_pooled_difference",
]
