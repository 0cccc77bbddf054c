"""Whether aggregation helps over queries, and whether instability tells where: means, correlations of B_F."""

from __future__ import annotations

import math
from types import MappingProxyType

import numpy as np

from pytest_invari.independent_views.targets import rounded
from pytest_invari.metrics.arrays import Floats, PerQuery
from pytest_invari.routing.fairness import Outcomes
from pytest_invari.settings import IntervalMethod
from pytest_invari.statistics import Interval, Resamples, bootstrap_mean
from pytest_invari.statistics.correlation import bootstrap_spearman

BENEFIT_FIGURES = MappingProxyType(
    {
        "loss_canonical": "mean L_F of the canonical ranking",
        "loss_borda": "mean L_F of the Borda aggregate",
        "benefit": "mean B_F: L_F of the canonical ranking less that of the aggregate",
        "absolute_benefit": "mean |B_F|",
        "improved": "Pr(B_F > 0): share of queries whose L_F the aggregate lowers",
        "movement": "mean distance between the two exposure vectors",
        "ndcg_canonical": "mean NDCG@10 of the canonical ranking",
        "ndcg_borda": "mean NDCG@10 of the Borda aggregate",
        "rho_movement": "Spearman's correlation of the probe's V with movement",
        "rho_benefit": "Spearman's correlation of the probe's V with B_F",
        "rho_absolute_benefit": "Spearman's correlation of the probe's V with |B_F|",
    }
)
"""The figures of :func:`summarise_benefit` and what they are."""

# The largest distance of two exposure vectors is below the square root of 2.
_MOST_MOVEMENT = math.sqrt(2)


def summarise_benefit(
    outcomes: Outcomes,
    instability: PerQuery,
    resamples: Resamples,
    *,
    method: IntervalMethod = "bca",
    level: float = 0.95,
) -> dict[str, Interval]:
    """Every figure of ``BENEFIT_FIGURES`` over the queries with a value, all by the same draws.

    Args:
        outcomes: of N queries.
        instability: (N,) the probe's V.
        resamples: of the N queries.
        method: of the intervals of means; those of correlations are percentiles.
        level: the two-sided confidence level.
    """
    benefit = outcomes.benefit.values
    means: dict[str, tuple[Floats, tuple[float, float]]] = {
        "loss_canonical": (outcomes.loss_canonical.values, (0.0, 1.0)),
        "loss_borda": (outcomes.loss_borda.values, (0.0, 1.0)),
        "benefit": (benefit, (-1.0, 1.0)),
        "absolute_benefit": (np.abs(benefit), (0.0, 1.0)),
        "improved": (np.where(np.isnan(benefit), np.nan, benefit > 0), (0.0, 1.0)),
        "movement": (outcomes.movement.values, (0.0, _MOST_MOVEMENT)),
        "ndcg_canonical": (outcomes.ndcg_canonical.values, (0.0, 1.0)),
        "ndcg_borda": (outcomes.ndcg_borda.values, (0.0, 1.0)),
    }
    found = {
        name: bootstrap_mean(values, resamples, bounds=bounds, method=method, level=level)
        for name, (values, bounds) in means.items()
    }
    vectors = {
        "instability": rounded(instability.values),
        "movement": rounded(outcomes.movement.values),
        "benefit": benefit,
        "absolute_benefit": np.abs(benefit),
    }
    pairs = {f"rho_{name}": ("instability", name) for name in ("movement", "benefit", "absolute_benefit")}
    correlated = bootstrap_spearman(vectors, pairs, resamples)
    return found | {name: correlated.interval(name, level=level) for name in pairs}
