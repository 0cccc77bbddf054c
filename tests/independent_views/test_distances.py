"""Exposure vectors and distances of views, against exact arithmetic and the identities of P2."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.independent_views.distances import exposure_vectors, exposure_weights, view_distances
from pytest_invari.independent_views.targets import pairs_within, weigh, weighted_distances
from pytest_invari.metrics.arrays import Floats, Integers

GOLDEN = Path(__file__).parents[1] / "golden" / "g13_exposure_variance.json"
# What the identities of P2 hold to; the paper quotes 2.08e-17 for values of this size.
EXACT = 1e-15


def random_ranks(seed: int, queries: int, views: int, items: int) -> Integers:
    random = np.random.default_rng(seed)
    return random.random((queries, views, items)).argsort(axis=-1).astype(np.int16)


def variance(ranks: Integers, *views: int) -> Floats:
    """V_m of the views, by distances."""
    return weighted_distances(
        view_distances(ranks), "exposure", weigh("exposure", pairs_within(views), len(views))
    )


def naive_weights(items: int) -> list[Fraction]:
    top = [Fraction(1 / math.log2(1 + rank)) if rank <= 10 else Fraction(0) for rank in range(1, items + 1)]
    return [weight / sum(top) for weight in top]


def naive_variance(views: list[list[int]]) -> Fraction:
    """Σ_i (1/m) Σ_s (x_i − x̄_i)², equation 1."""
    items, m = len(views[0]), len(views)
    weights = naive_weights(items)
    total = Fraction(0)
    for item in range(items):
        exposures = [weights[ranks[item]] for ranks in views]
        mean = sum(exposures, Fraction(0)) / m
        total += sum(((exposure - mean) * (exposure - mean) for exposure in exposures), Fraction(0)) / m
    return total


def naive_disagreement(one: list[int], other: list[int]) -> int:
    """Twice the number of item pairs that the two order differently."""
    pairs = combinations(range(len(one)), 2)
    return 2 * sum((one[i] < one[j]) != (other[i] < other[j]) for i, j in pairs)


def test_golden_values() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    expected, near = golden["expected"], {"rel": 0, "abs": golden["tolerance"]}
    orders = np.array(golden["inputs"]["rank_orders"])
    ranks = orders.argsort(axis=-1)[None].astype(np.int16)
    vectors = exposure_vectors(ranks)[0]
    assert exposure_weights(20)[:10] == pytest.approx(expected["weights"], **near)
    assert variance(ranks, 0)[0] == expected["V1"] == 0
    assert variance(ranks, 0, 1)[0] == pytest.approx(expected["V2_A"], **near)
    assert variance(ranks, 2, 3)[0] == pytest.approx(expected["V2_B"], **near)
    assert variance(ranks, 0, 1, 2)[0] == pytest.approx(expected["V3"], **near)
    assert variance(ranks, 0, 1, 2, 3)[0] == pytest.approx(expected["V4_pairwise"], **near)
    between = ((vectors[:2].mean(axis=0) - vectors[2:].mean(axis=0)) ** 2).sum()
    assert between == pytest.approx(expected["between"], **near)
    assert variance(ranks, 0, 1)[0] / 4 == pytest.approx(expected["probe_pair_term"], **near)


@pytest.mark.parametrize(("items", "top"), [(1, 1), (3, 3), (10, 10), (20, 10), (200, 10)])
def test_exposure_is_of_the_top_ten_or_the_whole_list(items: int, top: int) -> None:
    weights = exposure_weights(items)
    assert weights == pytest.approx([float(weight) for weight in naive_weights(items)], rel=0, abs=1e-16)
    assert weights.sum() == pytest.approx(1, rel=0, abs=1e-15)
    assert (np.diff(weights[:top]) < 0).all()
    assert np.count_nonzero(weights) == top


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3), st.integers(2, 6), st.integers(1, 14), st.integers(0, 9999))
def test_distances_are_the_naive_ones(queries: int, views: int, items: int, seed: int) -> None:
    ranks = random_ranks(seed, queries, views, items)
    found = view_distances(ranks)
    assert (found.views, found.item_pairs) == (views, items * (items - 1) // 2)
    weights = naive_weights(items)
    for query, lists in enumerate(ranks.tolist()):
        for place, (s, t) in enumerate(combinations(range(views), 2)):
            steps = [(weights[a] - weights[b]) ** 2 for a, b in zip(lists[s], lists[t], strict=True)]
            assert found.exposure[query, place] == pytest.approx(float(sum(steps)), rel=0, abs=EXACT)
            assert found.disagreement[query, place] == naive_disagreement(lists[s], lists[t])
        assert variance(ranks)[query] == 0
        chosen = lists[: max(2, views - 1)]
        assert variance(ranks, *range(len(chosen)))[query] == pytest.approx(
            float(naive_variance(chosen)), rel=0, abs=EXACT
        )


def test_disagreement_is_one_less_tau() -> None:
    ranks = random_ranks(1, 5, 4, 9)
    found = view_distances(ranks)
    taus = [
        [scipy.stats.kendalltau(query[s], query[t]).statistic for s, t in combinations(range(4), 2)]
        for query in ranks
    ]
    assert 1 - found.disagreement / found.item_pairs == pytest.approx(np.array(taus), rel=0, abs=1e-12)


def test_pairwise_identities() -> None:
    vectors = exposure_vectors(ranks := random_ranks(2, 500, 6, 20))
    for m in range(2, 7):
        chosen = vectors[:, :m]
        mean = chosen.mean(axis=1)
        about_mean = ((chosen - mean[:, None]) ** 2).sum(axis=(1, 2))
        squares, apart = (chosen**2).sum(axis=(1, 2)), (mean**2).sum(axis=1)
        distances = sum(
            ((chosen[:, s] - chosen[:, t]) ** 2).sum(axis=1) for s, t in combinations(range(m), 2)
        )
        # Equations 1 and 2, and the two expansions that prove them.
        assert variance(ranks, *range(m)) == pytest.approx(about_mean / m, rel=0, abs=EXACT)
        assert about_mean == pytest.approx(squares - m * apart, rel=0, abs=EXACT)
        assert distances == pytest.approx(m * (squares - m * apart), rel=0, abs=10 * EXACT)
        assert distances == pytest.approx(
            m * squares - (chosen.sum(axis=1) ** 2).sum(axis=1), rel=0, abs=10 * EXACT
        )


def test_the_probe_is_a_quarter_of_an_inclusive_target_and_so_of_its_covariance() -> None:
    vectors = exposure_vectors(ranks := random_ranks(3, 500, 4, 20))
    one, other, both = variance(ranks, 0, 1), variance(ranks, 2, 3), variance(ranks, 0, 1, 2, 3)
    between = ((vectors[:, :2].mean(axis=1) - vectors[:, 2:].mean(axis=1)) ** 2).sum(axis=1)
    assert both == pytest.approx(one / 2 + other / 2 + between / 4, rel=0, abs=EXACT)
    parts = np.cov([one, other, between, both])
    assert parts[0, 3] == pytest.approx(
        parts[0, 0] / 2 + parts[0, 1] / 2 + parts[0, 2] / 4, rel=0, abs=EXACT * parts[0, 0]
    )


def test_chunks_of_queries_do_not_change_distances() -> None:
    ranks = random_ranks(4, 1200, 8, 20)
    whole = view_distances(ranks)
    for query in (0, 700, 1199):
        alone = view_distances(ranks[query : query + 1])
        assert alone.exposure.tolist() == whole.exposure[query : query + 1].tolist()
        assert alone.disagreement.tolist() == whole.disagreement[query : query + 1].tolist()


def test_ties_are_refused() -> None:
    with pytest.raises(ValueError, match="ranks must be strict"):
        view_distances(np.zeros((1, 2, 3), np.int16))
