"""PPI, GPI, LOC and win counts against plain loops over views and pairs in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.metrics.arrays import Integers
from pytest_invari.metrics.cells import position_buckets
from pytest_invari.metrics.gpi import consensus, gpi
from pytest_invari.metrics.loc import loc
from pytest_invari.metrics.ppi import ppi, ppi_of_pairs
from pytest_invari.metrics.preference import preferences, tie_rate, wins

Views = list[list[int]]
HALF = Fraction(1, 2)


def above(view: list[int], i: int, j: int) -> Fraction:
    """1, 1/2 or 0: whether *view*, the ranks of the items, puts i above j."""
    return HALF if view[i] == view[j] else Fraction(int(view[i] < view[j]))


def naive_preference(ranks: Views, i: int, j: int) -> Fraction:
    return sum((above(view, i, j) for view in ranks), Fraction(0)) / len(ranks)


def naive_pair_instability(
    positions: Views, ranks: Views, i: int, j: int, buckets: int, least: int
) -> tuple[Fraction, int]:
    items = len(ranks[0])
    cells: dict[tuple[int, int], list[Fraction]] = {}
    for shown, view in zip(positions, ranks, strict=True):
        cell = tuple(min(shown[item] * buckets // items, buckets - 1) for item in (i, j))
        cells.setdefault((cell[0], cell[1]), []).append(above(view, i, j))
    shares = [sum(seen, Fraction(0)) / len(seen) for seen in cells.values() if len(seen) >= least]
    return (max(shares) - min(shares) if len(shares) > 1 else Fraction(0)), len(shares)


def naive_tau(first: list[int], second: list[int]) -> Fraction:
    pairs = list(combinations(range(len(first)), 2))
    agreeing = sum((2 * above(first, i, j) - 1) * (2 * above(second, i, j) - 1) for i, j in pairs)
    return Fraction(agreeing) / len(pairs)


def naive_loc(ranks: Views) -> Fraction:
    taus = [naive_tau(first, second) for first, second in combinations(ranks, 2)]
    return sum(taus, Fraction(0)) / len(taus)


def naive_disagreement(preference: dict[tuple[int, int], Fraction], order: list[int]) -> Fraction:
    return sum((preference[lower, upper] for upper, lower in combinations(order, 2)), Fraction(0))


def naive_swap_search(ranks: Views) -> tuple[list[int], list[int], int, Fraction]:
    """The order found, the order begun with, the number of swaps, and D of the order found."""
    items = range(len(ranks[0]))
    preference = {(i, j): naive_preference(ranks, i, j) for i in items for j in items if i != j}
    start = sorted(items, key=lambda i: (-sum(preference[i, j] for j in items if j != i), i))
    order, swaps = list(start), 0
    while True:
        now = naive_disagreement(preference, order)
        best, least = None, now
        for p, r in combinations(items, 2):
            trial = list(order)
            trial[p], trial[r] = trial[r], trial[p]
            after = naive_disagreement(preference, trial)
            if after < least:
                best, least = trial, after
        if best is None:
            return order, start, swaps, now
        order, swaps = best, swaps + 1


@st.composite
def observed(draw: st.DrawFn, *, ties: bool | None = None) -> tuple[Integers, Integers]:
    """Positions and ranks (N, M, K) of a few small queries, the ranks with or without ties."""
    queries = draw(st.integers(1, 3))
    views = draw(st.integers(2, 7))
    items = draw(st.integers(2, 6))
    rows = queries * views
    orders = st.permutations(range(items))
    tied = draw(st.booleans()) if ties is None else ties
    levels = st.lists(st.integers(0, 2), min_size=items, max_size=items)
    ranked = st.one_of(orders, levels.map(lambda given: [sum(o < g for o in given) for g in given]))
    shape = (queries, views, items)
    positions = draw(st.lists(orders, min_size=rows, max_size=rows))
    ranks = draw(st.lists(ranked if tied else orders, min_size=rows, max_size=rows))
    return np.array(positions, np.int16).reshape(shape), np.array(ranks, np.int16).reshape(shape)


def random_views(seed: int, queries: int, views: int, items: int, noise: float) -> tuple[Integers, Integers]:
    """Random inputs and rankings by a shared utility plus noise."""
    random = np.random.default_rng(seed)
    scores = random.normal(size=(queries, 1, items)) + noise * random.normal(size=(queries, views, items))
    ranks = np.argsort(np.argsort(-scores, axis=-1), axis=-1)
    positions = np.argsort(random.random((queries, views, items)), axis=-1)
    return positions.astype(np.int16), ranks.astype(np.int16)


def check_against_naive(positions: Integers, ranks: Integers, **options: Any) -> None:
    buckets, least = options.get("buckets", 3), options.get("min_observations", 1)
    queries, views, items = ranks.shape
    pairs = list(combinations(range(items), 2))
    counts, taus, ties = wins(ranks), loc(ranks).values, tie_rate(ranks).values
    result, dropping = (ppi(positions, ranks, single_cell=how, **options) for how in ("zero", "drop"))
    spread, cells = ppi_of_pairs(positions, ranks, **options)
    for n in range(queries):
        shown, view = positions[n].tolist(), ranks[n].tolist()
        expected = [naive_preference(view, i, j) for i, j in pairs]
        assert [Fraction(int(count), 2 * views) for count in counts[n]] == expected
        assert taus[n] == pytest.approx(float(naive_loc(view)), abs=1e-12)
        tied = sum(v[i] == v[j] for v in view for i, j in pairs)
        assert ties[n] == pytest.approx(tied / (views * len(pairs)), abs=1e-12)
        naive = [naive_pair_instability(shown, view, i, j, buckets, least) for i, j in pairs]
        assert spread[n] == pytest.approx([float(value) for value, _ in naive], abs=1e-12)
        assert cells[n].tolist() == [seen for _, seen in naive]
        total = sum((value for value, _ in naive), Fraction(0))
        enough = sum(seen > 1 for _, seen in naive)
        assert result.values[n] == pytest.approx(float(total / len(pairs)), abs=1e-12)
        assert result.cells_observed_mean[n] == pytest.approx(sum(s for _, s in naive) / len(pairs))
        assert result.single_cell_pairs[n] == len(pairs) - enough
        if enough:
            assert dropping.values[n] == pytest.approx(float(total / enough), abs=1e-12)
        else:
            assert dropping.reasons[n] == "no_pair_with_2_cells"


@settings(max_examples=60, deadline=None)
@given(observed(), st.integers(1, 7), st.integers(1, 3))
def test_counts_ppi_and_loc_equal_the_naive_ones(
    arrays: tuple[Integers, Integers], buckets: int, least: int
) -> None:
    check_against_naive(*arrays, buckets=buckets, min_observations=least)


@pytest.mark.parametrize("views", [8, 9, 16, 17, 32, 33, 64, 65, 130])
def test_views_fill_words_of_every_size(views: int) -> None:
    positions, ranks = random_views(views, 2, views, 4, noise=1.0)
    check_against_naive(positions, ranks)
    ranks[1, ::3, 2] = ranks[1, ::3, 0]
    check_against_naive(positions, ranks)


def test_more_buckets_than_a_byte_holds_are_told_apart() -> None:
    positions, ranks = random_views(1, 2, 6, 5, noise=1.0)
    check_against_naive(positions, ranks, buckets=1000)


def test_more_items_than_a_byte_holds_are_ranked() -> None:
    positions, ranks = random_views(3, 1, 3, 200, noise=1.0)
    view = ranks[0].tolist()
    assert loc(ranks).values[0] == pytest.approx(float(naive_loc(view)), abs=1e-12)
    naive = [
        naive_pair_instability(positions[0].tolist(), view, i, j, 3, 1)[0]
        for i, j in combinations(range(200), 2)
    ]
    assert ppi(positions, ranks).values[0] == pytest.approx(float(sum(naive)) / len(naive), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(observed())
def test_swap_search_equals_the_naive_one_step_for_step(arrays: tuple[Integers, Integers]) -> None:
    check_search(arrays[1])


@pytest.mark.parametrize("noise", [0.7, 30.0])
def test_swap_search_of_a_batch_equals_the_naive_one_for_longer_lists(noise: float) -> None:
    check_search(random_views(4, 6, 5, 9, noise)[1])


def test_swap_search_compares_integers_beyond_16_bits() -> None:
    random = np.random.default_rng(5)
    few = np.array([random.permutation(5) for _ in range(7)], np.int16)
    # Copies enough that neither a count of views nor a sum of margins fits: the same preferences.
    copies = 5000
    many = np.repeat(few, copies, axis=0)
    small, large = (consensus(wins(ranks[None]), len(ranks), 5) for ranks in (few, many))
    assert large.order.tolist() == small.order.tolist()
    assert large.swaps[0] == small.swaps[0]
    assert large.disagreement[0] == copies * small.disagreement[0]
    assert large.start_disagreement[0] == copies * small.start_disagreement[0]
    assert gpi(many[None]).values[0] == pytest.approx(gpi(few[None]).values[0])


def check_search(ranks: Integers) -> None:
    queries, views, items = ranks.shape
    found, result = consensus(wins(ranks), views, items), gpi(ranks)
    pairs = items * (items - 1) // 2
    for n in range(queries):
        order, start, swaps, disagreement = naive_swap_search(ranks[n].tolist())
        assert found.order[n].tolist() == order
        assert found.swaps[n] == swaps
        assert Fraction(int(found.disagreement[n]), 2 * views) == disagreement
        preference = {
            (i, j): naive_preference(ranks[n].tolist(), i, j)
            for i in range(items)
            for j in range(items)
            if i != j
        }
        begun = naive_disagreement(preference, start)
        assert Fraction(int(found.start_disagreement[n]), 2 * views) == begun
        assert result.values[n] == pytest.approx(float(disagreement / pairs), abs=1e-12)
        minority = sum((min(preference[i, j], preference[j, i]) for i, j in combinations(range(items), 2)))
        assert result.lower_bound[n] == pytest.approx(float(Fraction(minority) / pairs), abs=1e-12)


def test_equal_gains_take_the_lexicographically_first_swap() -> None:
    # From the order 2, 1, 3, 0 the swaps of places (1, 2) and (2, 3) help equally; the latter would end in
    # the order 2, 1, 0, 3 with the same disagreement.
    ranks = np.array([[[2, 0, 1, 3], [3, 2, 1, 0], [1, 3, 0, 2]]], np.int16)
    found = consensus(wins(ranks), 3, 4)
    assert found.order[0].tolist() == [2, 3, 1, 0]
    assert found.swaps[0] == 1


@pytest.mark.parametrize(
    ("shape", "reason"),
    [((2, 1, 3), "fewer_than_2_views"), ((2, 0, 3), "fewer_than_2_views"), ((2, 3, 1), "fewer_than_2_items")],
)
def test_too_few_views_or_items_are_undefined(shape: tuple[int, int, int], reason: str) -> None:
    ranks = np.broadcast_to(np.arange(shape[2], dtype=np.int16), shape)
    for result in (ppi(ranks, ranks), gpi(ranks), loc(ranks)):
        assert np.isnan(result.values).all()
        assert result.reasons == (reason, reason)
        assert np.isnan(result.mean)


def test_no_queries_give_empty_results() -> None:
    ranks = np.empty((0, 4, 5), np.int16)
    assert [len(result) for result in (ppi(ranks, ranks), gpi(ranks), loc(ranks), tie_rate(ranks))] == [0] * 4
    assert wins(ranks).shape == (0, 10)


def test_tie_rate_of_one_item_is_undefined() -> None:
    assert tie_rate(np.zeros((2, 3, 1), np.int16)).reasons == ("fewer_than_2_items",) * 2


def test_wrong_arguments_are_refused() -> None:
    positions, ranks = random_views(0, 1, 3, 4, 1.0)
    with pytest.raises(ValueError, match="differ in shape"):
        ppi(positions[:, :2], ranks)
    with pytest.raises(ValueError, match="queries, views, items"):
        loc(ranks[0])
    with pytest.raises(ValueError, match="at least 1"):
        ppi(positions, ranks, buckets=0)
    with pytest.raises(ValueError, match="'zero' or 'drop'"):
        ppi(positions, ranks, single_cell="one")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one view"):
        preferences(ranks[:, :0])
    with pytest.raises(ValueError, match="at least one view"):
        tie_rate(ranks[:, :0])


@pytest.mark.parametrize(("items", "sizes"), [(25, [9, 8, 8]), (50, [17, 17, 16]), (10, [4, 3, 3])])
def test_buckets_are_as_even_as_can_be(items: int, sizes: list[int]) -> None:
    assert np.bincount(position_buckets(items)).tolist() == sizes
