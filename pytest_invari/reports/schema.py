"""The JSON Schemas of the files that ``--invari-json`` writes: of a report, and of a self-check.

``python -m pytest_invari.reports.schema`` prints that of a report, with the argument ``selfcheck`` the other
one. Both come with the package, as ``report.schema.json`` and ``selfcheck.schema.json`` beside this module.
Objects hold nothing that is not declared here, but for ``environment``, to which a hook may add, and for the
``details`` of a criterion, which are its kind's own.
"""

from __future__ import annotations

import argparse
import json

from pytest_invari.metrics.standing import COSTS
from pytest_invari.reports.analysis_schema import analysis, routing, validity
from pytest_invari.reports.json_report import FORMAT, SELFCHECK_FORMAT
from pytest_invari.reports.schema_parts import (
    COUNT,
    COUNT_OR_NULL,
    FLAG,
    INTERVAL,
    NUMBER,
    NUMBER_OR_NULL,
    REASON,
    SHARE_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    UNDEFINED,
    Fields,
    by_name,
    list_of,
    or_null,
    table,
    words,
)
from pytest_invari.suitefile.values import Schema

_SUBJECT: Fields = {
    "reranker": (TEXT, "the reranker with its options, secrets hidden"),
    "dataset": (TEXT, "the data set's name"),
    "k": ({"type": "integer", "minimum": 1}, "candidates in each list"),
}
_ITEM: Fields = {
    "id": (TEXT, "the item's id, by which it can be run alone"),
    "suite": (TEXT, "the suite's name"),
    "criterion": (TEXT, "the criterion's name"),
    "metric": (TEXT_OR_NULL, "the metric's name; null for a criterion that is not about one"),
}


def report_schema() -> Schema:
    """The schema (draft 2020-12) of ``invari-report/1``."""
    suite = table(
        {
            "name": (TEXT, "the suite's name"),
            "title": (TEXT, "its title; empty where it has none"),
            "sha256": ({"type": "string", "pattern": "^[0-9a-f]{64}$"}, "SHA-256 of its file"),
            "profile": (TEXT, "the profile that said how much to measure"),
        }
    )
    return _whole(
        "A report of pytest-invari",
        "what a run measured and judged; shares are from 0 to 1, undefined numbers are null",
        {
            "format": ({"const": FORMAT}, "name and version of this form"),
            "suite": (or_null(suite), "the first of the suites; null where nothing was judged"),
            "suites": (list_of(suite), "the suites that have judged something"),
            "environment": (_environment(), "what the run was made with; a hook may add to it"),
            "strict": (FLAG, "whether undecided criteria fail"),
            "subjects": (list_of(_subject()), "what was measured, a subject after another"),
            "criteria": (list_of(_criterion()), "the criteria that were judged, in the order of the suites"),
            "changes": (list_of(_change()), "comparisons with a stored baseline"),
            "left_out": (
                list_of(
                    table(
                        {
                            "suite": (TEXT, "the suite's name"),
                            "criterion": (TEXT, "the criterion's name"),
                            "subject": (TEXT, "the subject as ids name it"),
                            "reason": (TEXT, "why the run cannot judge it"),
                        }
                    )
                ),
                "criteria that the run does not judge",
            ),
            "unjudged": (
                list_of(
                    table(
                        {
                            "id": (TEXT, "the item's id; of a whole subject one without a criterion"),
                            "suite": (TEXT, "the suite's name"),
                            "subject": (TEXT, "the subject as ids name it"),
                            "reason": (TEXT, "why there is no verdict"),
                        }
                    )
                ),
                "what should have been judged and was not",
            ),
            "reruns": (
                list_of(table({"id": (TEXT, "the item's id"), "reason": (TEXT, "how the attempt ended")})),
                "attempts that another plugin has not let stand",
            ),
            "verdicts": (
                table({word: (COUNT, f"criteria with the verdict {word}") for word in _VERDICTS}),
                "how many criteria have which verdict",
            ),
        },
    )


def selfcheck_schema() -> Schema:
    """The schema (draft 2020-12) of ``invari-selfcheck/1``."""
    rate = table({"count": (COUNT, "simulated data sets that came out so"), "total": (COUNT, "of how many")})
    trial = table(
        {
            "id": (TEXT, "the item's id"),
            "suite": (TEXT, "the suite's name"),
            "criterion": (TEXT, "the criterion's name"),
            "metric": (TEXT, "the metric's name"),
            "reranker": (TEXT, "the simulated reranker"),
            "k": ({"type": "integer", "minimum": 1}, "candidates in each list"),
            "views": (COUNT, "orders of each list"),
            "queries": (COUNT, "queries in each simulated data set"),
            "truth": (NUMBER, "the metric, or its difference, over the whole population"),
            "bound": (NUMBER, "what it is held against"),
            "right": (words("pass", "fail"), "the verdict that the truth deserves"),
            "passed": (rate, "passed"),
            "failed": (rate, "failed"),
            "undecided": (rate, "left undecided"),
            "missed_below": (rate, "had an interval wholly below the truth"),
            "missed_above": (rate, "had an interval wholly above the truth"),
            "broken": (list_of(TEXT), "the promises that the simulation refutes, in words"),
        }
    )
    return _whole(
        "A self-check of pytest-invari",
        "how often the verdicts of suites are wrong on simulated rerankers whose truth is known",
        {
            "format": ({"const": SELFCHECK_FORMAT}, "name and version of this form"),
            "trials": (list_of(trial), "a trial for each criterion and simulated reranker"),
        },
    )


def schema_text(schema: Schema) -> str:
    """A schema as the file that comes with the package holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


SCHEMAS = {"report": report_schema, "selfcheck": selfcheck_schema}
"""Each schema by its name on the command line and in its file's."""

_VERDICTS = ("pass", "fail", "undecided")


def _whole(title: str, description: str, fields: Fields) -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": description,
        **table(fields),
    }


def _environment() -> Schema:
    return table(
        {
            "python": (TEXT, "version of Python"),
            "platform": (TEXT, "the operating system and machine"),
            "packages": (by_name(TEXT), "versions of the installed packages that matter, by name"),
        },
        is_open=True,
    )


def _subject() -> Schema:
    costs = table({name: (NUMBER_OR_NULL, f"{name}; null where not reported") for name in COSTS})
    return table(
        {
            **_SUBJECT,
            "views": (COUNT, "orders of each list"),
            "queries": (COUNT, "lists"),
            "rankings": (COUNT, "rankings that were looked at, repeats aside"),
            "rankings_from_records": (COUNT, "those that an earlier run had made"),
            "failures": (COUNT, "rankings that failed"),
            "failures_from_records": (COUNT, "those of them that an earlier run had made"),
            "rankings_asked_again": (COUNT, "rankings for which a service was asked more than once a call"),
            "further_requests": (COUNT, "the requests that these took beyond their calls"),
            "rankings_with_cut_texts": (COUNT, "rankings some text of which was cut before it was read"),
            "cost": (costs, "means per ranking, of queries in equal parts"),
            "total_cost": (costs, "sums over these rankings"),
            "witness_rankings": (COUNT, "rankings that were made for witnesses besides these"),
            "witness_cost": (costs, "sums over the latter"),
            "metrics": (
                by_name(table({**INTERVAL, **UNDEFINED, **REASON})),
                "the rows of the table, by metric",
            ),
            "audit": (or_null(_audit()), "what a few questions told of the reranker; null without an audit"),
            "position_p_value": (
                SHARE_OR_NULL,
                "how often chance pairings of inputs and outputs agree as much on buckets",
            ),
            "regions": (
                table(
                    {
                        "cells_observed_mean": (
                            NUMBER_OR_NULL,
                            "pairs of regions a pair of items was seen in",
                        ),
                        "single_cell_pairs": (COUNT, "pairs of items that were seen in fewer than two"),
                    }
                ),
                "what PPI rests on",
            ),
            "analyses": (
                table(
                    {
                        "independent_views": (analysis(validity()), "what a probe tells of fresh views"),
                        "routing": (analysis(routing()), "what asking again is worth, and costs"),
                    },
                    optional=("independent_views", "routing"),
                ),
                "the analyses that the suite asks for and that could be made",
            ),
        }
    )


def _audit() -> Schema:
    return table(
        {
            "kind": (
                words("pointwise", "listwise", "unknown"),
                "whether candidates alone get the scores that they get in the list",
            ),
            "again_alone": (SHARE_OR_NULL, "item pairs that the same list, asked again alone, changes"),
            "again_among_others": (SHARE_OR_NULL, "those that it changes, asked again in a batch"),
            "remembers": (FLAG, "whether a list was answered as its reverse, which was asked before"),
            "tie_rate": (SHARE_OR_NULL, "item pairs with equal scores"),
            "end_of_text": (
                words("counts", "ignored", "unknown"),
                "whether leaving out the last fifth of the longest text changes its score",
            ),
            "longest_text": (COUNT, "the characters of the longest text that was asked about"),
            "labels": (TEXT, "how the labels that it shows are bound; empty where it shows none"),
            "served_model": (TEXT, "what a service says its model is; empty where none says so"),
            "fault": (TEXT, "why the first question that failed did"),
            "calls": (COUNT, "the calls that the questions took"),
        }
    )


def _criterion() -> Schema:
    return table(
        {
            **_ITEM,
            "kind": (TEXT, "metric, or another kind of criterion"),
            "comparison": (
                words("at_least", "at_most", "not_worse_than", "better_than", None),
                "how the figure is held against the bound; null for another kind than metric",
            ),
            **_SUBJECT,
            "baseline": (TEXT_OR_NULL, "the reranker that it is compared with"),
            "estimate": (NUMBER_OR_NULL, "the figure, or the difference from the baseline"),
            "low": (NUMBER_OR_NULL, "lower end of its 95% interval"),
            "high": (NUMBER_OR_NULL, "upper end of its 95% interval"),
            "bound": (NUMBER_OR_NULL, "what it is held against; null for another kind than metric"),
            "verdict": (words(*_VERDICTS), "what became of it"),
            "reason": (TEXT_OR_NULL, "why, where the figures alone do not say it"),
            "n": (COUNT, "queries with a value"),
            "n_needed": (COUNT_OR_NULL, "queries that would decide, by estimate"),
            "detectable": (NUMBER_OR_NULL, "the distance from the bound that as many queries mostly show"),
            "p_fail": (SHARE_OR_NULL, "one-sided p-value of failing, not adjusted"),
            "why": (TEXT_OR_NULL, "the suite's own words on why it matters"),
            "text": (TEXT, "all of it in one line, as the terminal shows it"),
            "details": ({"type": ["object", "null"]}, "more of what was found, as the kind has it"),
        }
    )


def _change() -> Schema:
    return table(
        {
            **_ITEM,
            **_SUBJECT,
            "margin": ({"type": "number", "minimum": 0}, "how much worse is still no regression"),
            "outcome": (
                words("improved", "same", "regressed", "undecided", "missing"),
                "what became of the metric",
            ),
            "difference": (NUMBER_OR_NULL, "new less stored, over the queries with a value in both"),
            "low": (NUMBER_OR_NULL, "lower end of its 95% interval"),
            "high": (NUMBER_OR_NULL, "upper end of its 95% interval"),
            "n": (COUNT, "queries with a value in both"),
            **UNDEFINED,
            "before": (NUMBER_OR_NULL, "the stored metric over these queries"),
            "now": (NUMBER_OR_NULL, "the new one"),
            "reason": (TEXT, "why, where the interval alone does not say it; else empty"),
            "n_needed": (COUNT_OR_NULL, "queries that would decide, by estimate"),
            "text": (TEXT, "all of it in one line, as the terminal shows it"),
        }
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print the JSON Schema of what --invari-json writes.")
    parser.add_argument("of", choices=SCHEMAS, nargs="?", default="report")
    print(schema_text(SCHEMAS[parser.parse_args().of]()), end="")
