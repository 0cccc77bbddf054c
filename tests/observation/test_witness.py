"""The search for the smallest witness, against a naive search through all orders of all lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.observation.witness import LEAST_CALLS, Order, Witness, find_witness

ITEMS = tuple("abcdef")


def counting(rank: Callable[[Order], Order | None]) -> tuple[Callable[[Order], Order | None], list[Order]]:
    asked: list[Order] = []

    def counted(shown: Order) -> Order | None:
        asked.append(shown)
        return rank(shown)

    return counted, asked


def fewest(rank: Callable[[Order], Order | None], items: Sequence[str]) -> int:
    """The length of the shortest list whose orders are not all ranked alike; 0 if there is none."""
    for size in range(2, len(items) + 1):
        for some in combinations(items, size):
            if len({rank(order) for order in permutations(some)}) > 1:
                return size
    return 0


def by_table(seed: int, length: int) -> Callable[[Order], Order | None]:
    """Ranks by the alphabet, but lists of *length* or more whose first two items hash so the other way."""

    def rank(shown: Order) -> Order:
        turned = len(shown) >= length and (ord(shown[0]) * 7 + ord(shown[1]) * 3 + seed) % 3 == 0
        return tuple(sorted(shown, reverse=turned))

    return rank


def shows_a_flip(rank: Callable[[Order], Order | None], witness: Witness) -> None:
    assert tuple(map(rank, witness.orders)) == witness.rankings
    one, other = witness.rankings
    assert one.index(witness.preferred) < one.index(witness.other)
    assert other.index(witness.preferred) > other.index(witness.other)
    assert sorted(witness.orders[0]) == sorted(witness.orders[1])


def test_of_a_reranker_that_keeps_the_input_order_two_candidates_are_shown() -> None:
    found = find_witness(lambda shown: shown, ITEMS, ITEMS[::-1], 100)
    assert found is not None
    assert len(found.orders[0]) == found.moved == 2
    assert found.is_smallest
    shows_a_flip(lambda shown: shown, found)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 50), length=st.integers(2, 4), first=st.permutations(ITEMS[:5]))
def test_it_is_as_short_as_a_search_through_everything_finds(
    seed: int, length: int, first: list[str]
) -> None:
    rank = by_table(seed, length)
    other = next((order for order in permutations(first) if rank(order) != rank(tuple(first))), None)
    if other is None:
        return
    found = find_witness(rank, first, other, 10_000)
    assert found is not None
    shows_a_flip(rank, found)
    assert found.is_smallest
    assert len(found.orders[0]) == fewest(rank, first)
    assert found.moved == 2


def test_known_rankings_are_a_witness_without_any_call() -> None:
    rank, asked = counting(lambda shown: shown)
    known = {order: order for order in (ITEMS, ITEMS[::-1])}
    found = find_witness(rank, ITEMS, ITEMS[::-1], 0, known)
    assert found == Witness((ITEMS, ITEMS[::-1]), (ITEMS, ITEMS[::-1]), "a", "b", is_smallest=False, calls=0)
    assert not asked
    with pytest.raises(ValueError, match="at least 3 calls"):
        find_witness(rank, ITEMS, ITEMS[::-1], 0, {ITEMS: ITEMS})


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 50), length=st.integers(2, 6), calls=st.integers(LEAST_CALLS, 40))
def test_no_more_calls_are_made_than_allowed_and_what_is_found_is_a_witness(
    seed: int, length: int, calls: int
) -> None:
    rank, asked = counting(by_table(seed, length))
    other = next((order for order in permutations(ITEMS) if rank(order) != rank(ITEMS)), None)
    if other is None:
        return
    asked.clear()
    found = find_witness(rank, ITEMS, other, calls)
    assert found is not None
    assert found.calls == len(asked) <= calls
    shows_a_flip(rank, found)
    assert found == find_witness(rank, ITEMS, other, calls)


def test_where_not_all_can_be_tried_the_calls_that_are_left_go_to_the_nearest_lists() -> None:
    items = tuple(f"i{number:02}" for number in range(60))
    pairs: list[set[str]] = []

    def rank(shown: Order) -> Order:
        return shown if len(shown) > 3 or set(shown) in pairs else tuple(sorted(shown))

    found = find_witness(rank, items, items[::-1], 400)
    assert found is not None
    assert (len(found.orders[0]), found.is_smallest) == (4, False)
    # A pair that leaving out candidates one by one does not lead to, and one of 1,770.
    pair = {min(found.preferred, found.other), next(each for each in items if each not in found.orders[0])}
    pairs.append(pair)
    nearer = find_witness(rank, items, items[::-1], 400)
    assert nearer is not None
    assert (set(nearer.orders[0]), nearer.is_smallest) == (pair, True)
    shows_a_flip(rank, nearer)


def test_long_lists_take_no_time_beyond_the_calls() -> None:
    items = tuple(f"i{number:03}" for number in range(300))

    def rank(shown: Order) -> Order:
        return shown if len(shown) > 9 else tuple(sorted(shown))

    found = find_witness(rank, items, items[::-1], 500)
    assert found is not None
    assert len(found.orders[0]) == 10
    assert not found.is_smallest
    assert found.calls <= 500


def test_what_is_ranked_alike_has_no_witness() -> None:
    assert find_witness(lambda shown: tuple(sorted(shown)), ITEMS, ITEMS[::-1], 50) is None


def test_rankings_that_are_known_are_not_asked_for_but_to_see_whether_they_repeat() -> None:
    rank, asked = counting(lambda shown: shown)
    known = {ITEMS: ITEMS, ITEMS[::-1]: ITEMS[::-1]}
    assert find_witness(rank, ITEMS, ITEMS[::-1], 1000, known) is not None
    assert asked.count(ITEMS) == asked.count(ITEMS[::-1]) == 1


def test_a_ranking_that_does_not_repeat_is_noise_and_no_effect_of_order() -> None:
    turns = iter(range(1000))
    found = find_witness(lambda shown: shown if next(turns) % 2 else shown[::-1], ITEMS, ITEMS[::-1], 50)
    assert found is not None
    assert found.is_noise
    assert found.moved == 0
    assert found.rankings[0] != found.rankings[1]


def test_a_list_that_cannot_be_ranked_is_no_witness() -> None:
    def rank(shown: Order) -> Order | None:
        return None if len(shown) < 4 else shown

    found = find_witness(rank, ITEMS, ITEMS[::-1], 1000)
    assert found is not None
    assert len(found.orders[0]) == 4
    shows_a_flip(rank, found)


def test_too_few_calls_and_orders_of_other_items_are_refused() -> None:
    for arguments in ((ITEMS, ITEMS[::-1], LEAST_CALLS - 1), (ITEMS, ITEMS[1:], 50)):
        with pytest.raises(ValueError, match="at least 3 calls, and two orders of the same ids"):
            find_witness(lambda shown: shown, *arguments)
