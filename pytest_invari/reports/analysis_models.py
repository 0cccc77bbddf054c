"""The models of what a report holds of the analyses of a bank of views."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from pytest_invari.reports.models import (
    Count,
    IntervalModel,
    Length,
    Model,
    Reason,
    Share,
    Undefined,
    costs,
    says,
)


class MechanicalModel(Model):
    """The level that reused views alone would give."""

    mean: Annotated[float | None, says("the level that reused views alone would give")]
    low: Annotated[float | None, says("2.5% of the permutations lie below")]
    high: Annotated[float | None, says("2.5% of the permutations lie above")]
    permutations: Annotated[Count, says("how many were drawn")]
    reason: Reason


class FindingModel(IntervalModel):
    """One statistic of independent views."""

    reason: Reason
    undefined_replicates: Annotated[Count, says("resamples without a value")]
    chance: Annotated[float | None, says("what a reranker that ranks at random would have")]
    p: Annotated[Share | None, says("one-sided p-value of being above 0")]
    p_holm: Annotated[Share | None, says("the same adjusted by Holm's method")]
    mechanical: Annotated[MechanicalModel | None, says("the level that is built in where views are reused")]


class ReliabilityModel(Model):
    """What a probe of one size foretells."""

    calls: Annotated[Count, says("views of the probe, and so calls a query")]
    rho: Annotated[str, says("the statistic with its correlation")]
    gain: Annotated[str | None, says("the statistic with what it is above the smallest probe's")]


class FamilyModel(Model):
    """What Holm's method adjusts for."""

    statistics: Annotated[list[str], says("the statistics that are tested together")]
    tests: Annotated[Count, says("how many of them have a p-value")]


class ValidityModel(Model):
    """What a probe says of fresh views."""

    bank: Annotated[list[str], says("all views")]
    probe: Annotated[list[str], says("the views that foretell")]
    target: Annotated[list[str], says("the fresh views that are foretold")]
    queries: Annotated[Length, says("queries with a valid ranking of every view")]
    replicates: Annotated[Count, says("resamples of queries")]
    family: Annotated[FamilyModel, says("what Holm's method adjusts for")]
    undefined: Annotated[list[str], says("the statistics without a value")]
    statistics: Annotated[dict[str, FindingModel], says("the findings, by name")]
    reliability: Annotated[dict[str, list[ReliabilityModel]], says("by measure the probes of each size")]


class BenefitModel(IntervalModel):
    """One quantity of the aggregate against the canonical ranking."""

    undefined: Undefined
    level: Annotated[Share, says("the interval's level")]
    method: Annotated[str, says("how the interval was made")]
    reason: Reason


class PointModel(Model):
    """A policy at its share of queries."""

    name: Annotated[str, says("policy and share of queries")]
    policy: Annotated[str, says("who is asked again")]
    fraction: Annotated[Share, says("share of queries that is asked again")]
    routed: Annotated[Count, says("how many these are")]
    views_before_routing: Annotated[Count, says("views of every query that the policy looks at")]
    views: Annotated[float, says("views a query, by mean")]
    cost: Annotated[dict[str, float], costs("number", "{} a query"), says("means a query")]
    loss: Annotated[float | None, says("fairness loss L_F, by mean")]
    ndcg_10: Annotated[float | None, says("nDCG@10, by mean")] = field(name="ndcg@10")
    dominators: Annotated[list[str] | None, says("the points that dominate it; null where undefined")]
    domination_frequency: Annotated[Share | None, says("in which share of the resamples it is dominated")]


class DominatedModel(Model):
    """How many points of a policy others dominate."""

    dominated: Annotated[Count, says("points that others dominate")]
    points: Annotated[Count, says("points of the policy")]


class RefusedModel(Model):
    """A policy that could not be tried."""

    policy: Annotated[str, says("the policy that could not be tried")]
    reason: Annotated[str, says("why, in words")]
    reasons: Annotated[dict[str, Count], says("queries by reason code")]


class RoutingModel(Model):
    """What asking again is worth, and costs."""

    queries: Annotated[Length, says("queries with a valid ranking of every view")]
    undefined: Annotated[dict[str, Count], says("queries without a benefit, by reason code")]
    benefit: Annotated[
        dict[str, BenefitModel], says("the aggregate against the canonical ranking, by quantity")
    ]
    points: Annotated[list[PointModel], says("policies at their shares of queries")]
    dominated_by_others: Annotated[dict[str, DominatedModel | None], says("by policy; null where undefined")]
    refused: Annotated[list[RefusedModel], says("policies that could not be tried")]
    always_aggregate: Annotated[str, says("which views the endpoint ranks that always aggregates")]
    loss_queries: Annotated[Count, says("queries with a fairness loss")]
    ndcg_queries: Annotated[Count, says("queries with nDCG")]
    replicates: Annotated[Count, says("resamples of queries")]
    undefined_replicates: Annotated[Count, says("those in which domination is undefined")]
    reason: Annotated[str | None, says("why domination is undefined")]
    frequency_reason: Annotated[str | None, says("why its frequency is undefined")]


class NothingModel(Model):
    """No query has a valid ranking of every view, so there was nothing to analyse."""

    queries: Annotated[Literal[0], says("no query has a valid ranking of every view")]
