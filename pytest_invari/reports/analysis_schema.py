"""The schemas of what a report holds of the analyses of a bank of views."""

from __future__ import annotations

from pytest_invari.metrics.standing import COSTS
from pytest_invari.reports.schema_parts import (
    COUNT,
    INTERVAL,
    NUMBER,
    NUMBER_OR_NULL,
    REASON,
    SHARE,
    SHARE_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    UNDEFINED,
    by_name,
    list_of,
    or_null,
    table,
)
from pytest_invari.suitefile.values import Schema


def analysis(whole: Schema) -> Schema:
    """An analysis, or no more than that there was nothing to analyse."""
    return {
        "anyOf": [whole, table({"queries": ({"const": 0}, "no query has a valid ranking of every view")})]
    }


def validity() -> Schema:
    """Of :func:`pytest_invari.independent_views.as_json`."""
    mechanical = table(
        {
            "mean": (NUMBER_OR_NULL, "the level that reused views alone would give"),
            "low": (NUMBER_OR_NULL, "2.5% of the permutations lie below"),
            "high": (NUMBER_OR_NULL, "2.5% of the permutations lie above"),
            "permutations": (COUNT, "how many were drawn"),
            **REASON,
        }
    )
    finding = table(
        {
            **INTERVAL,
            **REASON,
            "undefined_replicates": (COUNT, "resamples without a value"),
            "chance": (NUMBER_OR_NULL, "what a reranker that ranks at random would have"),
            "p": (SHARE_OR_NULL, "one-sided p-value of being above 0"),
            "p_holm": (SHARE_OR_NULL, "the same adjusted by Holm's method"),
            "mechanical": (or_null(mechanical), "the level that is built in where views are reused"),
        }
    )
    reliability = table(
        {
            "calls": (COUNT, "views of the probe, and so calls a query"),
            "rho": (TEXT, "the statistic with its correlation"),
            "gain": (TEXT_OR_NULL, "the statistic with what it is above the smallest probe's"),
        }
    )
    return table(
        {
            "bank": (list_of(TEXT), "all views"),
            "probe": (list_of(TEXT), "the views that foretell"),
            "target": (list_of(TEXT), "the fresh views that are foretold"),
            "queries": ({"type": "integer", "minimum": 1}, "queries with a valid ranking of every view"),
            "replicates": (COUNT, "resamples of queries"),
            "family": (
                table(
                    {
                        "statistics": (list_of(TEXT), "the statistics that are tested together"),
                        "tests": (COUNT, "how many of them have a p-value"),
                    }
                ),
                "what Holm's method adjusts for",
            ),
            "undefined": (list_of(TEXT), "the statistics without a value"),
            "statistics": (by_name(finding), "the findings, by name"),
            "reliability": (by_name(list_of(reliability)), "by measure the probes of each size"),
        }
    )


def routing() -> Schema:
    """Of :func:`pytest_invari.routing.as_json`."""
    interval = table(
        {
            **INTERVAL,
            **UNDEFINED,
            "level": (SHARE, "the interval's level"),
            "method": (TEXT, "how the interval was made"),
            **REASON,
        }
    )
    point = table(
        {
            "name": (TEXT, "policy and share of queries"),
            "policy": (TEXT, "who is asked again"),
            "fraction": (SHARE, "share of queries that is asked again"),
            "routed": (COUNT, "how many these are"),
            "views_before_routing": (COUNT, "views of every query that the policy looks at"),
            "views": (NUMBER, "views a query, by mean"),
            "cost": (table({name: (NUMBER, f"{name} a query") for name in COSTS}), "means a query"),
            "loss": (NUMBER_OR_NULL, "fairness loss L_F, by mean"),
            "ndcg@10": (NUMBER_OR_NULL, "nDCG@10, by mean"),
            "dominators": (or_null(list_of(TEXT)), "the points that dominate it; null where undefined"),
            "domination_frequency": (SHARE_OR_NULL, "in which share of the resamples it is dominated"),
        }
    )
    counts = table(
        {"dominated": (COUNT, "points that others dominate"), "points": (COUNT, "points of the policy")}
    )
    refused = table(
        {
            "policy": (TEXT, "the policy that could not be tried"),
            "reason": (TEXT, "why, in words"),
            "reasons": (by_name(COUNT), "queries by reason code"),
        }
    )
    return table(
        {
            "queries": ({"type": "integer", "minimum": 1}, "queries with a valid ranking of every view"),
            "undefined": (by_name(COUNT), "queries without a benefit, by reason code"),
            "benefit": (by_name(interval), "the aggregate against the canonical ranking, by quantity"),
            "points": (list_of(point), "policies at their shares of queries"),
            "dominated_by_others": (by_name(or_null(counts)), "by policy; null where undefined"),
            "refused": (list_of(refused), "policies that could not be tried"),
            "always_aggregate": (TEXT, "which views the endpoint ranks that always aggregates"),
            "loss_queries": (COUNT, "queries with a fairness loss"),
            "ndcg_queries": (COUNT, "queries with nDCG"),
            "replicates": (COUNT, "resamples of queries"),
            "undefined_replicates": (COUNT, "those in which domination is undefined"),
            "reason": (TEXT_OR_NULL, "why domination is undefined"),
            "frequency_reason": (TEXT_OR_NULL, "why its frequency is undefined"),
        }
    )
