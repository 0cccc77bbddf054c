"""Exact GPI against every permutation, and the two ways to order a component against each other."""

from __future__ import annotations

import json
import tracemalloc
from fractions import Fraction
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.metrics import linear_ordering
from pytest_invari.metrics.arrays import Integers, query_arrays, ranks_from_scores
from pytest_invari.metrics.gpi import gpi, gpi_exact, gpi_lower_bound
from pytest_invari.metrics.kemeny import kemeny, orders_by_subsets
from pytest_invari.metrics.linear_ordering import best_order
from pytest_invari.metrics.preference import margins, wins

GOLDEN = Path(__file__).parents[1] / "golden"

Matrix = list[list[int]]


@st.composite
def matrices(draw: st.DrawFn, most_items: int = 6) -> Integers:
    """Small margins (s, s), skew-symmetric, with many ties and cycles."""
    size = draw(st.integers(2, most_items))
    pairs = size * (size - 1) // 2
    upper = draw(st.lists(st.integers(-3, 3), min_size=pairs, max_size=pairs))
    matrix = np.zeros((size, size), np.int16)
    matrix[np.triu_indices(size, 1)] = upper
    return np.asarray(matrix - matrix.T)


@st.composite
def tied_ranks(draw: st.DrawFn) -> Integers:
    """Ranks (N, M, K) of some small queries, with ties."""
    queries, views, items = draw(st.integers(1, 3)), draw(st.integers(2, 5)), draw(st.integers(2, 6))
    levels = draw(st.integers(1, items))
    count = queries * views * items
    scores = draw(st.lists(st.integers(0, levels), min_size=count, max_size=count))
    return ranks_from_scores(np.array(scores, float).reshape(queries, views, items))


def shuffled(seed: int, shape: tuple[int, int, int], noise: float) -> Integers:
    random = np.random.default_rng(seed)
    scores = random.normal(size=(shape[0], 1, shape[2])) + noise * random.normal(size=shape)
    return np.argsort(np.argsort(-scores, axis=-1), axis=-1).astype(np.int16)


def agreement(matrix: Matrix, order: tuple[int, ...] | list[int]) -> int:
    return sum(matrix[upper][lower] for upper, lower in combinations(order, 2))


def first_best(matrix: Matrix) -> tuple[int, ...]:
    """Of the orders with the largest agreement the first in lexicographic order."""
    return max(permutations(range(len(matrix))), key=lambda order: agreement(matrix, order))


def paley(size: int) -> Integers:
    """The tournament on a prime of the form 4n + 3 in which every pair looks alike: i beats i + squares."""
    squares = {number * number % size for number in range(1, size)}
    rows = [[(j - i) % size in squares for j in range(size)] for i in range(size)]
    beats = np.array(rows, np.int64)
    return np.asarray(beats - beats.T)


@settings(max_examples=80, deadline=None)
@given(tied_ranks())
def test_exact_ranking_is_the_best_of_all_permutations(ranks: Integers) -> None:
    queries, views, items = ranks.shape
    counts = wins(ranks)
    found, value = kemeny(counts, views, items), gpi_exact(ranks)
    preferred = margins(counts, views, items)
    pairs = items * (items - 1) // 2
    for n in range(queries):
        matrix = preferred[..., n].tolist()
        best = agreement(matrix, first_best(matrix))
        assert agreement(matrix, found.order[n].tolist()) == best
        assert found.disagreement[n] == views * pairs - best
        assert value.values[n] == float(Fraction(views * pairs - best, 2 * views * pairs))
        minority = sum(views - abs(matrix[i][j]) for i, j in combinations(range(items), 2))
        assert found.lower_bound[n] == minority
        assert value.lower_bound[n] == float(Fraction(minority, 2 * views * pairs))
    assert found.optimal.all()
    assert value.optimal.all()
    assert gpi_lower_bound(ranks).values.tolist() == value.lower_bound.tolist()


@settings(max_examples=60, deadline=None)
@given(matrices())
def test_subsets_give_the_first_of_the_best_orders(matrix: Integers) -> None:
    order = orders_by_subsets(matrix[None])[0]
    assert tuple(order.tolist()) == first_best(matrix.tolist())


@settings(max_examples=60, deadline=None)
@given(matrices(most_items=9))
def test_linear_programme_and_subsets_find_equally_good_orders(matrix: Integers) -> None:
    check_same(matrix)


@pytest.mark.parametrize("seed", range(6))
def test_linear_programme_and_subsets_agree_on_components_of_13_items(seed: int) -> None:
    ranks = shuffled(seed, (1, 7 + seed, 13), noise=5.0)
    if seed % 2:
        ranks //= 2
    check_same(margins(wins(ranks), ranks.shape[1], 13)[..., 0])


def check_same(matrix: Integers) -> None:
    order, optimal = best_order(matrix)
    assert optimal
    assert sorted(order.tolist()) == list(range(len(matrix)))
    by_subsets = orders_by_subsets(matrix[None])[0].tolist()
    assert agreement(matrix.tolist(), order.tolist()) == agreement(matrix.tolist(), by_subsets)


def test_fractional_relaxation_is_closed_by_whole_numbers() -> None:
    # The relaxation orders nothing here: all its shares are 1/3 or 2/3.
    matrix = paley(11)
    order, optimal = best_order(matrix)
    assert optimal
    reversed_pairs = (55 - agreement(matrix.tolist(), order.tolist())) // 2
    assert reversed_pairs == 20
    assert reversed_pairs > 55 / 3


@pytest.mark.parametrize("limit", ["_MOST_OPEN_PAIRS", "_MOST_NODES", "_MOST_ROWS"])
def test_beyond_each_limit_an_order_is_found_but_not_proven(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(linear_ordering, limit, 1)
    order, optimal = best_order(paley(11))
    assert not optimal
    assert sorted(order.tolist()) == list(range(11))


def test_query_whose_ranking_is_not_proven_is_undefined_with_a_reason() -> None:
    orderly, random = shuffled(0, (1, 20, 100), noise=0.1), shuffled(1, (1, 20, 100), noise=1000.0)
    result = gpi_exact(np.concatenate([random, orderly]))
    assert result.reasons == ("best_ranking_unproven", None)
    assert np.isnan(result.values[0])
    assert result.lower_bound[0] > 0.4
    assert result.optimal.tolist() == [False, True]
    assert result.mean == result.values[1] >= result.lower_bound[1]


# Noise at which most components are solved over their subsets, and by linear programming.
@pytest.mark.parametrize(("items", "noise"), [(12, 1.0), (25, 1.0), (25, 5.0)])
def test_exact_value_ignores_names_direction_and_company(items: int, noise: float) -> None:
    ranks = shuffled(3, (30, 9, items), noise)
    names = np.random.default_rng(4).permutation(items)
    exact = gpi_exact(ranks)
    assert gpi_exact(ranks[..., names]).values.tolist() == exact.values.tolist()
    assert gpi_exact((items - 1 - ranks).astype(np.int16)).values.tolist() == exact.values.tolist()
    assert gpi_exact(np.repeat(ranks, 2, axis=1)).values.tolist() == exact.values.tolist()
    alone = [gpi_exact(ranks[n : n + 1]).values[0] for n in range(0, 30, 5)]
    assert exact.values[::5].tolist() == alone
    found = gpi(ranks)
    assert (exact.lower_bound <= exact.values).all()
    assert (exact.values <= found.values).all()
    # The swap search proves some, but not all, of what it finds.
    assert exact.values[found.optimal].tolist() == found.values[found.optimal].tolist()


def test_order_of_a_query_does_not_depend_on_its_company() -> None:
    ranks = shuffled(5, (20, 6, 14), noise=2.0)
    whole = kemeny(wins(ranks), 6, 14)
    for n in range(20):
        assert kemeny(wins(ranks[n : n + 1]), 6, 14).order[0].tolist() == whole.order[n].tolist()


def test_memory_does_not_grow_with_the_number_of_queries() -> None:
    few = shuffled(6, (3000, 8, 20), noise=0.3)
    # 6,000 more queries may cost their results; their views alone take 320 bytes each.
    assert peak(np.tile(few, (3, 1, 1))) < peak(few) + 6000 * 80


def peak(ranks: Integers) -> int:
    tracemalloc.start()
    try:
        gpi_exact(ranks)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_majorities_without_a_cycle_are_followed_and_ties_fall_by_index() -> None:
    # Items 1 and 2 tie with each other and with item 3; 0 is last in both views.
    ranks = np.array([[[3, 0, 1, 2], [3, 2, 1, 0]]], np.int16)
    found = kemeny(wins(ranks), 2, 4)
    assert found.order[0].tolist() == [1, 2, 3, 0]
    assert found.disagreement[0] == found.lower_bound[0] == 6


@pytest.mark.parametrize(
    "name", ["g01_invariant", "g03_reverse_echo", "g05_condorcet_cycle",
             "g06_swap_local_optimum_not_exact", "g09b_partly_observed"],
)  # fmt: skip
def test_golden_exact_values_are_met(name: str) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    views = golden["inputs"]["views"]
    arrays = query_arrays("q", [view["input"] for view in views], [view["output"] for view in views])
    result = gpi_exact(arrays.ranks[None])
    assert result.values[0] == float(Fraction(golden["exact"]["gpi_exact"]))
    assert result.lower_bound[0] == float(Fraction(golden["exact"]["gpi_lower_bound"]))


def test_golden_half_ties_give_the_exact_value() -> None:
    golden = json.loads((GOLDEN / "g11_half_ties.json").read_text(encoding="utf-8"))
    ranks = ranks_from_scores(np.array(golden["inputs"]["scores_by_item"]))[None]
    assert gpi_exact(ranks).values[0] == float(Fraction(golden["exact"]["gpi_exact"]))


@pytest.mark.parametrize(
    ("shape", "reason"), [((2, 1, 3), "fewer_than_2_views"), ((2, 3, 1), "fewer_than_2_items")]
)
def test_too_few_views_or_items_are_undefined(shape: tuple[int, int, int], reason: str) -> None:
    ranks = np.broadcast_to(np.arange(shape[2], dtype=np.int16), shape)
    assert gpi_exact(ranks).reasons == gpi_lower_bound(ranks).reasons == (reason, reason)


def test_no_queries_give_empty_results() -> None:
    ranks = np.empty((0, 4, 5), np.int16)
    assert len(gpi_exact(ranks)) == len(gpi_lower_bound(ranks)) == 0
