"""The association that a value shows only because the probe is part of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pytest_invari.independent_views.targets import rounded
from pytest_invari.metrics.arrays import Floats
from pytest_invari.statistics.correlation import CONSTANT_VALUES
from pytest_invari.statistics.resampling import seed_from


@dataclass(frozen=True, slots=True)
class Mechanical:
    """The mean of a statistic over *permutations*, and the range of their middle 95 %; NaN with a reason."""

    mean: float
    low: float
    high: float
    permutations: int
    reason: str | None = None


def mechanical_level(
    own: Floats, rest: Floats, statistic: Callable[[Floats], float], permutations: int
) -> Mechanical:
    """What a probe's statistic with a value is when all of the value but the probe is another query's.

    Each permutation deals the *rest* out to the queries at random, so that only the probe's own part ties the
    value to the probe. Permutations are seeded, the same for equal numbers of queries.

    Args:
        own, rest: (N,), the two parts that add up to the value.
        statistic: of a value (N,) with the probe; NaN where it is undefined for constant values.
        permutations: how many.
    """
    if permutations < 1:
        raise ValueError(f"permutations must be at least 1, not {permutations}")
    # Sorting raw words of PCG64, a stream that NumPy promises to keep, is a random permutation.
    stream = np.random.PCG64(seed_from("mechanical level"))
    orders = (stream.random_raw(len(rest)).argsort(kind="stable") for _ in range(permutations))
    found = np.array([statistic(rounded(own + rest[order])) for order in orders])
    if np.isnan(found).any():
        return Mechanical(math.nan, math.nan, math.nan, permutations, CONSTANT_VALUES)
    low, high = np.quantile(found, [0.025, 0.975])
    return Mechanical(float(found.mean()), float(low), float(high), permutations)


def spearman_with(probe: Floats) -> Callable[[Floats], float]:
    """Spearman's rho of other values (N,) with the *probe* (N,), which is ranked once; NaN for constants."""
    ranks = _centred_midranks(probe)

    def rho(values: Floats) -> float:
        others = _centred_midranks(values)
        scale = math.sqrt(float(ranks @ ranks) * float(others @ others))
        return float(ranks @ others) / scale if scale else math.nan

    return rho


def _centred_midranks(values: Floats) -> Floats:
    """Twice the midranks less N + 1: whole numbers about 0."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    doubled = 2 * np.cumsum(sizes) - sizes - len(values)
    return doubled[group].astype(np.float64)
