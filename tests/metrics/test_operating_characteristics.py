"""What PPI, its null, BAG and split PPI say of simulated rerankers whose truth is known.

Utilities are standard normal; 25 items, 3 regions. A view adds noise, and takes away *slope* times the place
from 0 to 1: 0 for a reranker that is only noisy.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from pytest_invari.metrics.arrays import Floats, Integers
from pytest_invari.metrics.bucket_agreement import bucket_agreement_gap
from pytest_invari.metrics.cells import position_buckets
from pytest_invari.metrics.loc import loc
from pytest_invari.metrics.nulls import ppi_excess, ppi_null
from pytest_invari.metrics.ppi import ppi
from pytest_invari.metrics.split_instability import ppi_split
from pytest_invari.statistics.pairings import mean_over_pairings

ITEMS = 25
# Entries of the table null are drawn, all from one set of draws.
TABLE_ERROR = 0.003


def simulate(
    seed: int, queries: int, views: int, noise: float, slope: float = 0.0
) -> tuple[Integers, Integers]:
    random = np.random.default_rng(seed)
    positions = random.random((queries, views, ITEMS)).argsort(axis=-1)
    scores = random.normal(size=(queries, 1, ITEMS)) + noise * random.normal(size=positions.shape)
    scores -= slope * positions / (ITEMS - 1)
    ranks = (-scores).argsort(axis=-1).argsort(axis=-1)
    return positions.astype(np.int16), ranks.astype(np.int16)


def noise_for(consistency: float) -> float:
    """The noise that makes the mean Kendall tau of two views *consistency*, without a position effect."""
    return math.sqrt(1 / math.sin(consistency * math.pi / 2) - 1)


def standard_error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def check_mean(values: Floats, expected: float, slack: float = 0.0) -> None:
    """The mean of *values* is *expected* within four standard errors and *slack*."""
    assert values.mean() == pytest.approx(expected, rel=0, abs=4 * standard_error(values) + slack)


@pytest.mark.parametrize(
    ("consistency", "views", "published"),
    [
        (0.63, 10, 0.405),
        (0.63, 20, 0.414),
        (0.63, 50, 0.312),
        (0.82, 10, 0.192),
        (0.82, 20, 0.200),
        (0.82, 50, 0.151),
    ],
)
def test_noise_alone_makes_ppi_large_and_nothing_else(
    consistency: float, views: int, published: float
) -> None:
    positions, ranks = simulate(views, 150, views, noise_for(consistency))
    check_mean(loc(ranks).values, consistency)
    check_mean(ppi(positions, ranks).values, published, 0.003)
    check_mean(ppi_excess(positions, ranks).values, 0, TABLE_ERROR)
    check_mean(bucket_agreement_gap(positions, ranks).values, 0)
    check_mean(ppi_split(positions, ranks).values, 0)


@pytest.mark.parametrize(("views", "published"), [(10, 0.936), (20, 0.934), (50, 0.710)])
def test_coin_flips_have_the_largest_null(views: int, published: float) -> None:
    positions, ranks = simulate(views, 100, views, 1e6)
    check_mean(ppi(positions, ranks).values, published, 0.003)
    check_mean(ppi_null(ranks).values, published, 0.003 + TABLE_ERROR)
    check_mean(bucket_agreement_gap(positions, ranks).values, 0)


def test_the_table_and_pairing_anew_give_one_null() -> None:
    positions, ranks = simulate(1, 100, 20, noise_for(0.63), slope=1.0)
    paired = mean_over_pairings(positions, ranks, ppi, "x", 20).values
    check_mean(paired - ppi_null(ranks).values, 0, TABLE_ERROR)


@pytest.mark.parametrize(
    ("views", "of_ppi", "of_null"), [(10, 0.590, 0.525), (20, 0.646, 0.529), (50, 0.657, 0.395)]
)
def test_a_slope_in_position_stands_out_of_the_null(views: int, of_ppi: float, of_null: float) -> None:
    positions, ranks = simulate(views, 150, views, 0.0, slope=2.0)
    check_mean(loc(ranks).values, 0.50)
    check_mean(ppi(positions, ranks).values, of_ppi)
    check_mean(ppi_null(ranks).values, of_null, TABLE_ERROR)
    check_mean(bucket_agreement_gap(positions, ranks).values, 0.191)
    # Half of the views find fewer of the regions that differ most.
    split = ppi_split(positions, ranks).values
    assert 0.2 < split.mean() < of_ppi - 0.1


@pytest.mark.parametrize(
    ("views", "of_ppi", "of_null"), [(10, 0.994, 0.933), (20, 1.0, 0.935), (50, 1.0, 0.709)]
)
def test_bucket_agreement_of_an_echo_does_not_depend_on_the_views(
    views: int, of_ppi: float, of_null: float
) -> None:
    positions, _ = simulate(views, 100, views, 0.0)
    check_mean(ppi(positions, positions).values, of_ppi, 0.001)
    check_mean(ppi_null(positions).values, of_null, TABLE_ERROR)
    gap = bucket_agreement_gap(positions, positions).values
    check_mean(gap, echo_gap())
    assert gap.mean() == pytest.approx(0.403, abs=0.005)


def echo_gap() -> float:
    """An echo's gap in very many views: two that show a pair in one cell (b, c) agree, half if b = c."""
    sizes = np.bincount(position_buckets(ITEMS)).tolist()
    cells = {
        (b, c): Fraction(sizes[b] * (sizes[c] - (b == c)), ITEMS * (ITEMS - 1))
        for b in range(3)
        for c in range(3)
    }
    one_cell = sum(share**2 for share in cells.values())
    agreeing = sum(share**2 * (Fraction(1, 2) if b == c else 1) for (b, c), share in cells.items())
    return float(agreeing / one_cell - (Fraction(1, 2) - agreeing) / (1 - one_cell))
