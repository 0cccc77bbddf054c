"""Candidate lists against the rules in plain Python: what is in them, and that the ranking orders them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.datasets.candidates import LEAST_CONTROLLED, controlled, untouched, with_a_positive

ITEMS = 30


@st.composite
def users(draw: st.DrawFn) -> tuple[list[int], list[int], list[bool], int]:
    """A user's unseen items, best first; the drawn positives among them; the head; and a list length."""
    ranked = draw(st.lists(st.integers(0, ITEMS - 1), unique=True, min_size=1))
    drawn = draw(st.lists(st.sampled_from(ranked), unique=True))
    head = draw(st.lists(st.booleans(), min_size=ITEMS, max_size=ITEMS))
    return ranked, drawn, head, draw(st.integers(LEAST_CONTROLLED, 12))


def controlled_in_words(ranked: list[int], drawn: list[int], head: list[bool], k: int) -> list[int] | None:
    heads = [item for item in drawn if head[item]]
    tails = [item for item in drawn if not head[item]]
    if not heads or not tails:
        return None
    by_hand = [heads[0], tails[0]] + [item for item in drawn if item not in (heads[0], tails[0])]
    by_hand = by_hand[: k // 2]
    members = by_hand + [item for item in ranked if item not in by_hand][: k - len(by_hand)]
    return sorted(members, key=ranked.index) if len(members) == k else None


@given(user=users())
@settings(deadline=None, max_examples=300)
def test_controlled_list_is_what_the_rule_says(user: tuple[list[int], list[int], list[bool], int]) -> None:
    ranked, drawn, head, k = user
    found = controlled(np.array(ranked), np.array(drawn, int), np.array(head), k)
    assert (None if found is None else found.tolist()) == controlled_in_words(ranked, drawn, head, k)


def test_controlled_list_in_an_example() -> None:
    ranked = np.array([9, 3, 8, 1, 7, 2, 6, 5, 4, 0])
    head = np.arange(10) < 5
    # 4 is the first of the head, 6 of the tail, 5 the next drawn; 0 finds no room; 9, 3 and 8 fill up.
    found = controlled(ranked, np.array([4, 6, 5, 0]), head, 6)
    assert found is not None
    assert found.tolist() == [9, 3, 8, 6, 5, 4]
    # A positive that the first stage finds itself is not left out: 9 is one here.
    found = controlled(ranked, np.array([4, 6, 5, 9]), head, 6)
    assert found is not None
    assert found.tolist() == [9, 3, 8, 6, 5, 4]


@pytest.mark.parametrize("drawn", [[], [0], [0, 1], [7], [7, 8]])
def test_no_controlled_list_without_positives_of_both(drawn: list[int]) -> None:
    assert controlled(np.arange(10), np.array(drawn, int), np.arange(10) < 5, 4) is None


def test_no_list_where_too_few_items_are_unseen() -> None:
    few = np.array([4, 0, 2])
    assert untouched(few, 4) is None
    assert with_a_positive(few, few, 4) is None
    assert controlled(few, np.array([0, 2]), np.arange(5) < 1, 4) is None


def test_untouched_list_is_kept_without_a_positive_and_the_usual_one_is_not() -> None:
    ranked = np.array([4, 0, 2, 1])
    top = untouched(ranked, 3)
    assert top is not None
    assert top.tolist() == [4, 0, 2]
    assert with_a_positive(ranked, np.array([1]), 3) is None
    found = with_a_positive(ranked, np.array([1, 2]), 3)
    assert found is not None
    assert found.tolist() == [4, 0, 2]
