"""The figures over queries against plain Python and SciPy, resample by resample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

from pytest_invari.metrics.arrays import Floats, PerQuery
from pytest_invari.routing import BENEFIT_FIGURES, JudgedLists, outcomes, summarise_benefit
from pytest_invari.routing.fairness import Outcomes
from pytest_invari.statistics import paper_resamples, seeded_resamples


def some_outcomes(queries: int, items: int = 12) -> tuple[Outcomes, PerQuery]:
    """Outcomes of random rankings, some of them undefined, and an instability with ties."""
    random = np.random.default_rng(queries)
    orders = random.random((queries, 5, items)).argsort(axis=-1).astype(np.int16)
    # Where all views agree nothing moves and B_F is 0.
    orders[2:5] = orders[2:5, :1]
    relevant = random.random((queries, items)) < 0.3
    relevant[0], relevant[1:, 0] = False, True
    group = (random.random((queries, items)) < 0.5).astype(np.int8)
    group[1] = 0
    found = outcomes(orders[:, 0], orders[:, 1:], JudgedLists("controlled", relevant, group))
    return found, PerQuery.of(random.integers(0, 8, queries) / 10)


def columns(found: Outcomes, instability: PerQuery) -> dict[str, Floats]:
    benefit = found.benefit.values
    return {
        "V": instability.values,
        "loss_canonical": found.loss_canonical.values,
        "loss_borda": found.loss_borda.values,
        "benefit": benefit,
        "absolute_benefit": np.abs(benefit),
        "improved": np.array([math.nan if math.isnan(each) else float(each > 0) for each in benefit]),
        "movement": found.movement.values,
        "ndcg_canonical": found.ndcg_canonical.values,
        "ndcg_borda": found.ndcg_borda.values,
    }


def naive(name: str, data: dict[str, Floats]) -> float:
    if not name.startswith("rho_"):
        known = [value for value in data[name].tolist() if not math.isnan(value)]
        return math.fsum(known) / len(known)
    x, y = data["V"], data[name.removeprefix("rho_")]
    kept = ~np.isnan(y)
    return float(scipy.stats.spearmanr(x[kept], y[kept].round(12)).statistic)


def test_every_figure_and_its_paired_interval_equal_plain_python() -> None:
    queries = 25
    found, instability = some_outcomes(queries)
    data = columns(found, instability)
    resamples = seeded_resamples(queries, "benefit", 60)
    summary = summarise_benefit(found, instability, resamples, method="percentile")
    assert list(summary) == list(BENEFIT_FIGURES)
    drawn = [np.repeat(np.arange(queries), row.astype(int)) for block in resamples.blocks() for row in block]
    for name, interval in summary.items():
        assert interval.estimate == pytest.approx(naive(name, data), abs=1e-12), name
        replicates = [naive(name, {key: values[rows] for key, values in data.items()}) for rows in drawn]
        ends = np.quantile(replicates, [0.025, 0.975])
        assert [interval.low, interval.high] == pytest.approx(ends.tolist(), abs=1e-12), name
    undefined = {name: interval.undefined for name, interval in summary.items()}
    assert undefined["benefit"] == undefined["rho_benefit"] == undefined["improved"] == 2
    assert (undefined["ndcg_canonical"], undefined["movement"]) == (1, 0)


def test_intervals_of_means_are_bca_and_those_of_correlations_percentiles() -> None:
    found, instability = some_outcomes(30)
    summary = summarise_benefit(found, instability, paper_resamples(30))
    for name, interval in summary.items():
        method = "percentile" if name.startswith("rho_") else "bca"
        assert interval.method.removesuffix("+guard") == method
        assert interval.replicates == 1000


def test_a_constant_instability_correlates_with_nothing() -> None:
    found, _ = some_outcomes(10)
    # The same but for rounding.
    instability = PerQuery.of(np.where(np.arange(10) % 2 == 0, 0.3, 0.1 + 0.2))
    summary = summarise_benefit(found, instability, seeded_resamples(10, "constant", 20))
    for name in ("rho_movement", "rho_benefit", "rho_absolute_benefit"):
        assert summary[name].reason == "constant_values"
        assert math.isnan(summary[name].estimate)
    assert summary["benefit"].defined


def test_without_any_target_only_movement_is_defined() -> None:
    ranks: Any = np.array([[0, 1, 2], [2, 1, 0], [1, 2, 0]], np.int16)
    lists = JudgedLists("controlled", np.zeros((3, 3), bool), np.array([[0, 1, 1]] * 3))
    found = outcomes(ranks, ranks[:, None, ::-1], lists)
    instability = PerQuery.of(np.array([0.1, 0.2, 0.3]))
    summary = summarise_benefit(found, instability, seeded_resamples(3, "none", 50))
    reasons = {name: interval.reason for name, interval in summary.items()}
    assert reasons["benefit"] == reasons["improved"] == reasons["ndcg_borda"] == "no_defined_query"
    assert reasons["rho_benefit"] == "fewer_than_3_queries"
    assert reasons["movement"] is None
