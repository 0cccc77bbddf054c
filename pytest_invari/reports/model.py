"""What the models of reports are made of: kinds of values, and objects all of whose keys are declared."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from pytest_invari.metrics.standing import COSTS

Count = Annotated[int, Meta(ge=0)]
Length = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
CLOSED = "closed"
"""Marks a mapping that has the declared keys alone."""

NULLABLE = "nullable"
"""Marks what has another value in memory where the file has null."""

Number = Annotated[float, Meta(extra_json_schema={NULLABLE: True})]
"""NaN in memory, and null in the file, where it is undefined."""

Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Distance = Annotated[float, Meta(ge=0)]


def says(description: str) -> Meta:
    """What a field means, for its schema."""
    return Meta(description=description)


def costs(kind: str | list[str], words: str) -> Meta:
    """The keys of an object with a value of this *kind* for each kind of cost."""
    properties = {name: {"description": words.format(name), "type": kind} for name in COSTS}
    return Meta(extra_json_schema={"properties": properties, "required": list(COSTS), CLOSED: True})


class Model(Struct, forbid_unknown_fields=True):
    """An object all of whose keys are declared."""


class IntervalModel(Model):
    """An estimate over queries with its interval."""

    estimate: Annotated[Number, says("the estimate over queries; null where it is undefined")]
    low: Annotated[Number, says("lower end of the 95% interval")]
    high: Annotated[Number, says("upper end of the 95% interval")]
    n: Annotated[Count, says("queries with a value")]


Reason = Annotated[str | None, says("code of why there is no interval; null where there is one")]
Undefined = Annotated[Count, says("queries without a value")]
