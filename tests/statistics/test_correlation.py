"""Spearman's correlation and its bootstrap, against SciPy on the resampled data."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pytest_invari.statistics import (
    Resamples,
    paper_resamples,
    seeded_resamples,
)
from pytest_invari.statistics import correlation as module
from pytest_invari.statistics.correlation import bootstrap_spearman, spearman

NAN = float("nan")
Floats = NDArray[np.float64]
tied = st.integers(0, 4).map(float) | st.just(NAN)


def resampled(resamples: Resamples, *vectors: Floats) -> Iterator[tuple[Floats, ...]]:
    """The vectors of each replicate, every query repeated as often as it was drawn."""
    for block in resamples.blocks():
        for row in block.astype(int):
            yield tuple(np.repeat(vector, row) for vector in vectors)


def naive(x: Floats, y: Floats) -> float:
    """SciPy's, without the queries that lack a value."""
    kept = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[kept], y[kept]
    if len(x) < 3 or len(set(x)) < 2 or len(set(y)) < 2:
        return NAN
    return float(scipy.stats.spearmanr(x, y).statistic)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(tied, tied), max_size=12))
def test_rho_is_scipys(pairs: list[tuple[float, float]]) -> None:
    x, y = np.array(pairs, float).reshape(-1, 2).T
    found = spearman(x, y)
    assert found.value == pytest.approx(naive(x, y), abs=1e-12, nan_ok=True)
    assert math.isnan(found.value) == (found.reason is not None)
    assert found.n == sum(not math.isnan(a + b) for a, b in pairs)


def test_rho_has_a_reason_where_it_is_undefined() -> None:
    assert spearman([1.0, 2.0, NAN], [1.0, 2.0, 3.0]).reason == "fewer_than_3_queries"
    assert spearman([1.0, 2.0, 3.0], [7.0, 7.0, 7.0]).reason == "constant_values"
    with pytest.raises(ValueError, match="one a query"):
        spearman([[1.0]], [[1.0]])


@pytest.mark.parametrize("levels", [3, 1000])
def test_replicates_are_scipys_of_the_resampled_data(levels: int) -> None:
    random = np.random.default_rng(levels)
    vectors = {name: random.integers(0, levels, 40).astype(float) for name in "abc"}
    vectors["a"][[3, 7]] = NAN
    pairs = {"ab": ("a", "b"), "bc": ("b", "c"), "ca": ("c", "a"), "aa": ("a", "a")}
    resamples = seeded_resamples(40, "a", 60)
    found = bootstrap_spearman(vectors, pairs, resamples)
    for name, (first, second) in pairs.items():
        expected = [naive(x, y) for x, y in resampled(resamples, vectors[first], vectors[second])]
        assert found.replicates[name] == pytest.approx(expected, abs=1e-12)
        assert found.estimates[name].value == pytest.approx(naive(vectors[first], vectors[second]), abs=1e-12)
    assert (found.estimates["ab"].n, found.estimates["bc"].n) == (38, 40)


def test_the_papers_bootstrap_is_a_loop_over_its_seeds() -> None:
    random = np.random.default_rng(0)
    x = np.round(random.gamma(2, size=50), 1)
    y = np.round(x + random.gamma(2, size=50), 1)
    found = bootstrap_spearman({"x": x, "y": y}, {"rho": ("x", "y")}, paper_resamples(50))
    drawn = [np.random.default_rng(seed).integers(0, 50, 50) for seed in range(2401, 3401)]
    expected = np.array([naive(x[chosen], y[chosen]) for chosen in drawn])
    interval = found.interval("rho")
    assert [interval.low, interval.high] == pytest.approx(np.percentile(expected, [2.5, 97.5]), abs=1e-12)
    assert interval.probability_at_most(0.5) == pytest.approx((1 + (expected <= 0.5).sum()) / 1001)
    assert (interval.method, interval.replicates, interval.n) == ("percentile", 1000, 50)
    assert interval.standard_error == pytest.approx(expected.std(ddof=1) * math.sqrt(50 / 49))


def test_contrasts_are_paired() -> None:
    random = np.random.default_rng(1)
    target = random.random(80)
    near, far = target + 0.1 * random.random(80), target + random.random(80)
    found = bootstrap_spearman(
        {"target": target, "near": near, "far": far},
        {"rho_2": ("near", "target"), "rho_0": ("far", "target")},
        seeded_resamples(80, "a", 400),
    )
    contrast = found.contrast("rho_2", "rho_0")
    differences = found.replicates["rho_2"] - found.replicates["rho_0"]
    assert contrast.estimate == found.estimates["rho_2"].value - found.estimates["rho_0"].value
    assert [contrast.low, contrast.high] == pytest.approx(np.quantile(differences, [0.025, 0.975]))
    assert found.contrast("rho_2", "rho_2").high == 0


def test_undefined_replicates_are_dropped_and_counted() -> None:
    # 2 of 60 queries are not 0: a resample misses both with probability .13, a constant.
    sparse = np.array([1.0, 2.0] + [0.0] * 58)
    dense = np.arange(60.0)
    vectors, pairs = {"sparse": sparse, "dense": dense}, {"rho": ("sparse", "dense")}
    found = bootstrap_spearman(vectors, pairs, seeded_resamples(60, "a", 300))
    expected = [naive(x, y) for x, y in resampled(seeded_resamples(60, "a", 300), sparse, dense)]
    assert found.replicates["rho"] == pytest.approx(expected, abs=1e-12, nan_ok=True)
    interval = found.interval("rho")
    assert (interval.reason, interval.undefined_replicates) == (
        "undefined_replicates", np.isnan(expected).sum(),
    )  # fmt: skip
    vectors["sparse"] = np.array([1.0, 2.0, 3.0, 4.0] + [0.0] * 56)
    fewer = bootstrap_spearman(vectors, pairs, seeded_resamples(60, "a", 300)).interval("rho")
    assert fewer.defined
    assert 0 < fewer.undefined_replicates <= 15


def test_an_undefined_correlation_has_no_interval_but_its_reason() -> None:
    found = bootstrap_spearman(
        {"x": [1.0, 1.0, 1.0, 1.0], "y": [1.0, 2.0, 3.0, 4.0]}, {"rho": ("x", "y"), "self": ("y", "y")},
        seeded_resamples(4, "a", 20),
    )  # fmt: skip
    assert found.interval("rho").reason == "constant_values"
    assert found.contrast("self", "rho").reason == "constant_values"
    assert math.isnan(found.contrast("self", "rho").probability_at_most(0.0))


def test_chunks_do_not_change_the_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    vectors = {name: random.random(30) for name in "xy"}
    whole = bootstrap_spearman(vectors, {"rho": ("x", "y")}, seeded_resamples(30, "a", 101))
    monkeypatch.setattr(module, "_CHUNK_ENTRIES", 1)
    cut = bootstrap_spearman(vectors, {"rho": ("x", "y")}, seeded_resamples(30, "a", 101))
    assert whole.replicates["rho"].tolist() == cut.replicates["rho"].tolist()


def test_vectors_must_fit_the_resamples() -> None:
    with pytest.raises(ValueError, match="resamples of 3 queries do not fit: x 3, y 2"):
        bootstrap_spearman({"x": [1, 2, 3], "y": [1, 2]}, {"rho": ("x", "y")}, seeded_resamples(3, "a", 9))
