"""What was measured of one subject, reduced to plain values for the reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pytest_invari.errors import InvariError
from pytest_invari.metrics.standing import COSTS, TOKENS
from pytest_invari.observation.validity import is_valid
from pytest_invari.progress import bar
from pytest_invari.protocol.diagnostics import further_requests, has_cut_texts
from pytest_invari.text import harmless

if TYPE_CHECKING:
    from pytest_invari.measure.measured import Measured
    from pytest_invari.metrics.catalog import Analysis
    from pytest_invari.observation.audit import Audit
    from pytest_invari.protocol import Cost, Ranking


Summary = Mapping[str, Any]
"""What was measured of one subject: the JSON report's ``subjects[]`` entry."""


SubjectKey = tuple[str, str, int]
"""Reranker, data set, list length."""


def summarise(
    measured: Measured,
    reranker: str,
    dataset: str,
    metrics: list[str],
    analyses: Sequence[Analysis] = (),
    audit: Audit | None = None,
) -> dict[str, Any]:
    """Reduce what was measured of a subject to plain numbers; *reranker* and *dataset* are what is shown.

    ``analyses`` holds each analysis whole, and ``tables`` the lines that a terminal shows of it.
    """
    reported = {name: measured.analyses.report(name) for name in analyses}
    plan, observations = measured.plan, measured.observations
    total_cost = _total_cost([seen.ranking.cost for seen in observations])
    unreported = {name for name, total in total_cost.items() if total is None}
    figures = {}
    what = harmless(f"judging {reranker} on {dataset}, K={plan.k}")
    with bar(len(metrics) + 1, what, unit="figure") as progress:
        for name in metrics:
            is_unreported = name in unreported
            figures[name] = _no_figure(measured, "not_reported") if is_unreported else _figure(measured, name)
            progress.advance()
        position_p_value = measured.position_p_value
        progress.advance()
    return {
        "reranker": reranker,
        "dataset": dataset,
        "k": int(plan.k),
        "views": int(plan.views),
        "queries": len(measured.query_ids),
        "rankings": len(observations),
        "rankings_from_records": sum(seen.from_records for seen in observations),
        "failures": int(measured.failure_count),
        "failures_from_records": sum(seen.from_records and not is_valid(seen) for seen in observations),
        **_request_counts([seen.ranking for seen in observations]),
        "cost": {
            name: None if name in unreported else float(measured.interval(name).estimate) for name in COSTS
        },
        "total_cost": total_cost,
        **witness_costs(()),
        "metrics": figures,
        "audit": None if audit is None else audit.plain(),
        "position_p_value": position_p_value,
        "regions": asdict(measured.regions),
        "analyses": {name: plain for name, (plain, _) in reported.items()},
        "tables": {name: lines for name, (_, lines) in reported.items()},
    }


def _request_counts(rankings: Sequence[Ranking]) -> dict[str, int]:
    """How many rankings a service did not answer at once, or did not read whole."""
    further = [further_requests(ranking) for ranking in rankings]
    return {
        "rankings_asked_again": sum(map(bool, further)),
        "further_requests": sum(further),
        "rankings_with_cut_texts": sum(map(has_cut_texts, rankings)),
    }


def witness_costs(costs: Sequence[Cost]) -> dict[str, Any]:
    """What the rankings took that were made for witnesses besides the measured ones."""
    return {"witness_rankings": len(costs), "witness_cost": _total_cost(costs)}


def _total_cost(costs: Sequence[Cost]) -> dict[str, float | None]:
    """The cost of all rankings; None of a kind that the reranker does not report.

    Without a language model there are no tokens; with one, none of them may be cached.
    """
    found = {name: float(sum(getattr(cost, name) for cost in costs)) for name in COSTS}
    kinds = {name: TOKENS if name in TOKENS else (name,) for name in COSTS}
    return {name: found[name] if any(found[each] for each in kinds[name]) else None for name in COSTS}


def _no_figure(measured: Measured, reason: str) -> dict[str, Any]:
    """Where there is no figure: of a cost that is not reported, of a user's metric that is broken."""
    undefined = dict.fromkeys(("estimate", "low", "high"), math.nan)
    return {**undefined, "n": 0, "undefined": len(measured.query_ids), "reason": reason}


def _figure(measured: Measured, name: str) -> dict[str, Any]:
    try:
        interval = measured.interval(name)
    except InvariError as error:
        return _no_figure(measured, harmless(str(error)))
    return {
        "estimate": float(interval.estimate),
        "low": float(interval.low),
        "high": float(interval.high),
        "n": int(interval.n),
        "undefined": int(interval.undefined),
        "reason": interval.reason if interval.n else measured.why_undefined(name) or interval.reason,
    }
