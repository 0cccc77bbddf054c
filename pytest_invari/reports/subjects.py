"""What was measured of one subject, reduced to plain values for the reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from msgspec import field

from pytest_invari.errors import InvariError
from pytest_invari.metrics.costs import COSTS, TOKENS
from pytest_invari.observation.observation import is_valid
from pytest_invari.progress import bar
from pytest_invari.protocol.ranking import further_requests, has_cut_texts
from pytest_invari.reports.models import AuditModel, FigureModel, RegionsModel, SubjectModel
from pytest_invari.text import harmless

if TYPE_CHECKING:
    from pytest_invari.measure.measured import Measured
    from pytest_invari.metrics.metric import Analysis
    from pytest_invari.observation.audit import Audit
    from pytest_invari.protocol import Cost


SubjectKey = tuple[str, str, int]
"""Reranker, data set, list length."""


class Summary(SubjectModel):
    """What was measured of one subject, with what other reports than JSON show of it.

    ``tables`` holds the lines that a terminal shows of each analysis, ``pictures`` what those of a page are
    drawn from, where there will be one.
    """

    tables: dict[str, list[str]]
    pictures: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> SubjectKey:
        """By which subjects are told apart."""
        return self.reranker, self.dataset, self.k

    @property
    def subject(self) -> SubjectModel:
        """What the JSON report has of it."""
        return SubjectModel(*(getattr(self, name) for name in SubjectModel.__struct_fields__))


def summarise(
    measured: Measured,
    reranker: str,
    dataset: str,
    metrics: list[str],
    analyses: Sequence[Analysis] = (),
    audit: Audit | None = None,
) -> Summary:
    """Reduce what was measured of a subject to plain numbers; *reranker* and *dataset* are what is shown.

    Each of the *analyses* is held whole.
    """
    reported = {name: measured.analyses.report(name) for name in analyses}
    plan, observations = measured.plan, measured.observations
    total_cost = sum_costs([seen.ranking.cost for seen in observations])
    # How often a service did not answer at once.
    further = [further_requests(seen.ranking) for seen in observations]
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
    return Summary(
        reranker=reranker,
        dataset=dataset,
        k=int(plan.k),
        views=int(plan.views),
        queries=len(measured.query_ids),
        rankings=len(observations),
        rankings_from_records=sum(seen.from_records for seen in observations),
        failures=int(measured.failure_count),
        failures_from_records=sum(seen.from_records and not is_valid(seen) for seen in observations),
        rankings_asked_again=sum(map(bool, further)),
        further_requests=sum(further),
        rankings_with_cut_texts=sum(has_cut_texts(seen.ranking) for seen in observations),
        cost={
            name: None if name in unreported else float(measured.interval(name).estimate) for name in COSTS
        },
        total_cost=total_cost,
        witness_rankings=0,
        witness_cost=sum_costs(()),
        metrics=figures,
        audit=None if audit is None else AuditModel(**audit.plain()),
        position_p_value=None if math.isnan(position_p_value) else float(position_p_value),
        regions=RegionsModel(**asdict(measured.regions)),
        analyses={name: plain for name, (plain, _) in reported.items()},
        tables={name: lines for name, (_, lines) in reported.items()},
    )


def sum_costs(costs: Sequence[Cost]) -> dict[str, float | None]:
    """The cost of all rankings; None of a kind that the reranker does not report.

    Without a language model there are no tokens; with one, none of them may be cached.
    """
    found = {name: float(sum(getattr(cost, name) for cost in costs)) for name in COSTS}
    kinds = {name: TOKENS if name in TOKENS else (name,) for name in COSTS}
    return {name: found[name] if any(found[each] for each in kinds[name]) else None for name in COSTS}


def _no_figure(measured: Measured, reason: str) -> FigureModel:
    """Where there is no figure: of a cost that is not reported, of a user's metric that is broken."""
    return FigureModel(math.nan, math.nan, math.nan, 0, len(measured.query_ids), reason)


def _figure(measured: Measured, name: str) -> FigureModel:
    try:
        interval = measured.interval(name)
    except InvariError as error:
        return _no_figure(measured, harmless(str(error)))
    return FigureModel(
        float(interval.estimate),
        float(interval.low),
        float(interval.high),
        int(interval.n),
        int(interval.undefined),
        interval.reason if interval.n else measured.why_undefined(name) or interval.reason,
    )
