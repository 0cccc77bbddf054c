"""What a ranking costs, as its reranker counts it: calls, tokens, and seconds."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from pytest_invari.metrics.metric import Direction, ViewMetric

if TYPE_CHECKING:
    from pytest_invari.protocol import Ranking


def _cost(family: str, place: int, direction: Direction, description: str) -> ViewMetric:
    return ViewMetric(
        family=family,
        place=place,
        description=description,
        direction=direction,
        high=math.inf,
        source="counted by the reranker",
        standing="always",
        is_amount=True,
        function=partial(_counted, family),
    )


def _counted(kind: str, ranking: Ranking) -> float | None:
    # A failure that does not say what it cost is no ranking of 0 calls: it would lower the mean.
    has_cost = ranking.is_valid or ranking.cost.calls > 0
    return float(getattr(ranking.cost, kind)) if has_cost else None


METRICS = (
    _cost("calls", 150, "lower", "model calls per ranking"),
    _cost("depth", 160, "lower", "model calls per ranking that must wait for each other"),
    _cost("tokens_in", 170, "lower", "prompt tokens per ranking"),
    _cost("tokens_cached", 180, "higher", "prompt tokens per ranking that were not computed again"),
    _cost("tokens_out", 190, "lower", "generated tokens per ranking"),
    _cost("seconds", 200, "lower", "wall-clock seconds per ranking, its share of the batch"),
)

COSTS = tuple(metric.family for metric in METRICS)
"""The fields of :class:`pytest_invari.Cost`, in their order."""

TOKENS = tuple(name for name in COSTS if name.startswith("tokens_"))
