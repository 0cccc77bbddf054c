"""The instability of a set of views, and its mean over all sets that reuse some views of a probe.

All of it is linear in the distances between two views. A mean over sets needs no set: it counts how often a
pair of views is in one (P2, equations 1, 2 and 5).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

import numpy as np

from pytest_invari.independent_views.distances import ViewDistances
from pytest_invari.metrics.arrays import Floats
from pytest_invari.observation.design import Measure

Pairs: TypeAlias = Mapping[tuple[int, int], Fraction]
"""A number for each pair (s, t), s < t, of views by their place in the bank; pairs left out have 0."""

# Values that differ only beyond this differ by rounding, and would be ranked as if they did.
_DECIMALS = 12


def pairs_within(views: Sequence[int]) -> Pairs:
    """Each pair of *views*, once."""
    return {pair: Fraction(1) for pair in combinations(sorted(views), 2)}


def pairs_reusing(probe: Sequence[int], target: Sequence[int], reused: int) -> Pairs:
    """The share of inclusive sets that each pair of views is in.

    A set has as many views as the target: *reused* of the probe, the others of the target, in every
    combination. P2's overlap 1 is 8 such sets, its overlap 2 is 6, and overlap 0 the target itself.

    Args:
        probe, target: places in the bank, disjoint.
        reused: 0 … the number of views in the probe, and not more than in the target.
    """
    if not 0 <= reused <= min(len(probe), len(target)):
        raise ValueError(f"{reused} views of a probe of {len(probe)} cannot be in a set of {len(target)}")
    fresh = len(target) - reused
    both_in_probe = _both_drawn(reused, len(probe))
    both_in_target = _both_drawn(fresh, len(target))
    one_of_each = Fraction(reused, len(probe)) * Fraction(fresh, len(target))
    shares = dict.fromkeys(pairs_within(probe), both_in_probe)
    shares |= dict.fromkeys(pairs_within(target), both_in_target)
    shares |= {(min(s, t), max(s, t)): one_of_each for s in probe for t in target}
    return {pair: share for pair, share in shares.items() if share}


def split_at(pairs: Pairs, views: Sequence[int]) -> tuple[Pairs, Pairs]:
    """The *pairs* within *views*, and all the others."""
    own = pairs_within(views)
    inside = {pair: share for pair, share in pairs.items() if pair in own}
    return inside, {pair: share for pair, share in pairs.items() if pair not in own}


def weigh(measure: Measure, pairs: Pairs, size: int) -> Pairs:
    """The weights that make distances the instability of sets of *size* views.

    Exposure: 1/m², so that one set's is V_m(P) = Σ_i Var_s x_i with ddof 0 (P2, equation 2). Ranking: those
    that add up to 1, so that it is 1 − the mean tau over the pairs.
    """
    divisor = Fraction(size**2) if measure == "exposure" else sum(pairs.values(), Fraction(0))
    return {pair: share / divisor for pair, share in pairs.items()}


def weighted_distances(distances: ViewDistances, measure: Measure, weights: Pairs) -> Floats:
    """Σ weight · distance for each query, (N,), not rounded."""
    common = math.lcm(1, *(weight.denominator for weight in weights.values()))
    whole = np.zeros(distances.exposure.shape[1])
    for place, pair in enumerate(combinations(range(distances.views), 2)):
        whole[place] = int(weights.get(pair, Fraction(0)) * common)
    # Whole weights of whole counts: equal sums come out equal, whatever their terms.
    if measure == "exposure":
        sums: Floats = distances.exposure @ whole / common
    else:
        sums = distances.disagreement @ whole / (common * max(1, distances.item_pairs))
    return sums


def rounded(values: Floats) -> Floats:
    """The values as they are ranked: to 12 decimals, so that rounding errors break no ties."""
    result: Floats = np.round(values, _DECIMALS)
    return result


def chance_correlation(one: Pairs, other: Pairs) -> float:
    """Pearson's correlation of two weighted sums of distances when each view is an independent random order.

    Distances of such views are uncorrelated and of one variance, also where they share a view. So it is the
    cosine of the weights: 0 for disjoint views, .562 for P2's overlap 2.
    """
    together = sum(weight * other.get(pair, Fraction(0)) for pair, weight in one.items())
    squares = [sum(weight**2 for weight in weights.values()) for weights in (one, other)]
    return float(together) / math.sqrt(squares[0] * squares[1]) if all(squares) else 0.0


def chance_rho(one: Pairs, other: Pairs) -> float:
    """Spearman's correlation of such sums, as far as they are normal: (6/π)·asin(r/2).

    .544 for P2's overlap 2. Simulated random orders have .549 there for 20 items, .52 to .555 for 6 to 50.
    """
    return 6 / math.pi * math.asin(chance_correlation(one, other) / 2)


def _both_drawn(drawn: int, of: int) -> Fraction:
    """How likely two given ones are both among those drawn without replacement."""
    return Fraction(drawn * (drawn - 1), of * (of - 1)) if of > 1 else Fraction(0)
