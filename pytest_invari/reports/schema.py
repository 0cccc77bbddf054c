"""The JSON Schemas of the files that ``--invari-json`` writes: of a report, and of a self-check.

``python -m pytest_invari.reports.schema`` prints that of a report, with the argument ``selfcheck`` the other
one. Both come with the package, as ``report.schema.json`` and ``selfcheck.schema.json`` beside this module,
and are made of the models. Objects hold nothing that is not declared there, but for ``environment``, to which
a hook may add, and for the ``details`` of a criterion, which are its kind's own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from pytest_invari.reports.analysis_models import NothingModel, RoutingModel, ValidityModel
from pytest_invari.reports.models import CLOSED, NULLABLE, Model, ReportModel, SelfcheckModel
from pytest_invari.suitefile.values import Schema

_ANALYSES: Mapping[str, tuple[type[Model], str]] = {
    "independent_views": (ValidityModel, "what a probe tells of fresh views"),
    "routing": (RoutingModel, "what asking again is worth, and costs"),
}


def report_schema() -> Schema:
    """The schema (draft 2020-12) of ``invari-report/1``."""
    schema = _whole("A report of pytest-invari", ReportModel)
    analyses = schema["properties"]["subjects"]["items"]["properties"]["analyses"]
    nothing = _schema_of(NothingModel)
    analyses |= {
        "properties": {
            name: {"description": meant, "anyOf": [_schema_of(model), nothing]}
            for name, (model, meant) in _ANALYSES.items()
        },
        "required": [],
        "additionalProperties": False,
    }
    return schema


def selfcheck_schema() -> Schema:
    """The schema (draft 2020-12) of ``invari-selfcheck/1``."""
    return _whole("A self-check of pytest-invari", SelfcheckModel)


def schema_text(schema: Schema) -> str:
    """A schema as the file that comes with the package holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


SCHEMAS = {"report": report_schema, "selfcheck": selfcheck_schema}
"""Each schema by its name on the command line and in its file's."""


def _whole(title: str, model: type[Model]) -> Schema:
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": title, **_schema_of(model)}


def _schema_of(model: type[Model]) -> Schema:
    """The schema of a model with those of its parts in their places, as editors show them best."""
    (schema,), parts = msgspec.json.schema_components([model])
    inlined: Schema = _inlined(schema, parts)
    return inlined


def _inlined(schema: Any, parts: Mapping[str, Any]) -> Any:
    """A schema without references, and without the names of the models."""
    if isinstance(schema, list):
        return [_inlined(each, parts) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        part = _inlined(parts[schema["$ref"].rpartition("/")[2]], parts)
        return {**part, **{key: value for key, value in schema.items() if key != "$ref"}}
    if NULLABLE in schema:
        rest = {key: value for key, value in schema.items() if key != NULLABLE}
        return {**rest, "type": [schema["type"], "null"]}
    if CLOSED in schema:
        rest = {key: value for key, value in schema.items() if key != CLOSED}
        return {**rest, "additionalProperties": False}
    properties = {name: _inlined(each, parts) for name, each in schema.get("properties", {}).items()}
    rest = {
        key: _inlined(value, parts)
        for key, value in schema.items()
        if key != "properties" and not (key == "title" and "properties" in schema)
    }
    return {**rest, **({"properties": properties} if "properties" in schema else {})}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print the JSON Schema of what --invari-json writes.")
    parser.add_argument("of", choices=SCHEMAS, nargs="?", default="report")
    print(schema_text(SCHEMAS[parser.parse_args().of]()), end="")
