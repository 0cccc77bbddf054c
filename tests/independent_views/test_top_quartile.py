"""The overlap of the least stable quarters, against sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.independent_views.top_quartile import chance_jaccard, jaccard_with, top_quartile_jaccard
from pytest_invari.metrics.arrays import Floats, Integers
from pytest_invari.statistics import seeded_resamples


def naive_top(values: Floats, ids: list[str], drawn: Integers) -> set[tuple[str, int]]:
    """The ⌈N/4⌉ largest of the queries drawn, as (id, which of its copies)."""
    copies = [
        (-float(values[query]), ids[query], copy)
        for query in sorted(set(drawn.tolist()))
        for copy in range(int((drawn == query).sum()))
    ]
    return {(query_id, copy) for _, query_id, copy in sorted(copies)[: math.ceil(len(drawn) / 4)]}


def naive_jaccard(one: Floats, other: Floats, ids: list[str], drawn: Integers) -> float:
    if any(len(set(values[drawn])) < 2 for values in (one, other)):
        return math.nan
    first, second = naive_top(one, ids, drawn), naive_top(other, ids, drawn)
    return len(first & second) / len(first | second)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 13), st.integers(1, 5), st.integers(0, 9999))
def test_overlap_and_its_replicates_are_those_of_sets(n: int, levels: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    one, other = (random.integers(0, levels, n).astype(float) for _ in range(2))
    ids = [str(number) for number in random.permutation(n)]
    resamples = seeded_resamples(n, f"overlap {n}", 15)
    found = top_quartile_jaccard(one, other, ids, resamples)
    expected = naive_jaccard(one, other, ids, np.arange(n))
    assert found.value == pytest.approx(expected, rel=0, abs=1e-15, nan_ok=True)
    assert jaccard_with(one, ids)(other) == pytest.approx(expected, rel=0, abs=1e-15, nan_ok=True)
    if found.reason is None:
        drawn = [np.repeat(np.arange(n), row) for block in resamples.blocks() for row in block.astype(int)]
        naive = [naive_jaccard(one, other, ids, chosen) for chosen in drawn]
        assert found.replicates == pytest.approx(naive, rel=0, abs=1e-15, nan_ok=True)
    else:
        assert found.reason == "constant_values"


def test_ties_go_by_query_id() -> None:
    # Code points, as everywhere: "10" is before "9".
    ids, tied, rising = ["9", "10", "8", "11"], np.array([1.0, 1.0, 0.0, 1.0]), np.arange(4.0)
    assert jaccard_with(tied, ids)(np.array([0.0, 1.0, 0.0, 0.0])) == 1
    assert jaccard_with(tied, ids)(rising) == 0


@pytest.mark.parametrize("queries", [40, 41, 1113])
def test_chance_is_the_overlap_of_unrelated_quarters(queries: int) -> None:
    top = math.ceil(queries / 4)
    assert chance_jaccard(queries) == top / (2 * queries - top)
    assert 1 / 7 <= chance_jaccard(queries) < 1 / 7 + 0.015
    random = np.random.default_rng(queries)
    ids = [str(number) for number in range(queries)]
    overlap = jaccard_with(random.random(queries), ids)
    drawn = [overlap(random.random(queries)) for _ in range(400)]
    shared = [2 * top * each / (1 + each) for each in drawn]
    assert np.mean(shared) == pytest.approx(top**2 / queries, abs=4 * float(np.std(shared)) / 20)
