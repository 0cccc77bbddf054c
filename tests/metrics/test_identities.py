"""What must hold between PPI, GPI and LOC, and what must not change them, on any observed rankings."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise, permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.metrics.arrays import Integers
from pytest_invari.metrics.gpi import gpi, gpi_exact
from pytest_invari.metrics.loc import loc
from pytest_invari.metrics.ppi import ppi, ppi_of_pairs
from pytest_invari.metrics.preference import preferences, wins

NEAR = 1e-12


@st.composite
def observed(
    draw: st.DrawFn, *, ties: bool = False, items: st.SearchStrategy[int] | None = None, most_views: int = 6
) -> tuple[Integers, Integers]:
    """Positions and ranks (1, M, K) of one small query."""
    views = draw(st.integers(2, most_views))
    size = draw(st.integers(2, 6) if items is None else items)
    orders = st.permutations(range(size))
    levels = st.lists(st.integers(0, 2), min_size=size, max_size=size)
    tied = levels.map(lambda given: [sum(other < each for other in given) for each in given])
    ranked = orders | tied if ties and draw(st.booleans()) else orders
    positions = draw(st.lists(orders, min_size=views, max_size=views))
    ranks = draw(st.lists(ranked, min_size=views, max_size=views))
    return np.array([positions], np.int16), np.array([ranks], np.int16)


def exact_gpi(ranks: Integers) -> float:
    """The least disagreement over all orders of one query's items, by trying each."""
    views, items = ranks.shape[1:]
    above = np.zeros((items, items), int)
    above[np.triu_indices(items, 1)] = wins(ranks)[0]
    above += np.tril(2 * views - above.T, -1)
    least = min(
        sum(above[lower, upper] for upper, lower in combinations(order, 2))
        for order in permutations(range(items))
    )
    return float(least / (views * items * (items - 1)))


def is_acyclic(ranks: Integers) -> bool:
    """Whether the strict majorities of one query fit into one order."""
    items = ranks.shape[2]
    shares = dict(zip(combinations(range(items), 2), preferences(ranks)[0], strict=True))
    beats = {(i, j) for (i, j), q in shares.items() if q > 0.5} | {
        (j, i) for (i, j), q in shares.items() if q < 0.5
    }
    left = set(range(items))
    while left:
        free = {i for i in left if not any((j, i) in beats for j in left)}
        if not free:
            return False
        left -= free
    return True


identity = settings(max_examples=50, deadline=None)


@identity
@given(observed())
def test_loc_is_a_function_of_the_preferences_alone(arrays: tuple[Integers, Integers]) -> None:
    ranks = arrays[1]
    views = ranks.shape[1]
    unanimity = np.mean((2 * preferences(ranks)[0] - 1) ** 2)
    assert loc(ranks).values[0] == pytest.approx((views * unanimity - 1) / (views - 1), abs=NEAR)


@identity
@given(observed())
def test_mean_disagreement_of_the_views_is_set_by_loc(arrays: tuple[Integers, Integers]) -> None:
    ranks = arrays[1]
    views = ranks.shape[1]
    shares, gap = preferences(ranks)[0], 1 - loc(ranks).values[0]
    first, second = np.triu_indices(ranks.shape[2], 1)
    above = ranks[0][:, first] < ranks[0][:, second]
    assert gap == pytest.approx(views / (views - 1) * np.mean(4 * shares * (1 - shares)), abs=NEAR)
    of_views = np.where(above, 1 - shares, shares).mean()
    assert of_views == pytest.approx(np.mean(2 * shares * (1 - shares)), abs=NEAR)
    assert of_views == pytest.approx((views - 1) / (2 * views) * gap, abs=NEAR)


@identity
@given(observed())
def test_loc_bounds_gpi_from_both_sides(arrays: tuple[Integers, Integers]) -> None:
    ranks = arrays[1]
    views = ranks.shape[1]
    gap = 1 - loc(ranks).values[0]
    result, exact = gpi(ranks), exact_gpi(ranks)
    ladder = [
        (views - 1) / (4 * views) * gap,
        result.lower_bound[0],
        exact,
        (views - 1) / (2 * views) * gap,
    ]
    assert all(low <= high + NEAR for low, high in pairwise(ladder))
    assert exact <= result.values[0] + NEAR


@pytest.mark.parametrize(("views", "items"), [(2, 20), (5, 12), (8, 20), (3, 30)])
def test_loc_bounds_exact_gpi_of_longer_lists(views: int, items: int) -> None:
    ranks = random_rankings(10, views, items)
    gap = 1 - loc(ranks).values
    exact = gpi_exact(ranks)
    ladder = [(views - 1) / (4 * views) * gap, exact.lower_bound, exact.values]
    ladder.append((views - 1) / (2 * views) * gap)
    assert all((low <= high + NEAR).all() for low, high in pairwise(ladder))
    if views == 2:
        assert exact.values == pytest.approx(gap / 4, abs=NEAR)
        assert exact.values.tolist() == gpi(ranks).values.tolist() == exact.lower_bound.tolist()


def test_exact_gpi_is_the_certificate_exactly_for_acyclic_majorities() -> None:
    # Few enough items that about half of the queries have a cycle.
    ranks = random_rankings(60, 5, 4)
    exact = gpi_exact(ranks)
    acyclic = [is_acyclic(ranks[n : n + 1]) for n in range(len(ranks))]
    assert (exact.values == exact.lower_bound).tolist() == acyclic
    assert {True, False} == set(acyclic)


def random_rankings(queries: int, views: int, items: int) -> Integers:
    random = np.random.default_rng(items)
    return np.argsort(random.random((queries, views, items)), axis=-1).astype(np.int16)


@identity
@given(observed(ties=True))
def test_values_lie_in_their_ranges(arrays: tuple[Integers, Integers]) -> None:
    positions, ranks = arrays
    views = ranks.shape[1]
    assert 0 <= ppi(positions, ranks).values[0] <= 1
    assert 0 <= gpi(ranks).lower_bound[0] <= gpi(ranks).values[0] <= 0.5
    assert -1 / (views - 1) - NEAR <= loc(ranks).values[0] <= 1


def test_gpi_of_a_local_optimum_is_at_most_a_half_for_long_lists() -> None:
    random = np.random.default_rng(0)
    ranks = np.argsort(random.random((200, 3, 20)), axis=-1).astype(np.int16)
    assert (gpi(ranks).values <= 0.5).all()


@identity
@given(observed(most_views=2))
def test_two_views_make_gpi_a_quarter_of_the_gap_in_loc(arrays: tuple[Integers, Integers]) -> None:
    ranks = arrays[1]
    found = gpi(ranks).values[0]
    assert found == pytest.approx((1 - loc(ranks).values[0]) / 4, abs=NEAR)
    assert found == pytest.approx(exact_gpi(ranks), abs=NEAR)


@identity
@given(observed(ties=True))
def test_certificate_is_reached_exactly_by_acyclic_majorities(arrays: tuple[Integers, Integers]) -> None:
    ranks = arrays[1]
    assert (abs(gpi(ranks).lower_bound[0] - exact_gpi(ranks)) <= NEAR) == is_acyclic(ranks)


@identity
@given(observed(ties=True))
def test_unanimous_pairs_have_no_instability(arrays: tuple[Integers, Integers]) -> None:
    positions, ranks = arrays
    shares, spread = preferences(ranks)[0], ppi_of_pairs(positions, ranks)[0][0]
    split = (shares > 0) & (shares < 1)
    assert not spread[~split].any()
    assert ppi(positions, ranks).values[0] <= split.mean() + NEAR


@identity
@given(observed(ties=True), st.integers(1, 3), st.integers(1, 3))
def test_merging_buckets_or_asking_for_more_views_never_raises_ppi(
    arrays: tuple[Integers, Integers], buckets: int, least: int
) -> None:
    fine = ppi_of_pairs(*arrays, 2 * buckets)[0]
    assert (ppi_of_pairs(*arrays, buckets)[0] <= fine + NEAR).all()
    some = ppi_of_pairs(*arrays, buckets, least)[0]
    assert (ppi_of_pairs(*arrays, buckets, least + 1)[0] <= some + NEAR).all()
    assert not ppi_of_pairs(*arrays, 1)[0].any()


@identity
@given(observed(ties=True))
def test_seeing_every_view_twice_changes_loc_alone(arrays: tuple[Integers, Integers]) -> None:
    positions, ranks = arrays
    twice = np.concatenate([ranks, ranks], axis=1)
    shown = np.concatenate([positions, positions], axis=1)
    assert preferences(twice).tolist() == preferences(ranks).tolist()
    assert ppi(shown, twice).values == pytest.approx(ppi(positions, ranks).values, abs=NEAR)
    assert gpi(twice).values.tolist() == pytest.approx(gpi(ranks).values.tolist(), abs=NEAR)


@identity
@given(observed())
def test_seeing_every_view_twice_moves_loc_as_computed(arrays: tuple[Integers, Integers]) -> None:
    ranks = arrays[1]
    views = ranks.shape[1]
    unanimity = np.mean((2 * preferences(ranks)[0] - 1) ** 2)
    doubled = loc(np.concatenate([ranks, ranks], axis=1)).values[0]
    assert doubled == pytest.approx((2 * views * unanimity - 1) / (2 * views - 1), abs=NEAR)


@identity
@given(observed())
def test_invariant_reranker_is_perfect(arrays: tuple[Integers, Integers]) -> None:
    positions, ranks = arrays
    same = np.broadcast_to(ranks[:, :1], ranks.shape)
    measured = (ppi(positions, same).values[0], gpi(same).values[0], loc(same).values[0])
    assert measured == (0, 0, 1)


@identity
@given(observed())
def test_reversing_every_output_changes_nothing(arrays: tuple[Integers, Integers]) -> None:
    positions, ranks = arrays
    reverse = (ranks.shape[2] - 1 - ranks).astype(np.int16)
    check_unchanged((positions, ranks), (positions, reverse), exact_gpi)


@identity
@given(observed(ties=True), st.randoms(use_true_random=False))
def test_the_order_of_the_views_is_irrelevant(arrays: tuple[Integers, Integers], random: Random) -> None:
    positions, ranks = arrays
    order = list(range(ranks.shape[1]))
    random.shuffle(order)
    check_unchanged(arrays, (positions[:, order], ranks[:, order]), lambda given: float(gpi(given).values[0]))


@identity
@given(observed(ties=True), st.randoms(use_true_random=False))
def test_the_names_of_the_items_are_irrelevant(arrays: tuple[Integers, Integers], random: Random) -> None:
    positions, ranks = arrays
    order = list(range(ranks.shape[2]))
    random.shuffle(order)
    check_unchanged(arrays, (positions[..., order], ranks[..., order]), exact_gpi)


@identity
@given(observed(ties=True, items=st.sampled_from([3, 6])))
def test_mirroring_the_inputs_is_irrelevant_for_buckets_of_one_size(
    arrays: tuple[Integers, Integers],
) -> None:
    positions, ranks = arrays
    mirrored = (ranks.shape[2] - 1 - positions).astype(np.int16)
    assert ppi(mirrored, ranks).values == pytest.approx(ppi(positions, ranks).values, abs=NEAR)


def test_a_batch_gives_each_query_what_it_gets_alone() -> None:
    random = np.random.default_rng(0)
    # More queries than one chunk of any kernel holds.
    positions, ranks = (np.argsort(random.random((600, 20, 15)), axis=-1).astype(np.int16) for _ in range(2))
    whole = {"ppi": ppi(positions, ranks), "gpi": gpi(ranks), "loc": loc(ranks)}
    for n in range(0, 600, 7):
        one = slice(n, n + 1)
        alone = {"ppi": ppi(positions[one], ranks[one]), "gpi": gpi(ranks[one]), "loc": loc(ranks[one])}
        for name, result in whole.items():
            assert result.values[n] == alone[name].values[0]


def check_unchanged(
    before: tuple[Integers, Integers],
    after: tuple[Integers, Integers],
    inconsistency: Callable[[Integers], float],
) -> None:
    assert ppi(*after).values == pytest.approx(ppi(*before).values, abs=NEAR)
    assert loc(after[1]).values == pytest.approx(loc(before[1]).values, abs=NEAR)
    assert inconsistency(after[1]) == pytest.approx(inconsistency(before[1]), abs=NEAR)
