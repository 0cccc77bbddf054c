"""Targets that reuse views of a probe, against every inclusive set written out."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.independent_views.distances import exposure_vectors, view_distances
from pytest_invari.independent_views.targets import (
    Pairs,
    chance_correlation,
    chance_rho,
    pairs_reusing,
    pairs_within,
    rounded,
    split_at,
    weigh,
    weighted_distances,
)
from pytest_invari.metrics.arrays import Floats, Integers
from pytest_invari.observation.design import Measure
from pytest_invari.statistics.correlation import spearman

PROBE, TARGET = (0, 1), (4, 5, 6, 7)


def random_ranks(seed: int, queries: int, views: int, items: int) -> Integers:
    random = np.random.default_rng(seed)
    return random.random((queries, views, items)).argsort(axis=-1).astype(np.int16)


def definition(measure: Measure, ranks: Integers, views: tuple[int, ...]) -> Floats:
    """V_m by its variances, 1 − mean tau by SciPy's taus, (N,)."""
    if measure == "exposure":
        spread: Floats = exposure_vectors(ranks)[:, list(views)].var(axis=1).sum(axis=1)
        return spread
    taus = [
        np.mean([scipy.stats.kendalltau(query[s], query[t]).statistic for s, t in combinations(views, 2)])
        for query in ranks
    ]
    return 1 - np.array(taus)


@settings(max_examples=25, deadline=None)
@given(
    st.permutations(range(8)), st.integers(2, 3), st.integers(3, 5), st.integers(0, 2), st.integers(0, 999)
)
def test_a_target_is_the_mean_of_every_inclusive_set(
    order: list[int], probe_size: int, size: int, reused: int, seed: int
) -> None:
    probe, target = tuple(order[:probe_size]), tuple(order[probe_size : probe_size + size])
    ranks = random_ranks(seed, 3, 8, 7)
    distances = view_distances(ranks)
    sets = [
        (*old, *fresh) for old in combinations(probe, reused) for fresh in combinations(target, size - reused)
    ]
    if (probe_size, size) == (2, 4):
        assert len(sets) == (1, 8, 6)[reused]
    for measure in ("exposure", "ranking"):
        expected = np.mean([definition(measure, ranks, each) for each in sets], axis=0)
        weights = weigh(measure, pairs_reusing(probe, target, reused), size)
        assert weighted_distances(distances, measure, weights) == pytest.approx(expected, rel=0, abs=1e-14)


def test_the_papers_targets_have_these_weights() -> None:
    fresh = pairs_within(TARGET)
    across = [(s, t) for s in PROBE for t in TARGET]
    none, once, twice = (weigh("exposure", pairs_reusing(PROBE, TARGET, reused), 4) for reused in (0, 1, 2))
    assert none == weigh("exposure", fresh, 4) == dict.fromkeys(fresh, Fraction(1, 16))
    assert once == dict.fromkeys(fresh, Fraction(1, 32)) | dict.fromkeys(across, Fraction(3, 128))
    assert twice == {
        PROBE: Fraction(1, 16),
        **dict.fromkeys(fresh, Fraction(1, 96)),
        **dict.fromkeys(across, Fraction(1, 32)),
    }


def test_removing_the_probes_own_distance_leaves_a_quarter_of_it_out() -> None:
    distances = view_distances(random_ranks(0, 50, 8, 20))
    inclusive = pairs_reusing(PROBE, TARGET, 2)
    own, removed = split_at(inclusive, PROBE)
    assert own == {PROBE: 1}
    whole, rest = (
        weighted_distances(distances, "exposure", weigh("exposure", each, 4)) for each in (inclusive, removed)
    )
    probe = weighted_distances(distances, "exposure", weigh("exposure", pairs_within(PROBE), 2))
    assert rest == pytest.approx(whole - probe / 4, rel=0, abs=1e-15)
    # The mean tau distance of the five pairs that are left in each of the six sets.
    taus = dict(zip(combinations(range(8), 2), (distances.disagreement / 190).T, strict=True))
    sets = [
        np.mean([taus[pair] for pair in combinations((*PROBE, *fresh), 2) if pair != PROBE], axis=0)
        for fresh in combinations(TARGET, 2)
    ]
    ranking = weighted_distances(distances, "ranking", weigh("ranking", removed, 4))
    assert ranking == pytest.approx(np.mean(sets, axis=0), rel=0, abs=1e-15)


def test_equal_counts_are_equal_exactly_whatever_their_terms() -> None:
    # Two queries with the same number of discordant pairs, spread otherwise over the pairs of views.
    ranks = random_ranks(5, 4000, 8, 4)
    distances = view_distances(ranks)
    weights = weigh("ranking", pairs_reusing(PROBE, TARGET, 2), 4)
    common = math.lcm(*(weight.denominator for weight in weights.values()))
    places = list(combinations(range(8), 2))
    exact = [
        sum(int(weight * common) * int(row[places.index(pair)]) for pair, weight in weights.items())
        for row in distances.disagreement
    ]
    values = weighted_distances(distances, "ranking", weights)
    assert len(set(values)) == len(set(exact)) < 200


def test_rounding_makes_ties_of_what_differs_by_summation() -> None:
    ranks = random_ranks(6, 300, 4, 12)
    relabelled = np.ascontiguousarray(ranks[:, :, ::-1])
    weights = weigh("exposure", pairs_within(range(4)), 4)
    one, other = (
        weighted_distances(view_distances(each), "exposure", weights) for each in (ranks, relabelled)
    )
    assert (one != other).any()
    assert rounded(one).tolist() == rounded(other).tolist()


def test_chance_is_the_correlation_of_a_reranker_that_ranks_at_random() -> None:
    distances = view_distances(random_ranks(7, 20_000, 8, 6))
    probe = weigh("exposure", pairs_within(PROBE), 2)
    for pairs, expected in [
        (pairs_reusing(PROBE, TARGET, 0), 0.0),
        (pairs_reusing(PROBE, TARGET, 1), 0.0),
        (pairs_reusing(PROBE, TARGET, 2), (1 / 16) / math.sqrt(1 / 256 + 6 / 96**2 + 8 / 32**2)),
        (pairs_within((0, 1, 2, 3)), 1 / math.sqrt(6)),
    ]:
        weights = weigh("exposure", pairs, 4)
        assert chance_correlation(probe, weights) == pytest.approx(expected, rel=0, abs=1e-15)
        for measure in ("exposure", "ranking"):
            one, both = (weighted_distances(distances, measure, each) for each in (probe, weights))
            found = scipy.stats.pearsonr(one, both).statistic
            assert found == pytest.approx(expected, rel=0, abs=4 / math.sqrt(20_000))
    nothing: Pairs = {}
    assert chance_correlation(probe, nothing) == 0


@pytest.mark.parametrize("measure", ["exposure", "ranking"])
def test_chance_rho_is_near_spearmans_of_a_reranker_that_ranks_at_random(measure: Measure) -> None:
    distances = view_distances(random_ranks(8, 10_000, 8, 20))
    probe = weigh(measure, pairs_within(PROBE), 2)
    for pairs, expected in [
        (pairs_reusing(PROBE, TARGET, 0), 0.0),
        (pairs_reusing(PROBE, TARGET, 2), 0.544),
        (pairs_within((0, 1, 2, 3)), 0.392),
    ]:
        weights = weigh(measure, pairs, 4)
        assert chance_rho(probe, weights) == pytest.approx(expected, rel=0, abs=0.001)
        one, both = (rounded(weighted_distances(distances, measure, each)) for each in (probe, weights))
        assert spearman(one, both).value == pytest.approx(expected, rel=0, abs=0.025)


@pytest.mark.parametrize("reused", [-1, 3])
def test_more_reused_views_than_the_probe_has_are_refused(reused: int) -> None:
    with pytest.raises(ValueError, match=f"{reused} views of a probe of 2 cannot be in a set of 4"):
        pairs_reusing(PROBE, TARGET, reused)
