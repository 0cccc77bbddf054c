"""Pairing inputs with outputs anew: every way where there are few, and p-values that keep their promise."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from pytest_invari.metrics.arrays import Integers, PerQuery
from pytest_invari.metrics.bucket_agreement import bucket_agreement_gap
from pytest_invari.metrics.ppi import ppi
from pytest_invari.statistics.pairings import mean_over_pairings, pairing_p_value


def random_orders(seed: int, *shape: int) -> Integers:
    return np.random.default_rng(seed).random(shape).argsort(axis=-1).astype(np.int16)


def at_head(positions: Integers, ranks: Integers) -> PerQuery:
    """The share of views whose first item shown is ranked first."""
    first = positions.argmin(axis=2) == ranks.argmin(axis=2)
    return PerQuery.of(first.mean(axis=1))


def test_all_permutations_of_few_views_are_averaged() -> None:
    positions, ranks = random_orders(0, 4, 3, 6), random_orders(1, 4, 3, 6)
    expected = np.mean([ppi(positions[:, list(order)], ranks).values for order in permutations(range(3))], 0)
    for pairings in (6, 20):
        found = mean_over_pairings(positions, ranks, ppi, "any", pairings)
        assert found.values.tolist() == pytest.approx(expected.tolist(), abs=1e-12)


def test_random_permutations_are_of_each_query_and_seeded() -> None:
    positions = np.tile(random_orders(0, 1, 8, 6), (50, 1, 1))
    ranks = np.tile(random_orders(1, 1, 8, 6), (50, 1, 1))
    found = mean_over_pairings(positions, ranks, ppi, "a", 5).values
    assert found.tolist() == mean_over_pairings(positions, ranks, ppi, "a", 5).values.tolist()
    assert found.tolist() != mean_over_pairings(positions, ranks, ppi, "b", 5).values.tolist()
    # Fifty copies of one query, each with permutations of its own.
    assert len(set(found.tolist())) > 25


def test_permutations_are_the_same_on_every_machine() -> None:
    places = np.arange(8, dtype=np.int16)[None, :, None]
    seen: list[list[int]] = []

    def keep(positions: Integers, ranks: Integers) -> PerQuery:
        seen.append(positions[0, :, 0].tolist())
        return PerQuery.of(np.zeros(1))

    mean_over_pairings(places, places, keep, "pinned", 2)
    assert seen == [[2, 1, 4, 3, 6, 5, 0, 7], [2, 0, 1, 7, 6, 4, 5, 3]]


def test_every_permutation_is_as_likely() -> None:
    views, queries = 4, 24_000
    places = np.broadcast_to(np.arange(views, dtype=np.int16)[None, :, None], (queries, views, 1))
    counts = np.zeros(views**views)

    def count(positions: Integers, ranks: Integers) -> PerQuery:
        np.add.at(counts, positions[:, :, 0] @ views ** np.arange(views), 1)
        return PerQuery.of(np.zeros(queries))

    mean_over_pairings(places, places, count, "x", 1)
    found = counts[counts > 0]
    assert len(found) == 24
    # Chi-squared with 23 degrees of freedom: 99.9 % is 49.7.
    assert ((found - 1000) ** 2 / 1000).sum() < 49.7


def test_a_mean_is_undefined_where_a_pairing_is() -> None:
    def choosy(positions: Integers, ranks: Integers) -> PerQuery:
        return PerQuery.of(np.ones(2), positions[:, 0, 0] == 1, "odd")

    places = np.array([[[0], [1]], [[0], [0]]], np.int16)
    found = mean_over_pairings(places, places, choosy, "x")
    assert found.reasons == ("odd", None)


def test_p_value_of_a_few_queries_counts_every_pairing() -> None:
    positions, ranks = random_orders(2, 2, 3, 5), random_orders(3, 2, 3, 5)
    observed = at_head(positions, ranks).mean
    orders = [list(order) for order in permutations(range(3))]
    every = [
        np.mean(
            [at_head(positions[n : n + 1, order], ranks[n : n + 1]).mean for n, order in enumerate(chosen)]
        )
        for chosen in product(orders, repeat=2)
    ]
    expected = np.mean([value >= observed - 1e-12 for value in every])
    assert pairing_p_value([(positions, ranks)], at_head, "x", 35) == expected
    # As many queries in blocks of one.
    blocks = [(positions[n : n + 1], ranks[n : n + 1]) for n in range(2)]
    assert pairing_p_value(blocks, at_head, "x", 35) == expected


@pytest.mark.parametrize("statistic", [ppi, bucket_agreement_gap, at_head])
def test_an_echo_has_the_least_p_value_that_the_pairings_allow(statistic: object) -> None:
    blocks = [(shown := random_orders(views, 4, views, 9), shown) for views in (8, 10)]
    assert pairing_p_value(blocks, statistic, "x", 39) == 1 / 40  # type: ignore[arg-type]


@pytest.mark.parametrize("statistic", [ppi, bucket_agreement_gap])
def test_rejections_without_an_effect_are_as_rare_as_promised(statistic: object) -> None:
    data_sets, views, items = 200, 6, 6
    positions, ranks = (
        random_orders(4, data_sets, 3, views, items),
        random_orders(5, data_sets, 3, views, items),
    )
    p_values = [
        pairing_p_value([(shown, ranked)], statistic, f"set {n}", 9)  # type: ignore[arg-type]
        for n, (shown, ranked) in enumerate(zip(positions, ranks, strict=True))
    ]
    # Each of 0.1, 0.2, … is as likely; 200 times 0.2 is 40 with a standard deviation of 5.7.
    assert 20 < sum(p <= 0.2 + 1e-9 for p in p_values) < 60


def test_nothing_measured_has_no_p_value_and_no_pairings_are_refused() -> None:
    ranks = random_orders(0, 2, 1, 5)
    assert np.isnan(pairing_p_value([(ranks, ranks)], ppi, "x"))
    assert np.isnan(pairing_p_value([], ppi, "x"))
    with pytest.raises(ValueError, match="pairings must be at least 1"):
        pairing_p_value([(ranks, ranks)], ppi, "x", 0)
    with pytest.raises(ValueError, match="pairings must be at least 1"):
        mean_over_pairings(ranks, ranks, ppi, "x", 0)
