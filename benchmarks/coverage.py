"""How often the intervals hold the truth: simulated queries whose true mean is known.

Run: python benchmarks/coverage.py [--quick] [--sets N]

The table is for docs/statistics.md. Each cell is the share of data sets whose 95 % interval holds the truth,
and in brackets the shares whose interval lies wholly above it and wholly below it; both should be 0.025.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tabulate import tabulate

from pytest_invari.metrics.exposure import maximum_exposure_deviation
from pytest_invari.statistics import (
    Interval,
    PooledCounts,
    Resamples,
    bootstrap_difference,
    bootstrap_mean,
    bootstrap_pooled,
    seeded_resamples,
)

Floats: TypeAlias = NDArray[np.float64]
Method: TypeAlias = Literal["percentile", "bca"]
Estimate: TypeAlias = Callable[[Floats, Resamples, Method], Interval]

METHODS: dict[Method, str] = {"bca": "default", "percentile": "percentile"}
QUERIES = (30, 100, 300)
# The endpoints move by 6 % of a standard error from one choice of resamples to another.
REPLICATES = 1999
K, TOP, VIEWS = 10, 5, 6


@dataclass(frozen=True)
class Truth:
    """Queries of a known distribution: ``draw(random, n)`` gives values (n, …), ``mean`` is the truth."""

    name: str
    draw: Callable[[np.random.Generator, int], Floats]
    mean: float
    estimate: Estimate


def mean_between(low: float, high: float) -> Estimate:
    """The mean of a metric between two bounds."""
    return lambda values, resamples, method: bootstrap_mean(
        values, resamples, bounds=(low, high), method=method
    )


def difference_of(low: float, high: float) -> Estimate:
    """The mean difference of a metric between two bounds."""
    return lambda values, resamples, method: bootstrap_difference(
        values, np.zeros_like(values), resamples, bounds=(low, high), method=method
    )


def exposure_deviation(values: Floats, resamples: Resamples, method: Method) -> Interval:
    """The largest exposure deviation, of which *values* (n, K) are each query's counts."""
    counts = PooledCounts(values, np.full(len(values), VIEWS))
    statistic = partial(maximum_exposure_deviation, k=TOP)
    return bootstrap_pooled(counts, statistic, resamples, distance_from=TOP / K, method=method)


def beta(a: float, b: float, low: float, high: float) -> Callable[[np.random.Generator, int], Floats]:
    """Values of a beta distribution, stretched."""
    return lambda random, n: low + (high - low) * random.beta(a, b, n)


def mostly_zero(share: float, a: float, b: float) -> Callable[[np.random.Generator, int], Floats]:
    """Zeros but for a *share* of values of a beta distribution."""
    return lambda random, n: (random.random(n) < share) * random.beta(a, b, n)


def rare_effects(share: float) -> Callable[[np.random.Generator, int], Floats]:
    """Zeros, in the middle of the range, but for a *share* of effects from 0.2 to 0.8."""
    return lambda random, n: (random.random(n) < share) * random.uniform(0.2, 0.8, n)


def rare_hits(share: float) -> Callable[[np.random.Generator, int], Floats]:
    """Ones with probability *share*, else zeros."""
    return lambda random, n: (random.random(n) < share).astype(np.float64)


def paired(random: np.random.Generator, n: int) -> Floats:
    """What is left of a PPI-like value, between nothing and all of it, less that value."""
    return random.beta(1.9, 2.6, n) * (random.beta(6, 2, n) - 1)


def flips(falls: float, rises: float) -> Callable[[np.random.Generator, int], Floats]:
    """Differences of hits: -1 and 1 with these probabilities, else 0."""

    def draw(random: np.random.Generator, n: int) -> Floats:
        u = random.random(n)
        return (u < rises).astype(np.float64) - (u > 1 - falls)

    return draw


def counts_in_top(favour: float) -> Callable[[np.random.Generator, int], Floats]:
    """How often each of K input positions reached the top in a few views, the earlier ones favoured."""

    def draw(random: np.random.Generator, n: int) -> Floats:
        positions = np.argsort(random.random((n, VIEWS, K)), axis=-1)
        pull = favour * random.gamma(2, 0.5, (n, 1, 1)) * (0.5 - positions / (K - 1))
        scores = random.normal(size=(n, 1, K)) + 0.7 * random.normal(size=(n, VIEWS, K)) + pull
        top = np.argsort(-scores, axis=-1)[..., :TOP]
        reached = np.take_along_axis(positions, top, axis=-1).reshape(n, -1)
        slots = reached + K * np.arange(n)[:, None]
        return np.bincount(slots.ravel(), minlength=n * K).reshape(n, K).astype(np.float64)

    return draw


def exposure_truth(name: str, favour: float) -> Truth:
    """An exposure deviation whose true value is that of very many queries; without favour it is 0."""
    draw = counts_in_top(favour)
    if not favour:
        return Truth(name, draw, 0.0, exposure_deviation)
    random = np.random.default_rng(7)
    many = np.mean([draw(random, 1000).mean(axis=0) for _ in range(50)], axis=0) / VIEWS
    return Truth(name, draw, float(maximum_exposure_deviation(many, TOP)), exposure_deviation)


def truths() -> list[Truth]:
    """What is simulated, from the ordinary to the rare."""
    unit, loc = mean_between(0, 1), mean_between(-1, 1)
    return [
        Truth("PPI, sd .21", beta(1.9, 2.6, 0, 1), 1.9 / 4.5, unit),
        Truth("LOC, skewed to 1", beta(11.5, 2.6, -1, 1), 2 * 11.5 / 14.1 - 1, loc),
        Truth("difference of PPI", paired, -(1.9 / 4.5) * (2 / 8), difference_of(0, 1)),
        Truth("nDCG, 40 % zeros", mostly_zero(0.6, 1.2, 1.8), 0.6 * 0.4, unit),
        Truth("90 % zeros", mostly_zero(0.1, 1, 1), 0.05, unit),
        Truth("97 % zeros", mostly_zero(0.03, 1, 1), 0.015, unit),
        Truth("HR .02", rare_hits(0.02), 0.02, unit),
        Truth("agreement gap, 3 % of queries", rare_effects(0.03), 0.015, mean_between(-1, 1)),
        Truth("difference of HR, 5 % lost, 5 % won", flips(0.05, 0.05), 0.0, difference_of(0, 1)),
        Truth("difference of HR, 4 % lost", flips(0.04, 0.0), -0.04, difference_of(0, 1)),
        exposure_truth("exposure deviation, true value 0", 0.0),
        exposure_truth("exposure deviation .16", 1.0),
        exposure_truth("exposure deviation .26", 2.0),
    ]


@dataclass(frozen=True)
class Coverage:
    """Shares of data sets whose interval lay above the truth, and below it."""

    above: float
    below: float

    @property
    def held(self) -> float:
        """The share of data sets whose interval held the truth."""
        return 1 - self.above - self.below


def coverage(truth: Truth, n: int, sets: int, replicates: int = REPLICATES) -> dict[Method, Coverage]:
    """Simulate *sets* data sets of *n* queries, all under the same resamples."""
    random = np.random.default_rng([n, sets])
    resamples = seeded_resamples(n, "coverage", replicates)
    missed = {method: np.zeros(2) for method in METHODS}
    for _ in range(sets):
        values = truth.draw(random, n)
        for method in METHODS:
            found = truth.estimate(values, resamples, method)
            # A bound that differs from the truth by rounding holds it.
            slack = 1e-9
            missed[method] += (found.low > truth.mean + slack, found.high < truth.mean - slack)
    return {method: Coverage(*(missed[method] / sets)) for method in METHODS}


def cell(found: Coverage) -> str:
    """Coverage, and the misses on either side."""
    held, above, below = (
        f"{share:.3f}".removeprefix("0") for share in (found.held, found.above, found.below)
    )
    return f"{held} ({above}, {below})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="200 data sets for each row instead of 2,000")
    parser.add_argument("--sets", type=int, help="so many data sets for each row")
    given = parser.parse_args()
    sets = given.sets or (200 if given.quick else 2000)
    rows = []
    for truth in truths():
        found = [coverage(truth, n, sets) for n in QUERIES]
        for method, name in METHODS.items():
            row = [truth.name if name == "default" else "", name, *(cell(each[method]) for each in found)]
            rows.append(row)
    headers = ["", "interval", *(f"{n} queries" for n in QUERIES)]
    print(tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True))
    error = math.sqrt(0.95 * 0.05 / sets)
    print(f"\n{sets:,} data sets each: the standard error of a coverage of .95 is {error:.3f}.")


if __name__ == "__main__":
    main()
