"""Hit rate and nDCG against plain loops, and what is undefined."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.metrics.arrays import Bools, Integers
from pytest_invari.metrics.effectiveness import hit_rate, ndcg, ndcg_candidates


def orders_of_ties(view: list[int]) -> list[list[int]]:
    """All strict rankings that *view*, ranks of the items, may stand for."""
    groups = [[item for item, rank in enumerate(view) if rank == each] for each in sorted(set(view))]
    strict = []
    for chosen in product(*(permutations(group) for group in groups)):
        order = [item for group in chosen for item in group]
        strict.append([order.index(item) for item in range(len(view))])
    return strict


def naive_hit(view: list[int], relevant: list[bool], k: int) -> float:
    return float(any(hit and rank < k for rank, hit in zip(view, relevant, strict=True)))


def naive_ndcg(view: list[int], relevant: list[bool], ideal_length: int, k: int) -> float:
    gained = math.fsum(
        1 / math.log2(rank + 2) for rank, hit in zip(view, relevant, strict=True) if hit and rank < k
    )
    return gained / math.fsum(1 / math.log2(rank + 2) for rank in range(min(ideal_length, k)))


@st.composite
def judged(draw: st.DrawFn) -> tuple[Integers, Bools, Integers]:
    """Ranks (N, M, K), some with ties, relevance (N, K) and totals (N,) of a few small queries."""
    queries, views, items = (draw(st.integers(1, most)) for most in (3, 4, 5))
    levels = st.lists(st.integers(0, 2), min_size=items, max_size=items)
    tied = levels.map(lambda given: [sum(other < each for other in given) for each in given])
    ranked = st.lists(st.permutations(range(items)) | tied, min_size=views, max_size=views)
    ranks = draw(st.lists(ranked, min_size=queries, max_size=queries))
    flags = st.lists(st.booleans(), min_size=items, max_size=items)
    relevant = np.array(draw(st.lists(flags, min_size=queries, max_size=queries)), bool)
    missed = np.array(draw(st.lists(st.integers(0, 3), min_size=queries, max_size=queries)))
    return np.array(ranks, np.int16), relevant, relevant.sum(axis=1) + missed


@settings(max_examples=100, deadline=None)
@given(judged(), st.integers(1, 8))
def test_effectiveness_equals_the_naive_mean_over_views_and_orders_of_ties(
    case: tuple[Integers, Bools, Integers], k: int
) -> None:
    ranks, relevant, total = case
    results = (
        hit_rate(ranks, relevant, k),
        ndcg(ranks, relevant, total, k),
        ndcg_candidates(ranks, relevant, k),
    )
    for n, flags in enumerate(relevant.tolist()):
        if not any(flags):
            assert [result.reasons[n] for result in results] == ["no_relevant_candidate"] * 3
            continue
        naive: tuple[list[float], ...] = ([], [], [])
        for view in ranks[n].tolist():
            strict = orders_of_ties(view)
            for values, of_order in zip(
                naive,
                (
                    [naive_hit(order, flags, k) for order in strict],
                    [naive_ndcg(order, flags, int(total[n]), k) for order in strict],
                    [naive_ndcg(order, flags, sum(flags), k) for order in strict],
                ),
                strict=True,
            ):
                values.append(math.fsum(of_order) / len(strict))
        for result, expected in zip(results, naive, strict=True):
            assert result.values[n] == pytest.approx(math.fsum(expected) / len(expected), abs=1e-12)
            assert 0 <= result.values[n] <= 1


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 40), st.data())
def test_ranking_all_relevant_items_first_is_exactly_one(items: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, items))
    k = data.draw(st.integers(1, 45))
    ranks = np.arange(items, dtype=np.int16)[None, None]
    relevant = np.arange(items)[None] < count
    assert ndcg_candidates(ranks, relevant, k).values[0] == 1
    assert hit_rate(ranks, relevant, k).values[0] == 1


def test_positives_that_were_not_retrieved_lower_the_best_ndcg() -> None:
    ranks, relevant = np.array([[[0, 1, 2]]], np.int16), np.array([[True, False, False]])
    best = ndcg(ranks, relevant, np.array([2]), 5).values[0]
    assert best == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert ndcg_candidates(ranks, relevant, 5).values[0] == 1


def test_no_views_are_undefined() -> None:
    result = hit_rate(np.empty((1, 0, 3), np.int16), np.array([[True, False, False]]), 1)
    assert result.reasons == ("no_views",)


def test_wrong_judgements_are_refused() -> None:
    ranks, relevant = np.array([[[0, 1, 2]]], np.int16), np.array([[True, True, False]])
    with pytest.raises(ValueError, match="relevant_total"):
        ndcg(ranks, relevant, np.array([1]), 2)
    with pytest.raises(ValueError, match="booleans"):
        hit_rate(ranks, relevant.astype(int), 2)
    with pytest.raises(ValueError, match="booleans"):
        hit_rate(ranks, relevant[:, :2], 2)
    with pytest.raises(ValueError, match="at least 1"):
        hit_rate(ranks, relevant, 0)
    with pytest.raises(ValueError, match="number of items above"):
        ndcg_candidates(np.array([[[0, 0, 1]]], np.int16), relevant, 2)
    with pytest.raises(ValueError, match="0 … K-1"):
        hit_rate(np.array([[[1, 2, 3]]], np.int16), relevant, 2)


def test_a_list_without_candidates_has_nothing_to_find() -> None:
    assert hit_rate(np.empty((2, 3, 0), np.int16), np.empty((2, 0), bool), 1).reasons == (
        "no_relevant_candidate",
        "no_relevant_candidate",
    )


def test_ties_are_worth_what_their_random_order_is() -> None:
    # Three items share places 1 to 3 and one of them is relevant.
    ranks, relevant = np.array([[[0, 1, 1, 1]]], np.int16), np.array([[False, False, True, False]])
    assert [hit_rate(ranks, relevant, k).values[0] for k in (1, 2, 3, 4)] == pytest.approx(
        [0, 1 / 3, 2 / 3, 1]
    )
    expected = (1 / math.log2(3) + 1 / math.log2(4)) / 3
    assert ndcg_candidates(ranks, relevant, 3).values[0] == pytest.approx(expected)
