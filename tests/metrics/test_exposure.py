"""Exposure tables and the per-query counts behind them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.metrics.arrays import Integers
from pytest_invari.metrics.exposure import (
    exposure,
    exposure_counts,
    maximum_exposure_deviation,
    mean_exposure_deviation,
)


def random_orders(seed: int, queries: int, views: int, items: int) -> Integers:
    random = np.random.default_rng(seed)
    return np.argsort(random.random((queries, views, items)), axis=-1).astype(np.int16)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 6), st.integers(1, 8), st.integers(0, 9999))
def test_exposure_equals_the_naive_count(queries: int, views: int, items: int, k: int, seed: int) -> None:
    positions = random_orders(seed, queries, views, items)
    ranks = random_orders(seed + 1, queries, views, items)
    table = exposure(positions, ranks, k)
    counts = exposure_counts(positions, ranks, k)
    for position in range(items):
        shown = positions == position
        won = int((shown & (ranks < k)).sum())
        assert table[position] == float(Fraction(won, int(shown.sum())))
        assert counts.top[:, position].tolist() == (shown & (ranks < k)).sum(axis=(1, 2)).tolist()
    assert counts.views.tolist() == [views] * queries
    assert Fraction(int(counts.top.sum()), queries * views) == min(k, items)
    assert table.sum() == pytest.approx(min(k, items))


def test_cyclic_shifts_expose_an_invariant_reranker_exactly_evenly() -> None:
    items = 7
    positions = np.array([[np.roll(np.arange(items), shift) for shift in range(items)]], np.int16)
    ranks = np.broadcast_to(np.arange(items, dtype=np.int16)[::-1], positions.shape)
    table = exposure(positions, ranks, 3)
    assert table.tolist() == [3 / 7] * items
    assert maximum_exposure_deviation(table, 3) == 0
    assert mean_exposure_deviation(table, 3) == 0


def test_echo_of_the_input_gives_the_first_positions_everything() -> None:
    positions = random_orders(0, 5, 4, 6)
    table = exposure(positions, positions, 2)
    assert table.tolist() == [1, 1, 0, 0, 0, 0]
    assert maximum_exposure_deviation(table, 2) == pytest.approx(2 / 3)
    assert mean_exposure_deviation(table, 2) == pytest.approx((2 * 2 / 3 + 4 * 1 / 3) / 6)


def test_a_top_as_long_as_the_list_is_no_deviation() -> None:
    positions, ranks = random_orders(0, 2, 3, 4), random_orders(1, 2, 3, 4)
    for k in (4, 9):
        assert exposure(positions, ranks, k).tolist() == [1.0] * 4
        assert maximum_exposure_deviation(exposure(positions, ranks, k), k) == 0


def test_tied_ranks_and_an_empty_top_are_refused() -> None:
    positions = random_orders(0, 1, 1, 3)
    with pytest.raises(ValueError, match="strict"):
        exposure(positions, np.array([[[0, 0, 2]]], np.int16), 1)
    with pytest.raises(ValueError, match="at least 1"):
        exposure(positions, positions, 0)


def test_no_query_has_no_exposure() -> None:
    empty = np.empty((0, 3, 4), np.int16)
    assert np.isnan(exposure(empty, empty, 2)).all()
