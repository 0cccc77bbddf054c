"""The table null of PPI against exact enumeration, closed sums and published figures."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.metrics.arrays import Integers
from pytest_invari.metrics.nulls import ppi_excess, ppi_null
from pytest_invari.metrics.ppi import ppi

GOLDEN = Path(__file__).parents[1] / "golden"
# The largest error of an entry that is drawn: about four standard errors.
DRAWN = 0.005


def random_orders(seed: int, *shape: int) -> Integers:
    return np.random.default_rng(seed).random(shape).argsort(axis=-1).astype(np.int16)


def nulls_of_pair(
    outcomes: list[tuple[int, int]], views: int, items: int, buckets: int = 3, least: int = 1
) -> list[float]:
    """What one pair adds that so many views rank one way and so many not at all; no other pair changes."""
    ranks = np.tile(np.arange(items, dtype=np.int16), (len(outcomes), views, 1))
    for n, (above, tied) in enumerate(outcomes):
        ranks[n, above:, :2] = [1, 0]
        ranks[n, above : above + tied, :2] = 0
    found = ppi_null(ranks, buckets, least).values * items * (items - 1) / 2
    return [float(value) for value in found]


def table(views: int, items: int) -> list[float]:
    """T[0] … T[M], by how many of the M views rank a pair one way."""
    return nulls_of_pair([(wins, 0) for wins in range(views + 1)], views, items)


def enumerated(outcomes: list[Fraction], items: int, buckets: int, least: int) -> Fraction:
    """The expected PPI of one item pair over all positions that each view could have shown it in."""
    bucket = [min(place * buckets // items, buckets - 1) for place in range(items)]
    cells = [(bucket[p], bucket[q]) for p in range(items) for q in range(items) if p != q]
    total = Fraction(0)
    for chosen in product(cells, repeat=len(outcomes)):
        wins: dict[tuple[int, int], list[Fraction]] = {}
        for cell, outcome in zip(chosen, outcomes, strict=True):
            wins.setdefault(cell, []).append(outcome)
        shares = [sum(seen, Fraction(0)) / len(seen) for seen in wins.values() if len(seen) >= least]
        total += max(shares) - min(shares) if len(shares) > 1 else 0
    return total / Fraction(len(cells)) ** len(outcomes)


def test_golden_table_is_exact() -> None:
    golden = json.loads((GOLDEN / "g25_null_table_exact.json").read_text(encoding="utf-8"))
    assert golden["inputs"]["B"] == 3
    exact = [float(Fraction(value)) for value in golden["exact"]["T"]]
    assert table(golden["inputs"]["M"], golden["inputs"]["K"]) == pytest.approx(exact, rel=0, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 4), st.integers(2, 4), st.integers(1, 4), st.integers(1, 2), st.data())
def test_few_views_are_enumerated(
    views: int, items: int, buckets: int, least: int, data: st.DataObject
) -> None:
    above = data.draw(st.integers(0, views))
    tied = data.draw(st.integers(0, views - above))
    outcomes = [Fraction(1)] * above + [Fraction(1, 2)] * tied + [Fraction(0)] * (views - above - tied)
    expected = float(enumerated(outcomes, items, buckets, least))
    (found,) = nulls_of_pair([(above, tied)], views, items, buckets, least)
    assert found == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize("tied", [0, 3])
def test_two_items_in_many_views_agree_with_the_closed_sum(tied: int) -> None:
    # Two cells, each as likely; h wins, t ties and l losses fall into the first one.
    views = 20
    drawn = nulls_of_pair([(wins, tied) for wins in range(views - tied + 1)], views, 2)
    for wins, found in enumerate(drawn):
        losses = views - tied - wins
        expected = Fraction(0)
        for h, t, l in product(range(wins + 1), range(tied + 1), range(losses + 1)):  # noqa: E741
            first, second = h + t + l, views - h - t - l
            if first and second:
                ways = math.comb(wins, h) * math.comb(tied, t) * math.comb(losses, l)
                doubled = Fraction(2 * h + t, first) - Fraction(2 * (wins - h) + tied - t, second)
                expected += ways * abs(doubled) / 2
        assert found == pytest.approx(float(expected / 2**views), rel=0, abs=DRAWN)


def test_table_of_20_views_has_the_published_shape() -> None:
    drawn = table(20, 25)
    published = [0, 0.405, 0.544, 0.649, 0.733, 0.804, 0.859, 0.904, 0.938, 0.958, 0.965]
    # These were drawn as well, sixteen times fewer.
    assert drawn[:11] == pytest.approx(published, rel=0, abs=0.012)
    assert drawn == drawn[::-1]
    assert drawn[0] == 0
    assert drawn[:11] == sorted(drawn[:11])


def test_table_is_the_same_on_every_machine() -> None:
    assert table(6, 10)[1:3] == pytest.approx([0.7492032368977863, 0.9258847554524741], rel=0, abs=1e-12)


def test_null_is_the_mean_of_the_pairs_in_any_batch() -> None:
    ranks = random_orders(0, 600, 20, 15)
    whole = ppi_null(ranks).values
    pairs = table(20, 15)
    for n in range(0, 600, 97):
        assert ppi_null(ranks[n : n + 1]).values[0] == whole[n]
        wins = [sum(view[i] < view[j] for view in ranks[n].tolist()) for i, j in combinations(range(15), 2)]
        assert whole[n] == pytest.approx(math.fsum(pairs[w] for w in wins) / len(wins), rel=0, abs=1e-12)


def test_excess_is_ppi_less_its_null() -> None:
    positions, ranks = random_orders(0, 5, 9, 6), random_orders(1, 5, 9, 6)
    for buckets, least in ((3, 1), (2, 1), (3, 2)):
        expected = ppi(positions, ranks, buckets, least).values - ppi_null(ranks, buckets, least).values
        assert ppi_excess(positions, ranks, buckets, least).values.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("shape", "reason"), [((2, 1, 3), "fewer_than_2_views"), ((2, 3, 1), "fewer_than_2_items")]
)
def test_too_few_views_or_items_are_undefined(shape: tuple[int, int, int], reason: str) -> None:
    ranks = np.zeros(shape, np.int16)
    assert ppi_null(ranks).reasons == ppi_excess(ranks, ranks).reasons == (reason, reason)


def test_no_queries_give_an_empty_result_and_nonsense_is_refused() -> None:
    assert len(ppi_null(np.zeros((0, 4, 5), np.int16))) == 0
    for options in ({"buckets": 0}, {"min_observations": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            ppi_null(np.zeros((1, 4, 5), np.int16), **options)
