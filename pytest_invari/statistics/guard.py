"""Guards: what resampling alone gets wrong, of values seldom seen and of distances that noise makes.

Thirty queries without a single failure resample to thirty without a failure, and the bootstrap would be
certain. Where fewer than five queries differ from what all the others have, the share that differs is
bounded by Clopper and Pearson's exact method (Biometrika 1934), above and below. Each that was not seen may
be as far away as the range allows; those that were seen are as far as they are.

The distance of ratios from a point is above 0 by noise alone, and their resamples are farther still. It is
larger than the true distance by at most the distance between ratios and truth, which resampling does show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pytest_invari.metrics.arrays import Floats
from pytest_invari.statistics.distribution import Distribution

# As many queries off the bound are enough for the bootstrap.
_ENOUGH = 5
# Values this close, as a share of the range, are equal.
_EQUAL = 1e-12


class GuardLimit(Protocol):
    """What one side of a distribution has to allow for."""

    def bound(self, tail: float) -> float:
        """The value that the truth is not beyond, but with probability *tail*."""

    def beyond(self, value: float) -> float:
        """The p-value of the claim that the truth is not as far as *value*; *tail* at ``bound(tail)``."""

    def queries_to_reach(self, value: float, tail: float = 0.025) -> float:
        """How many queries bring the bound to *value* if no more of the kind are seen."""


@dataclass(frozen=True, slots=True)
class RareShare:
    """A mean of values that are all *anchor* but for *off* of *n*, which may be *anchor* + *reach*.

    *reach* is negative where the values can only be less.
    """

    anchor: float
    reach: float
    off: int
    n: int

    def bound(self, tail: float) -> float:
        """The farthest mean that would have shown *off* or fewer with probability *tail*."""
        from scipy.special import betaincinv

        share = 1.0 if self.off == self.n else 1.0 - betaincinv(self.n - self.off, self.off + 1, tail)
        return float(self.anchor + self.reach * share)

    def beyond(self, value: float) -> float:
        """The p-value of the claim that the mean is not as far as *value*."""
        from scipy.special import bdtr

        share = (value - self.anchor) / self.reach
        return float(bdtr(self.off, self.n, min(max(share, 0.0), 1.0)))

    def queries_to_reach(self, value: float, tail: float = 0.025) -> float:
        """How many queries, all on the anchor, have *value* as their bound; infinite for the anchor."""
        share = (value - self.anchor) / self.reach
        if share <= 0:
            return math.inf
        return 1.0 if share >= 1 else math.log(tail) / math.log1p(-share)


@dataclass(frozen=True, slots=True)
class SeldomSeen:
    """The near side of a :class:`RareShare`: the few that were seen may be more than there mostly are.

    *off* of *n* values differ from the *anchor*, by *deviation* on average. That average is taken as it is;
    the share of such values is what is uncertain.
    """

    anchor: float
    deviation: float
    off: int
    n: int

    def bound(self, tail: float) -> float:
        """The nearest mean that would have shown *off* or more with probability *tail*."""
        from scipy.special import betaincinv

        return float(self.anchor + self.deviation * betaincinv(self.off, self.n - self.off + 1, tail))

    def beyond(self, value: float) -> float:
        """The p-value of the claim that the mean is farther from the anchor than *value*."""
        from scipy.special import bdtrc

        share = (value - self.anchor) / self.deviation
        return float(bdtrc(self.off - 1, self.n, min(max(share, 0.0), 1.0)))

    def queries_to_reach(self, value: float, tail: float = 0.025) -> float:
        """None in particular: the share settles as the standard error does."""
        return 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """A distance of *estimate* from a point, and the sorted distances of its replicates (B,) from itself."""

    estimate: float
    distances: Floats

    def bound(self, tail: float) -> float:
        """The estimate less what noise makes with probability *tail*."""
        return max(0.0, self.estimate - float(np.quantile(self.distances, 1 - tail)))

    def beyond(self, value: float) -> float:
        """How often noise alone makes the estimate of a distance of *value*."""
        if value < 0:
            return 1 / (len(self.distances) + 1)
        nearer = np.searchsorted(self.distances, self.estimate - value, side="left")
        return float((1 + len(self.distances) - nearer) / (1 + len(self.distances)))

    def queries_to_reach(self, value: float, tail: float = 0.025) -> float:
        """None in particular: noise shrinks as the standard error does."""
        return 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Guarded:
    """A distribution whose bounds are no nearer than what its limits allow, above or below it."""

    inner: Distribution
    above: GuardLimit | None
    below: GuardLimit | None

    @property
    def method(self) -> str:
        """That of the distribution and the guard."""
        return f"{self.inner.method}+guard"

    def quantile(self, probability: float) -> float:
        """The farther of the two bounds."""
        bound = self.inner.quantile(probability)
        if probability > 0.5 and self.above is not None:
            return max(bound, self.above.bound(1 - probability))
        if probability < 0.5 and self.below is not None:
            return min(bound, self.below.bound(probability))
        return bound

    def at_most(self, value: float) -> float:
        """The larger of the two p-values."""
        p_value = self.inner.at_most(value)
        return p_value if self.below is None else max(p_value, self.below.beyond(value))

    def at_least(self, value: float) -> float:
        """The larger of the two p-values."""
        p_value = self.inner.at_least(value)
        return p_value if self.above is None else max(p_value, self.above.beyond(value))


def guard_mean(distribution: Distribution, values: Floats, low: float, high: float) -> Distribution:
    """Guard the mean of *values* (n,) between *low* and *high*, nearly all of which may be the same.

    These are on an end of the range, such as no miss in 30 queries, or within it, such as no effect in either
    direction. Fewer than five values are held against both ends of the range. An infinite range has no guard,
    since nothing limits what a rare query costs.
    """
    if not math.isfinite(high - low):
        return distribution
    equal, count = _EQUAL * (high - low), len(values)
    if count < _ENOUGH:
        off_low, off_high = values[values > low + equal], values[values < high - equal]
        return _guarded(
            distribution,
            _far_side(low, high, off_low, equal, count),
            _far_side(high, low, off_high, equal, count),
        )
    # What more than half of the values are is their median.
    anchor = float(np.sort(values)[count // 2])
    rises, falls = values[values > anchor + equal], values[values < anchor - equal]
    if len(rises) + len(falls) >= _ENOUGH:
        return distribution
    above = _far_side(anchor, high, rises, equal, count) or _near_side(anchor, falls, count)
    below = _far_side(anchor, low, falls, equal, count) or _near_side(anchor, rises, count)
    return _guarded(distribution, above, below)


def guard_distance(distribution: Distribution, estimate: float, distances: Floats, n: int) -> Distribution:
    """Guard the distance *estimate* of ratios from a point by the *distances* (B,) of replicates from it.

    |d(r, p) − d(t, p)| ≤ d(r, t) for ratios r, their truth t and a point p, for any distance d.
    """
    # Resampling n queries shows a little less than their whole spread.
    spread = np.sort(distances[~np.isnan(distances)]) * math.sqrt(n / (n - 1))
    return _guarded(distribution, None, Noise(estimate, spread))


def _far_side(anchor: float, end: float, seen: Floats, equal: float, count: int) -> RareShare | None:
    """None where the anchor is the end of the range itself."""
    return RareShare(anchor, end - anchor, len(seen), count) if abs(end - anchor) > equal else None


def _near_side(anchor: float, seen: Floats, count: int) -> SeldomSeen | None:
    """None where nothing was seen: the anchor is as near as it gets."""
    return SeldomSeen(anchor, float(seen.mean()) - anchor, len(seen), count) if len(seen) else None


def _guarded(distribution: Distribution, above: GuardLimit | None, below: GuardLimit | None) -> Distribution:
    return distribution if above is None and below is None else Guarded(distribution, above, below)
