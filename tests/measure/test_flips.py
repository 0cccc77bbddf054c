"""The two views of a query that are most alike and were ranked differently, against a naive search."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.measure.flips import Answers, moved
from pytest_invari.protocol import Candidate, Context
from pytest_invari.tasks.task import Task

ITEMS = tuple("abcd")
orders = st.permutations(ITEMS).map(tuple)
TASK = Task("q", Context("films"), tuple(Candidate(item, item) for item in ITEMS))


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(orders, st.sampled_from([ITEMS, ITEMS[::-1]]), max_size=6))
def test_the_nearest_flip_is_the_first_that_a_naive_search_finds(
    rankings: dict[tuple[str, ...], tuple[str, ...]],
) -> None:
    flips = [pair for pair in combinations(rankings, 2) if rankings[pair[0]] != rankings[pair[1]]]
    expected = min(flips, key=lambda pair: moved(*pair), default=None)
    assert Answers(TASK, rankings, {}, differ=bool(flips)).nearest == expected
