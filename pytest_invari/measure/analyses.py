"""The analyses of a bank of views: from what was observed of a subject to findings, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_invari import independent_views, routing, statistics
from pytest_invari.errors import InvariError
from pytest_invari.metrics.arrays import query_arrays
from pytest_invari.observation.uncertainty import canonical_uncertainty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_invari.metrics.metric import Analysis, FindingMetric
    from pytest_invari.observation.observation import Observation
    from pytest_invari.observation.plan import Plan
    from pytest_invari.tasks.task import TaskSet


_GROUPS = {"head": routing.fairness.HEAD, "tail": routing.fairness.TAIL}


def design_of(plan: Plan) -> independent_views.Design:
    """The probe and the target of a plan's bank.

    Raises:
        InvariError: the plan has no bank or no roles, or they make no design.
    """
    if not (plan.bank and plan.probe and plan.target):
        raise InvariError("an analysis of views needs a bank, a probe and a target in the profile")
    return independent_views.Design(plan.bank, plan.probe, plan.target)


class Analyses:
    """What a bank of views tells of one subject. Queries with a failed view are left out of both analyses.

    Args:
        plan: with a bank, a probe and a target.
        tasks: of the subject.
        answers: the valid observations of each query, by its id.
    """

    def __init__(self, plan: Plan, tasks: TaskSet, answers: Mapping[str, Sequence[Observation]]) -> None:
        self._design = design_of(plan)
        self._tasks = tasks
        self._observed = []
        self._lists = []
        for task in tasks.tasks:
            by_view = {seen.view: seen for seen in answers[task.query_id]}
            if all(name in by_view for name in plan.bank):
                self._lists.append(task)
                self._observed.append([by_view[name] for name in plan.bank])
        self.query_ids = tuple(task.query_id for task in self._lists)

    @cached_property
    def validity(self) -> independent_views.Validity:
        """Whether the probe's instability foretells that of fresh views."""
        return independent_views.validate(
            self._ranks, self._design, self.query_ids, statistics.paper_resamples(len(self.query_ids))
        )

    @cached_property
    def routing(self) -> routing.Routing:
        """Whether it pays to ask again where the probe is unstable.

        Raises:
            InvariError: the lists are not of the stratum controlled.
        """
        relevant, group = self._judgements
        uncertainty = canonical_uncertainty(
            self.query_ids, [seen for answers in self._observed for seen in answers]
        )
        return routing.evaluate_routing(
            self.query_ids,
            self._ranks,
            routing.ViewRoles.of(self._design),
            routing.JudgedLists(self._tasks.stratum, relevant, group),
            self._costs,
            statistics.paper_resamples(len(self.query_ids)),
            entropy=uncertainty.entropy,
            margin=uncertainty.margin,
        )

    def interval(self, metric: FindingMetric) -> statistics.Interval:
        """A figure of one of the analyses."""
        if not self.query_ids:
            nan = float("nan")
            return statistics.Interval(nan, nan, nan, 0, len(self._tasks.tasks), reason="no_defined_query")
        if metric.analysis == "independent_views":
            return self.validity.findings[metric.family].interval
        if metric.k is None:
            return self.routing.benefit[metric.family]
        return self._domination(metric.k / 100)

    def note(self, metric: FindingMetric) -> str:
        """What must be read beside a figure: the level that reuse alone would give it."""
        if metric.analysis != "independent_views" or not self.query_ids:
            return ""
        level = self.validity.findings[metric.family].mechanical
        return "" if level is None else f"reusing views alone would give {level.mean:.3f}"

    def report(self, analysis: Analysis) -> tuple[dict[str, Any], list[str]]:
        """The whole of an analysis in plain values, and as lines for a terminal."""
        if not self.query_ids:
            return {"queries": 0}, [f"{analysis}: no query has a valid ranking of every view"]
        if analysis == "independent_views":
            return independent_views.as_json(self.validity), independent_views.format_validity(self.validity)
        plain = routing.as_json(self.routing)
        return plain, routing.format_routing(plain)

    def _domination(self, fraction: float) -> statistics.Interval:
        """Whether routing by V2 is dominated, 0 or 1, bounded by the share of resamples in which it is."""
        frontier = self.routing.frontier
        points = [each for each in frontier.points if each.policy == "V2"]
        found = next((each for each in points if abs(each.fraction - fraction) < 1e-9), None)
        if found is None:
            tried = ", ".join(f"{each.fraction:.0%}" for each in points)
            raise InvariError(f"V2 was not tried at {fraction:.0%}; the fractions are {tried}")
        share = found.domination_frequency
        if found.dominators is None or np.isnan(share):
            nan = float("nan")
            return statistics.Interval(
                nan, nan, nan, 0, frontier.queries, reason=frontier.reason or frontier.frequency_reason
            )
        return statistics.Interval(
            float(bool(found.dominators)),
            float(share >= 0.975),
            float(share > 0.025),
            frontier.queries,
            replicates=frontier.replicates,
        )

    @cached_property
    def _ranks(self) -> Any:
        return np.stack(
            [
                query_arrays(
                    query_id, [seen.shown for seen in answers], [seen.ranking.order for seen in answers]
                ).ranks
                for query_id, answers in zip(self.query_ids, self._observed, strict=True)
            ]
        )

    @property
    def _costs(self) -> Any:
        return np.array(
            [
                [[getattr(seen.ranking.cost, name) for name in routing.COSTS] for seen in answers]
                for answers in self._observed
            ],
            np.float64,
        )

    @property
    def _judgements(self) -> tuple[Any, Any]:
        """Relevance and groups (n, K), items by their ids as in every array of ranks."""
        relevant = [[task.relevance.get(item, 0.0) > 0 for item in sorted(task.ids)] for task in self._lists]
        group = [
            [_GROUPS.get(task.groups.get(item, ""), routing.fairness.NO_GROUP) for item in sorted(task.ids)]
            for task in self._lists
        ]
        return np.array(relevant, np.bool_), np.array(group, np.int8)
