"""What the schemas of reports are made of: kinds of values, and objects whose keys are all declared."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_invari.suitefile.values import Schema

TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
NUMBER: Schema = {"type": "number"}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
COUNT: Schema = {"type": "integer", "minimum": 0}
COUNT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 0}
FLAG: Schema = {"type": "boolean"}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
SHARE_OR_NULL: Schema = {"type": ["number", "null"], "minimum": 0, "maximum": 1}

Fields = Mapping[str, tuple[Schema, str]]
"""The keys of an object, each with the schema of its values and what it means."""


def table(fields: Fields, *, optional: tuple[str, ...] = (), is_open: bool = False) -> Schema:
    """An object that has all of *fields*, the *optional* ones perhaps, and others only where it *is_open*."""
    return {
        "type": "object",
        "properties": {name: {"description": meant, **schema} for name, (schema, meant) in fields.items()},
        "required": [name for name in fields if name not in optional],
        **({} if is_open else {"additionalProperties": False}),
    }


def list_of(items: Schema) -> Schema:
    """A list of values that are alike."""
    return {"type": "array", "items": items}


def by_name(values: Schema) -> Schema:
    """An object whose keys are names of metrics, reasons and the like."""
    return {"type": "object", "additionalProperties": values}


def or_null(schema: Schema) -> Schema:
    """What *schema* takes, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def words(*choices: str | None) -> Schema:
    """One of a few words; None stands for null."""
    return {"enum": list(choices)}


INTERVAL: Fields = {
    "estimate": (NUMBER_OR_NULL, "the estimate over queries; null where it is undefined"),
    "low": (NUMBER_OR_NULL, "lower end of the 95% interval"),
    "high": (NUMBER_OR_NULL, "upper end of the 95% interval"),
    "n": (COUNT, "queries with a value"),
}
REASON: Fields = {"reason": (TEXT_OR_NULL, "code of why there is no interval; null where there is one")}
UNDEFINED: Fields = {"undefined": (COUNT, "queries without a value")}
