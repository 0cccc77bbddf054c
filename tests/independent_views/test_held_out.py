"""Held-out R² against least squares in exact fractions."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.independent_views.held_out import held_out_r2, query_folds
from pytest_invari.metrics.arrays import Floats
from pytest_invari.statistics import seeded_resamples

Row = tuple[int, tuple[Fraction, ...], Fraction]


def solved(matrix: list[list[Fraction]]) -> list[Fraction] | None:
    """The solution of the augmented equations, None where they have no single one."""
    rows = [list(row) for row in matrix]
    for column in range(len(rows)):
        pivot = next((index for index in range(column, len(rows)) if rows[index][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [entry / rows[column][column] for entry in rows[column]]
        for index in range(len(rows)):
            if index != column:
                factor = rows[index][column]
                rows[index] = [a - factor * b for a, b in zip(rows[index], rows[column], strict=True)]
    return [row[-1] for row in rows]


def naive_r2(rows: list[Row]) -> float:
    """R² over five folds from (fold, predictors, outcome) of each query; NaN where it is undefined."""
    unexplained = total = Fraction(0)
    for fold in range(5):
        test, training = [row for row in rows if row[0] == fold], [row for row in rows if row[0] != fold]
        if not test or not training:
            return math.nan
        columns = [(Fraction(1), *xs) for _, xs, _ in training]
        equations = [
            [sum((row[i] * row[j] for row in columns), Fraction(0)) for j in range(len(columns[0]))]
            + [sum((row[i] * y for row, (_, _, y) in zip(columns, training, strict=True)), Fraction(0))]
            for i in range(len(columns[0]))
        ]
        fit = solved(equations)
        if fit is None:
            return math.nan
        mean = sum((y for _, _, y in training), Fraction(0)) * Fraction(1, len(training))
        for _, xs, y in test:
            predicted = sum((a * b for a, b in zip(fit, (Fraction(1), *xs), strict=True)), Fraction(0))
            unexplained += (y - predicted) * (y - predicted)
            total += (y - mean) * (y - mean)
    return float(1 - unexplained / total) if total else math.nan


def rows_of(predictors: list[Floats], outcome: Floats, folds: list[int]) -> list[Row]:
    return [
        (fold, tuple(Fraction(float(x[n])) for x in predictors), Fraction(float(outcome[n])))
        for n, fold in enumerate(folds)
    ]


@settings(max_examples=40, deadline=None)
@given(st.integers(5, 14), st.integers(1, 2), st.integers(1, 6), st.integers(0, 9999))
def test_r2_and_its_replicates_are_those_of_exact_fits(n: int, count: int, levels: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    predictors = [random.integers(0, levels + 1, n) / 8 for _ in range(count)]
    outcome = random.integers(0, levels + 1, n) / 8
    folds = random.integers(0, 5, n)
    resamples = seeded_resamples(n, f"r2 {n}", 12)
    rows = rows_of(predictors, outcome, folds.tolist())
    expected = naive_r2(rows)
    found = held_out_r2(predictors, outcome, folds, resamples)
    assert found.value == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)
    assert (found.reason is None) == (not math.isnan(expected))
    if found.reason is None:
        drawn = [np.repeat(np.arange(n), row) for block in resamples.blocks() for row in block.astype(int)]
        naive = [naive_r2([rows[index] for index in chosen]) for chosen in drawn]
        assert found.replicates == pytest.approx(naive, rel=1e-9, abs=1e-9, nan_ok=True)
    else:
        assert np.isnan(found.replicates).all()


def test_values_as_small_as_a_variance_of_exposure_keep_their_digits() -> None:
    random = np.random.default_rng(1)
    one = np.round(0.01 + 1e-4 * random.random(40), 12)
    other = np.round(one + 1e-5 * random.random(40), 12)
    outcome = np.round(one + other + 1e-5 * random.random(40), 12)
    folds = np.arange(40) % 5
    found = held_out_r2([one, other], outcome, folds, seeded_resamples(40, "small", 20))
    assert found.value == pytest.approx(naive_r2(rows_of([one, other], outcome, folds.tolist())), abs=1e-9)
    assert found.value > 0.9


def test_a_gain_is_paired() -> None:
    random = np.random.default_rng(2)
    one, other = random.random(60), random.random(60)
    outcome = one + other
    folds = np.arange(60) % 5
    resamples = seeded_resamples(60, "gain", 50)
    alone, together = (
        held_out_r2([one], outcome, folds, resamples),
        held_out_r2([one, other], outcome, folds, resamples),
    )
    gain = together.minus(alone)
    assert together.value == pytest.approx(1)
    assert gain.replicates.tolist() == (together.replicates - alone.replicates).tolist()
    assert gain.interval().estimate == together.value - alone.value
    assert gain.interval().low == pytest.approx(np.quantile(gain.replicates, 0.025))
    nothing = held_out_r2([np.ones(60)], outcome, folds, resamples)
    assert alone.minus(nothing).interval().reason == nothing.minus(alone).interval().reason == nothing.reason


def test_folds_are_the_ids_hashes() -> None:
    ids = [f"user {number}" for number in range(50)] + ["ü"]
    expected = [int.from_bytes(hashlib.sha256(each.encode("utf-8")).digest(), "big") % 5 for each in ids]
    assert query_folds(ids).tolist() == expected
    assert set(expected) == set(range(5))


def test_reasons() -> None:
    spread, folds = np.arange(10.0), np.arange(10) % 5
    # The first query alone is not 0: it is the test set of one fold, whose training set is then constant.
    sparse = np.array([1.0] + [0.0] * 9)
    for predictors, outcome, own_folds, reason in [
        ([spread[:4]], spread[:4], folds[:4], "fewer_than_5_queries"),
        ([spread], spread, np.arange(10) % 4, "empty_fold"),
        ([np.full(10, 0.1)], spread, folds, "constant_values"),
        ([spread], np.full(10, 0.1), folds, "constant_values"),
        ([sparse], spread, folds, "constant_values"),
        ([spread, 0.3 * spread + 7], spread, folds, "collinear_probes"),
    ]:
        found = held_out_r2(predictors, outcome, own_folds, seeded_resamples(len(outcome), "why", 20))
        assert found.reason == reason
        assert math.isnan(found.value)
        interval = found.interval()
        assert (interval.reason, interval.n, interval.undefined) == (reason, 0, len(outcome))


def test_replicates_with_an_empty_fold_are_dropped_and_counted() -> None:
    # One query is all of its fold: a resample misses it with probability about .37.
    spread = np.random.default_rng(3).random(12)
    folds = np.array([4, *(index % 4 for index in range(11))])
    found = held_out_r2([spread], spread[::-1].copy(), folds, seeded_resamples(12, "empty", 200))
    assert found.reason is None
    interval = found.interval()
    assert interval.reason == "undefined_replicates"
    assert interval.undefined_replicates == np.isnan(found.replicates).sum() > 40
