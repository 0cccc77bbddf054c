"""Split PPI against plain loops in exact fractions, and what must not change it."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.metrics.arrays import Integers
from pytest_invari.metrics.split_instability import ppi_split

Views = list[list[int]]
Arrays = tuple[Integers, Integers]
Cell = tuple[int, int]


def shares_of_cells(
    positions: Views, ranks: Views, i: int, j: int, buckets: int, least: int
) -> dict[Cell, Fraction]:
    items = len(ranks[0])
    seen: dict[Cell, list[Fraction]] = {}
    for shown, view in zip(positions, ranks, strict=True):
        bucket_of_i, bucket_of_j = (min(shown[item] * buckets // items, buckets - 1) for item in (i, j))
        win = Fraction(1, 2) if view[i] == view[j] else Fraction(int(view[i] < view[j]))
        seen.setdefault((bucket_of_i, bucket_of_j), []).append(win)
    return {cell: sum(wins, Fraction(0)) / len(wins) for cell, wins in seen.items() if len(wins) >= least}


def mean_over(cells: list[Cell], shares: dict[Cell, Fraction]) -> Fraction:
    return sum((shares[cell] for cell in cells), Fraction(0)) / len(cells)


def naive_split(positions: Views, ranks: Views, buckets: int, least: int) -> Fraction | None:
    """The value of one query; None where no item pair has two cells in both halves."""
    values = []
    for i, j in combinations(range(len(ranks[0])), 2):
        halves = [
            shares_of_cells(positions[half::2], ranks[half::2], i, j, buckets, least) for half in (0, 1)
        ]
        shared = sorted(set(halves[0]) & set(halves[1]))
        if len(shared) < 2:
            continue
        spreads = []
        for choosing, measuring in (halves, halves[::-1]):
            chosen = [choosing[cell] for cell in shared]
            top = [cell for cell in shared if choosing[cell] == max(chosen)]
            bottom = [cell for cell in shared if choosing[cell] == min(chosen)]
            spreads.append(mean_over(top, measuring) - mean_over(bottom, measuring))
        values.append(sum(spreads, Fraction(0)) / 2)
    return sum(values, Fraction(0)) / len(values) if values else None


@st.composite
def observed(draw: st.DrawFn) -> Arrays:
    """Positions and ranks (N, M, K) of a few small queries, the ranks with or without ties."""
    queries, views, items = draw(st.integers(1, 2)), draw(st.integers(4, 11)), draw(st.integers(2, 5))
    orders = st.permutations(range(items))
    levels = st.lists(st.integers(0, 2), min_size=items, max_size=items)
    tied = levels.map(lambda given: [sum(other < each for other in given) for each in given])
    rows, shape = queries * views, (queries, views, items)
    positions = draw(st.lists(orders, min_size=rows, max_size=rows))
    ranks = draw(st.lists(orders | tied if draw(st.booleans()) else orders, min_size=rows, max_size=rows))
    return np.array(positions, np.int16).reshape(shape), np.array(ranks, np.int16).reshape(shape)


def random_orders(seed: int, *shape: int) -> Integers:
    return np.random.default_rng(seed).random(shape).argsort(axis=-1).astype(np.int16)


def check_against_naive(positions: Integers, ranks: Integers, buckets: int, least: int) -> None:
    found = ppi_split(positions, ranks, buckets, least)
    for n in range(len(ranks)):
        expected = naive_split(positions[n].tolist(), ranks[n].tolist(), buckets, least)
        if expected is None:
            assert found.reasons[n] == "no_pair_with_2_cells"
        else:
            assert found.values[n] == pytest.approx(float(expected), rel=0, abs=1e-12)


@settings(max_examples=80, deadline=None)
@given(observed(), st.integers(1, 5), st.integers(1, 2))
def test_split_equals_the_naive_one(arrays: Arrays, buckets: int, least: int) -> None:
    check_against_naive(*arrays, buckets, least)


@pytest.mark.parametrize("views", [20, 65, 131])
def test_split_of_many_views_equals_the_naive_one(views: int) -> None:
    positions, ranks = random_orders(views, 2, views, 6), random_orders(views + 1, 2, views, 6)
    ranks[1, ::3, 2] = ranks[1, ::3, 0]
    check_against_naive(positions, ranks, 3, 2)


@settings(max_examples=40, deadline=None)
@given(observed(), st.randoms(use_true_random=False))
def test_neither_names_nor_the_direction_nor_the_first_half_matter(arrays: Arrays, random: Random) -> None:
    positions, ranks = arrays
    items = list(range(ranks.shape[2]))
    random.shuffle(items)
    expected = ppi_split(positions, ranks).values.tolist()
    # Views 1, 0, 3, 2, …: what were the even places are the odd ones.
    even = ranks.shape[1] // 2 * 2
    swapped = np.arange(even) ^ 1
    whole = ppi_split(positions[:, :even], ranks[:, :even]).values.tolist()
    for found, wanted in (
        (ppi_split(positions[..., items], ranks[..., items]), expected),
        (ppi_split(positions, ranks.shape[2] - 1 - ranks), expected),
        (ppi_split(positions[:, swapped], ranks[:, swapped]), whole),
    ):
        assert found.values.tolist() == pytest.approx(wanted, nan_ok=True, rel=0, abs=1e-12)


def test_an_invariant_reranker_has_0_and_an_echo_1() -> None:
    positions = random_orders(0, 3, 400, 6)
    invariant = np.broadcast_to(random_orders(1, 3, 1, 6), positions.shape)
    assert ppi_split(positions, invariant).values.tolist() == [0, 0, 0]
    # With a bucket for each position, an echo prefers the item shown first in every cell.
    assert ppi_split(positions, positions, buckets=6).values.tolist() == [1, 1, 1]


def test_a_batch_gives_each_query_what_it_gets_alone() -> None:
    positions, ranks = random_orders(0, 300, 20, 15), random_orders(1, 300, 20, 15)
    whole = ppi_split(positions, ranks).values
    for n in range(0, 300, 7):
        assert ppi_split(positions[n : n + 1], ranks[n : n + 1]).values[0] == whole[n]


@pytest.mark.parametrize(
    ("shape", "reason"), [((2, 3, 5), "fewer_than_4_views"), ((2, 4, 1), "fewer_than_2_items")]
)
def test_too_few_views_or_items_are_undefined(shape: tuple[int, int, int], reason: str) -> None:
    ranks = np.zeros(shape, np.int16)
    assert ppi_split(ranks, ranks).reasons == (reason, reason)


def test_no_queries_give_an_empty_result_and_nonsense_is_refused() -> None:
    none, one = np.zeros((0, 4, 5), np.int16), np.zeros((1, 4, 5), np.int16)
    assert len(ppi_split(none, none)) == 0
    for buckets, least in ((0, 1), (3, 0)):
        with pytest.raises(ValueError, match="at least 1"):
            ppi_split(one, one, buckets, least)
