"""The JSON Schema of suite files, for editors: ``python -m pytest_invari.schema > invari.schema.json``.

It is made of the declarations that the reader goes by, and says of a criterion's metric and bound what
:mod:`pytest_invari.suitefile.reader` checks. What JSON Schema cannot say is left to the reader: that a
profile which is named exists, that names differ, that lists are as long as the top that a metric looks at.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence

from pytest_invari.metrics import built_in_metrics
from pytest_invari.suitefile.keys import (
    COMPARISONS,
    CRITERION,
    CRITERION_KINDS,
    DISTANCES,
    EXCLUDES,
    GOES_WITH,
    NAME,
    NEEDS,
    OWN_KIND,
    PROFILE,
    PROFILE_EXCLUDES,
    PROFILE_NEEDS,
    SECTIONS,
    SUITE,
)
from pytest_invari.suitefile.values import Schema, SuiteKey, table_schema


def suite_schema() -> Schema:
    """The schema (draft 2020-12) of a whole suite file."""
    meaning = {section: description for section, (_, description) in SECTIONS.items()}
    criterion = table_schema(CRITERION, meaning["criterion"])
    profile = {**table_schema(PROFILE, meaning["profile"]), "allOf": [*_rules_of_profiles()]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A suite of pytest-invari",
        "description": "what is measured on which data, and what is demanded of it",
        "type": "object",
        "properties": {
            "suite": table_schema(SUITE, meaning["suite"]),
            "profile": {
                "description": meaning["profile"],
                "type": "object",
                "propertyNames": NAME.schema(),
                "additionalProperties": profile,
                "minProperties": 1,
            },
            "criterion": {
                "description": meaning["criterion"],
                "type": "array",
                "items": {**criterion, "required": ["name"], "allOf": [*_rules_of_kinds(), *_ranges()]},
                "minItems": 1,
            },
        },
        "required": list(SECTIONS),
        "additionalProperties": False,
    }


def suite_schema_text() -> str:
    """The schema as the file that comes with the package holds it."""
    return json.dumps(suite_schema(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _rules_of_kinds() -> Iterator[Schema]:
    """Which keys of a criterion go together; if and then, because editors know no dependentRequired."""
    yield {"if": _is("metric"), "then": {"required": ["metric"], **_one_of(COMPARISONS)}}
    for kind, keys in CRITERION_KINDS.items():
        yield {"if": _is(kind), "then": _only(keys)}
    own = {"properties": {"kind": {"not": {"enum": [*CRITERION_KINDS]}}}, "required": ["kind"]}
    yield {"if": own, "then": _only(OWN_KIND)}
    for key, other in (GOES_WITH | NEEDS).items():
        yield {"if": {"required": [key]}, "then": {"required": [other]}}
    for key, other in EXCLUDES.items():
        yield {"not": {"required": [key, other]}}


def _is(kind: str) -> Schema:
    """Whether a criterion is of this kind, which is metric without the key."""
    needed: Schema = {} if kind == "metric" else {"required": ["kind"]}
    return {"properties": {"kind": {"const": kind}}, **needed}


def _one_of(keys: Sequence[str]) -> Schema:
    return {"oneOf": [{"required": [key]} for key in keys]}


def _only(keys: Sequence[SuiteKey]) -> Schema:
    """None of the keys of other kinds."""
    others = [key.name for key in CRITERION if key not in keys]
    return {"properties": dict.fromkeys(others, False)}


def _rules_of_profiles() -> Iterator[Schema]:
    """Which keys of a profile go together."""
    yield {"anyOf": [{"required": ["views"]}, {"required": ["bank"]}]}
    for key, others in PROFILE_NEEDS.items():
        yield {"if": {"required": [key]}, "then": {"required": list(others)}}
    for key, other in PROFILE_EXCLUDES.items():
        yield {"not": {"required": [key, other]}}


def _ranges() -> Iterator[Schema]:
    """For each range that metrics have, the bounds and distances that can be meant."""
    known = built_in_metrics().values()
    for low, high in sorted({(metric.low, metric.high) for metric in known}):
        families = sorted(each.family for each in known if (each.low, each.high) == (low, high))
        at_least: Schema = {}
        at_most: Schema = {}
        properties: Schema = {"at_least": at_least, "at_most": at_most}
        # An end that there is not is left out: JSON has no infinite numbers.
        if math.isfinite(low):
            at_least["exclusiveMinimum"] = at_most["minimum"] = low
        if math.isfinite(high):
            # The list length, which may stand for a number, lies beyond every such range.
            at_least |= {"type": "number", "maximum": high}
            at_most |= {"type": "number", "exclusiveMaximum": high}
        if math.isfinite(high - low):
            properties |= {key: {"exclusiveMaximum": high - low} for key in DISTANCES}
        metric = {"properties": {"metric": {"pattern": f"^({'|'.join(families)})(@|$)"}}}
        yield {"if": metric, "then": {"properties": properties}}


if __name__ == "__main__":
    argparse.ArgumentParser(description="Print the JSON Schema of suite files.").parse_args()
    print(suite_schema_text(), end="")
