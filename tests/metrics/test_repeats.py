"""Repeats of one view: the share of item pairs that are not ordered alike."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.metrics.arrays import Integers
from pytest_invari.metrics.loc import loc
from pytest_invari.metrics.repeats import repeat_difference


def naive_difference(ranks: list[list[int]]) -> Fraction:
    differing = [
        (a[i] > a[j]) - (a[i] < a[j]) != (b[i] > b[j]) - (b[i] < b[j])
        for a, b in combinations(ranks, 2)
        for i, j in combinations(range(len(a)), 2)
    ]
    return Fraction(sum(differing), len(differing))


@st.composite
def repeated(draw: st.DrawFn) -> Integers:
    queries, repeats, items = draw(st.integers(1, 3)), draw(st.integers(2, 5)), draw(st.integers(2, 6))
    levels = st.lists(st.integers(0, 3), min_size=items, max_size=items)
    tied = levels.map(lambda given: [sum(other < each for other in given) for each in given])
    rows = queries * repeats
    ranks = draw(st.lists(tied | st.permutations(range(items)), min_size=rows, max_size=rows))
    return np.array(ranks, np.int16).reshape(queries, repeats, items)


@settings(max_examples=60, deadline=None)
@given(repeated())
def test_difference_equals_the_naive_one(ranks: Integers) -> None:
    expected = [float(naive_difference(query)) for query in ranks.tolist()]
    assert repeat_difference(ranks).values.tolist() == pytest.approx(expected, rel=0, abs=1e-12)


def test_without_ties_it_is_half_the_gap_in_loc() -> None:
    ranks = np.random.default_rng(0).random((4, 5, 9)).argsort(axis=-1).astype(np.int16)
    gap = (1 - loc(ranks).values) / 2
    assert repeat_difference(ranks).values.tolist() == pytest.approx(gap.tolist(), rel=0, abs=1e-12)


def test_the_same_answer_with_ties_does_not_differ() -> None:
    ranks = np.tile(np.array([0, 0, 2, 3], np.int16), (1, 3, 1))
    assert repeat_difference(ranks).values[0] == 0
    assert loc(ranks).values[0] < 1


@pytest.mark.parametrize(
    ("shape", "reason"), [((2, 1, 3), "fewer_than_2_views"), ((2, 3, 1), "fewer_than_2_items")]
)
def test_too_few_repeats_or_items_are_undefined(shape: tuple[int, int, int], reason: str) -> None:
    assert repeat_difference(np.zeros(shape, np.int16)).reasons == (reason, reason)
