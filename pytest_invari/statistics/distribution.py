"""How replicates of a statistic become bounds and one-sided p-values, each the inverse of the other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from pytest_invari.metrics.arrays import Floats

# Replicates this close to the estimate, as a share of their spread, differ from it by rounding alone.
_TIE = 1e-12


class Distribution(Protocol):
    """Where the true value may lie, as a confidence distribution.

    ``quantile(p)`` is the bound that the true value is below with confidence p. ``at_most(value)`` is the
    p-value of the claim that the true value is above *value*; it is p exactly at ``quantile(p)`` unless
    replicates tie there, and then more. ``at_least`` mirrors it.
    """

    @property
    def method(self) -> str:
        """What an interval says of how its bounds came about."""

    def quantile(self, probability: float) -> float:
        """See the class."""

    def at_most(self, value: float) -> float:
        """See the class."""

    def at_least(self, value: float) -> float:
        """See the class."""


@dataclass(frozen=True, slots=True, eq=False)
class Percentile:
    """The replicates as they are: Efron and Tibshirani 1993, section 13.3.

    Quantiles interpolate linearly between the sorted *replicates* (B,); p-values are (1 + r) / (B + 1) for r
    replicates on the wrong side, as P2 counts them.
    """

    replicates: Floats
    method: ClassVar[str] = "percentile"

    def quantile(self, probability: float) -> float:
        """The replicates' quantile."""
        return float(np.quantile(self.replicates, probability))

    def at_most(self, value: float) -> float:
        """(1 + number of replicates of *value* or less) / (B + 1)."""
        return (1 + _at_most(self.replicates, value)) / (1 + len(self.replicates))

    def at_least(self, value: float) -> float:
        """(1 + number of replicates of *value* or more) / (B + 1)."""
        below = _below(self.replicates, value)
        return (1 + len(self.replicates) - below) / (1 + len(self.replicates))


@dataclass(frozen=True, slots=True, eq=False)
class BCa:
    """Bias-corrected and accelerated replicates with quantiles of t, widened for few queries.

    ``replicates`` (B,) are sorted, ``n`` is the number of queries. The bound with confidence p is the
    replicates' quantile at Φ(z0 + u / (1 − a·u)), u = z0 + t_{n−1}(p) · sqrt(n / (n−1)), for the bias
    ``z0`` and the acceleration ``a``: Efron 1987, section 3, with the quantiles of Hesterberg 2015, section
    4.4 ("expanded percentile"). P-values invert that and keep to 1 / (B + 1) from 0 and 1.
    """

    replicates: Floats
    z0: float
    a: float
    n: int
    method: ClassVar[str] = "bca"

    def quantile(self, probability: float) -> float:
        """The bound that the true value is below with confidence *probability*."""
        from scipy.special import ndtr, stdtrit

        u = self.z0 + stdtrit(self.n - 1, probability) * math.sqrt(self.n / (self.n - 1))
        return float(np.quantile(self.replicates, ndtr(self.z0 + _accelerate(u, self.a))))

    def at_most(self, value: float) -> float:
        """The confidence that the true value is *value* or less."""
        return self._confidence(self._share(value, _at_most(self.replicates, value)))

    def at_least(self, value: float) -> float:
        """The confidence that the true value is *value* or more."""
        return 1.0 - self._confidence(self._share(value, _below(self.replicates, value)))

    def _share(self, value: float, below: int) -> float:
        """The probability whose linear quantile is *value*, with *below* replicates on its left."""
        known, last = self.replicates, len(self.replicates) - 1
        if below == 0 or last == 0:
            return 0.0 if below == 0 else 1.0
        if below > last:
            return 1.0
        left, right = known[below - 1], known[below]
        # A replicate that equals the value but for rounding may lie on its other side.
        return float((below - 1 + min(max((value - left) / (right - left), 0.0), 1.0)) / last)

    def _confidence(self, share: float) -> float:
        from scipy.special import ndtri, stdtr

        if share in (0.0, 1.0):
            return self._limited(share)
        u = _accelerate(float(ndtri(share)) - self.z0, -self.a)
        return self._limited(float(stdtr(self.n - 1, (u - self.z0) * math.sqrt((self.n - 1) / self.n))))

    def _limited(self, probability: float) -> float:
        least = 1 / (len(self.replicates) + 1)
        return min(max(probability, least), 1 - least)


def _at_most(replicates: Floats, value: float) -> int:
    """How many of the sorted *replicates* are *value* or less, or equal it but for rounding."""
    return int(np.searchsorted(replicates, value + _rounding(replicates), side="right"))


def _below(replicates: Floats, value: float) -> int:
    """How many of the sorted *replicates* are less than *value* by more than rounding."""
    return int(np.searchsorted(replicates, value - _rounding(replicates), side="left"))


def _rounding(replicates: Floats) -> float:
    return _TIE * float(max(-replicates[0], replicates[-1], 0.0))


def bias_correction(replicates: Floats, estimate: float) -> float:
    """z0: the normal quantile of the share of *replicates* (B,) below the *estimate*; ties count half."""
    from scipy.special import ndtri

    distances = replicates - estimate
    near = np.abs(distances) <= _TIE * np.abs(distances).max()
    below = np.count_nonzero(distances[~near] < 0) + np.count_nonzero(near) / 2
    least = 1 / (len(replicates) + 1)
    return float(ndtri(min(max(below / len(replicates), least), 1 - least)))


def acceleration(jackknife: Floats) -> float:
    """The acceleration, from the statistic (N,) without each query in turn.

    Efron and Tibshirani 1993, equation 14.15. For a mean it is Σ(x − x̄)³ / (6 (Σ(x − x̄)²)^1.5). Always
    within ±1/6.
    """
    distances = jackknife.mean() - jackknife
    largest = np.abs(distances).max()
    if not largest > 0:
        return 0.0
    # Scaled first: cubes of small distances would lose their digits.
    scaled = distances / largest
    return float((scaled**3).sum() / (6 * (scaled**2).sum() ** 1.5))


def _accelerate(u: float, a: float) -> float:
    """u / (1 − a·u); infinite, with the sign of u, where the denominator has run out."""
    rest = 1 - a * u
    return u / rest if rest > 0 else math.copysign(math.inf, u)
