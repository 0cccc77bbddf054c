"""Statistics over queries: an estimate with its interval, from values that the metrics gave each query."""

from pytest_invari.statistics.bootstrap import (
    PooledCounts,
    bootstrap_difference,
    bootstrap_mean,
    bootstrap_pooled,
    bootstrap_pooled_difference,
    bootstrap_sums,
)
from pytest_invari.statistics.interval import Interval, minimum_detectable_effect, queries_needed
from pytest_invari.statistics.multiplicity import holm
from pytest_invari.statistics.resampling import Resamples, paper_resamples, seeded_resamples

__all__ = [
    "Interval",
    "PooledCounts",
    "Resamples",
    "bootstrap_difference",
    "bootstrap_mean",
    "bootstrap_pooled",
    "bootstrap_pooled_difference",
    "bootstrap_sums",
    "holm",
    "minimum_detectable_effect",
    "paper_resamples",
    "queries_needed",
    "seeded_resamples",
]
