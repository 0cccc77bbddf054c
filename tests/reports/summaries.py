"""Summaries of subjects as reports read them, for tests that name only what matters to them."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from pytest_invari.reports.subjects import Summary

FIGURE = {"estimate": math.nan, "low": math.nan, "high": math.nan, "n": 0, "undefined": 0, "reason": None}


def summary(**changed: Any) -> Summary:
    """A summary with these values; figures may lack what is undefined."""
    counts = (
        *("views", "queries", "rankings", "rankings_from_records", "failures", "failures_from_records"),
        *("rankings_asked_again", "further_requests", "rankings_with_cut_texts", "witness_rankings"),
    )
    values: dict[str, Any] = {
        **dict.fromkeys(counts, 0),
        **{"reranker": "r", "dataset": "d", "k": 10, "audit": None, "position_p_value": None},
        **{name: {} for name in ("cost", "total_cost", "witness_cost", "metrics", "analyses", "tables")},
        "regions": {"cells_observed_mean": None, "single_cell_pairs": 0},
        **changed,
    }
    values["metrics"] = {name: {**FIGURE, **figure} for name, figure in values["metrics"].items()}
    return msgspec.convert(values, Summary)
