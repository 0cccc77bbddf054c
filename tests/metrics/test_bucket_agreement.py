"""BAG against plain loops over pairs of views in exact fractions, and what must not change it."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.metrics.arrays import Integers
from pytest_invari.metrics.bucket_agreement import bucket_agreement_gap, bucket_agreement_gaps

Views = list[list[int]]
Arrays = tuple[Integers, Integers]


def naive_gap(positions: Views, ranks: Views, buckets: int) -> Fraction | str:
    """The gap of one query, or the reason why it has none."""
    items = len(ranks[0])
    agreeing = {True: Fraction(0), False: Fraction(0)}
    compared = {True: 0, False: 0}
    for i, j in combinations(range(items), 2):
        for s, t in combinations(range(len(ranks)), 2):
            cells = [
                [min(positions[v][item] * buckets // items, buckets - 1) for item in (i, j)] for v in (s, t)
            ]
            one_cell = cells[0] == cells[1]
            tied = ranks[s][i] == ranks[s][j] or ranks[t][i] == ranks[t][j]
            alike = (ranks[s][i] < ranks[s][j]) == (ranks[t][i] < ranks[t][j])
            agreeing[one_cell] += Fraction(1, 2) if tied else Fraction(int(alike))
            compared[one_cell] += 1
    if not compared[True]:
        return "no_views_in_one_cell"
    if not compared[False]:
        return "no_views_in_different_cells"
    return agreeing[True] / compared[True] - agreeing[False] / compared[False]


def check_against_naive(positions: Integers, ranks: Integers, buckets: int) -> None:
    found = bucket_agreement_gap(positions, ranks, buckets)
    for n in range(len(ranks)):
        expected = naive_gap(positions[n].tolist(), ranks[n].tolist(), buckets)
        if isinstance(expected, str):
            assert found.reasons[n] == expected
        else:
            assert found.values[n] == pytest.approx(float(expected), rel=0, abs=1e-15)


@st.composite
def observed(draw: st.DrawFn) -> Arrays:
    """Positions and ranks (N, M, K) of a few small queries, the ranks with or without ties."""
    queries, views, items = draw(st.integers(1, 3)), draw(st.integers(2, 7)), draw(st.integers(2, 6))
    orders = st.permutations(range(items))
    levels = st.lists(st.integers(0, 2), min_size=items, max_size=items)
    tied = levels.map(lambda given: [sum(other < each for other in given) for each in given])
    rows, shape = queries * views, (queries, views, items)
    positions = draw(st.lists(orders, min_size=rows, max_size=rows))
    ranks = draw(st.lists(orders | tied if draw(st.booleans()) else orders, min_size=rows, max_size=rows))
    return np.array(positions, np.int16).reshape(shape), np.array(ranks, np.int16).reshape(shape)


def random_orders(seed: int, *shape: int) -> Integers:
    return np.random.default_rng(seed).random(shape).argsort(axis=-1).astype(np.int16)


@settings(max_examples=80, deadline=None)
@given(observed(), st.integers(1, 7))
def test_gap_equals_the_naive_one(arrays: Arrays, buckets: int) -> None:
    check_against_naive(*arrays, buckets)


@pytest.mark.parametrize("views", [8, 17, 32, 64, 65, 130])
def test_views_fill_words_of_every_size(views: int) -> None:
    positions, ranks = random_orders(views, 2, views, 5), random_orders(views + 1, 2, views, 5)
    ranks[1, ::3, 2] = ranks[1, ::3, 0]
    check_against_naive(positions, ranks, 3)


def test_counts_of_very_many_views_do_not_overflow() -> None:
    # Half of the 46,400 views show the two items each way round, and the first shown always wins.
    positions = np.zeros((1, 46_400, 2), np.int16)
    positions[0, ::2, 1] = positions[0, 1::2, 0] = 1
    assert bucket_agreement_gap(positions, positions, 2).values[0] == 1


@settings(max_examples=40, deadline=None)
@given(observed(), st.randoms(use_true_random=False))
def test_neither_names_nor_view_order_nor_direction_matter(arrays: Arrays, random: object) -> None:
    positions, ranks = arrays
    expected = bucket_agreement_gap(positions, ranks).values
    items, views = np.arange(ranks.shape[2]), np.arange(ranks.shape[1])
    random.shuffle(items)  # type: ignore[attr-defined]
    random.shuffle(views)  # type: ignore[attr-defined]
    renamed = bucket_agreement_gap(positions[..., items], ranks[..., items]).values
    reordered = bucket_agreement_gap(positions[:, views], ranks[:, views]).values
    # Reversed ranks may leave gaps below ties, which a comparison does not see.
    reversed_ = bucket_agreement_gap(positions, -ranks + ranks.shape[2] - 1).values
    for values in (renamed, reordered, reversed_):
        assert values.tolist() == pytest.approx(expected.tolist(), nan_ok=True, rel=0, abs=1e-15)


def test_a_reranker_that_ignores_its_input_or_ties_everything_has_no_gap() -> None:
    positions = random_orders(0, 3, 10, 7)
    invariant = np.broadcast_to(random_orders(1, 3, 1, 7), positions.shape)
    for ranks in (invariant, np.zeros_like(positions)):
        assert bucket_agreement_gap(positions, ranks).values.tolist() == [0, 0, 0]


def test_a_batch_gives_each_query_what_it_gets_alone() -> None:
    positions, ranks = random_orders(0, 600, 20, 15), random_orders(1, 600, 20, 15)
    whole = bucket_agreement_gap(positions, ranks).values
    for n in range(0, 600, 7):
        assert bucket_agreement_gap(positions[n : n + 1], ranks[n : n + 1]).values[0] == whole[n]


@pytest.mark.parametrize(
    ("shape", "reason"), [((2, 1, 3), "fewer_than_2_views"), ((2, 3, 1), "fewer_than_2_items")]
)
def test_too_few_views_or_items_are_undefined(shape: tuple[int, int, int], reason: str) -> None:
    ranks = np.zeros(shape, np.int16)
    assert bucket_agreement_gap(ranks, ranks).reasons == (reason, reason)


def test_no_queries_give_an_empty_result_and_no_buckets_are_refused() -> None:
    none, one = np.zeros((0, 4, 5), np.int16), np.zeros((1, 4, 5), np.int16)
    assert len(bucket_agreement_gap(none, none)) == 0
    with pytest.raises(ValueError, match="at least 1"):
        bucket_agreement_gap(one, one, buckets=0)


@pytest.mark.parametrize(
    ("views", "items", "tied"),
    [
        (2, 2, False),
        (2, 5, True),
        (3, 9, False),
        (6, 7, True),
        (16, 12, False),
        (17, 12, True),
        (1, 5, False),
    ],
)
def test_many_pairings_at_once_are_what_each_is_alone(views: int, items: int, tied: bool) -> None:
    random = np.random.default_rng(views * items)
    positions, ranks = random.random((2, 40, views, items)).argsort(axis=-1).astype(np.int16)
    ranks = ranks // 2 if tied else ranks
    positions[0] = positions[0, :1]
    orders = random.random((9, 40, views)).argsort(axis=-1)
    found = bucket_agreement_gaps(positions, ranks, orders)
    each = np.arange(40)[:, None]
    alone = [bucket_agreement_gap(positions[each, order], ranks).values for order in orders]
    assert found.shape == (9, 40)
    np.testing.assert_allclose(found, alone, atol=1e-12)
    assert np.isnan(found[:, 0]).all()
    assert np.isnan(found).all() == (views < 2 or items < 3)
