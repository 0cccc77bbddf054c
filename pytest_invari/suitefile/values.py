"""What a TOML table may hold: its keys, the values that each takes, and the same as JSON Schema.

A declaration is read twice, by :mod:`pytest_invari.suitefile.document` and :mod:`pytest_invari.schema`, so
that what is accepted, what an error says and what an editor knows cannot differ.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pytest_invari.errors import InvariError

Schema = dict[str, Any]
"""A JSON Schema, or a part of one."""

REQUIRED: Final[Any] = object()
"""In place of a default: the key must be there."""

_NOT_BLANK = r"\S"
# TOML's integers: a file with a longer one is not the same to every reader.
_LARGEST = 2**63 - 1


class ValueKind(Protocol):
    """One kind of value."""

    def read(self, name: str, value: object) -> Any:
        """The *value* of the key *name* as the program uses it.

        Raises:
            InvariError: it is of another kind; the message says what was found and what is meant, and
                leaves the place to the caller.
        """

    def schema(self) -> Schema:
        """The values that are accepted, as JSON Schema."""


@dataclass(frozen=True, slots=True)
class SuiteKey:
    """A key of a table: what its value may be, what it means, and what holds when it is left out."""

    name: str
    kind: ValueKind
    description: str
    default: Any = REQUIRED

    def schema(self) -> Schema:
        """The key's own part of the table's JSON Schema."""
        has_default = self.default is not REQUIRED and self.default not in (None, "", (), {})
        return {
            "description": self.description,
            **self.kind.schema(),
            **({"default": self.default} if has_default else {}),
        }


def table_schema(keys: Iterable[SuiteKey], description: str) -> Schema:
    """The JSON Schema of a table that holds *keys* and no others."""
    keys = list(keys)
    return {
        "description": description,
        "type": "object",
        "properties": {key.name: key.schema() for key in keys},
        "required": [key.name for key in keys if key.default is REQUIRED],
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is not blank; with a *pattern*, one that matches it from end to end."""

    pattern: str = ""
    meant: str = "a text in quotes"

    def read(self, name: str, value: object) -> str:
        """See :class:`ValueKind`."""
        if not isinstance(value, str) or not value.strip():
            raise _wrong(name, self.meant, value)
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise _wrong(name, self.meant, value)
        return value

    def schema(self) -> Schema:
        """See :class:`ValueKind`."""
        return {"type": "string", "pattern": f"^{self.pattern}$" if self.pattern else _NOT_BLANK}


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, name: str, value: object) -> str:
        """See :class:`ValueKind`."""
        if not isinstance(value, str) or value not in self.words:
            raise _wrong(name, f"one of {', '.join(map(repr, self.words))}", value)
        return value

    def schema(self) -> Schema:
        """See :class:`ValueKind`."""
        return {"enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class Flag:
    """``true`` or ``false``."""

    def read(self, name: str, value: object) -> bool:
        """See :class:`ValueKind`."""
        if not isinstance(value, bool):
            raise _wrong(name, "true or false", value)
        return value

    def schema(self) -> Schema:
        """See :class:`ValueKind`."""
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class WholeNumber:
    """A whole number from *least* up."""

    least: int = 1

    def read(self, name: str, value: object) -> int:
        """See :class:`ValueKind`."""
        if isinstance(value, bool) or not isinstance(value, int) or not self.least <= value <= _LARGEST:
            raise _wrong(name, f"a whole number of at least {self.least}", value)
        return value

    def schema(self) -> Schema:
        """See :class:`ValueKind`."""
        return {"type": "integer", "minimum": self.least}


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number; where given, from *least* and *below* a limit that it does not reach."""

    least: float = -math.inf
    below: float = math.inf

    def read(self, name: str, value: object) -> float:
        """See :class:`ValueKind`."""
        number = _finite(value)
        if number is None or not self.least <= number < self.below:
            limits = [f"of at least {self.least:g}"] if math.isfinite(self.least) else []
            limits += [f"below {self.below:g}"] if math.isfinite(self.below) else []
            raise _wrong(name, " ".join(["a finite number", " and ".join(limits)]).strip(), value)
        return number

    def schema(self) -> Schema:
        """See :class:`ValueKind`."""
        limits = {"minimum": self.least, "exclusiveMaximum": self.below}
        return {"type": "number"} | {key: limit for key, limit in limits.items() if math.isfinite(limit)}


@dataclass(frozen=True, slots=True)
class BoundValue:
    """A finite number, or one *word* that stands for a number which is known later."""

    word: str
    meaning: str

    def read(self, name: str, value: object) -> float | str:
        """See :class:`ValueKind`."""
        if value == self.word:
            return self.word
        number = _finite(value)
        if number is None:
            raise _wrong(name, f'a finite number or "{self.word}" ({self.meaning})', value)
        return number

    def schema(self) -> Schema:
        """See :class:`ValueKind`."""
        return {"anyOf": [{"type": "number"}, {"const": self.word}]}


@dataclass(frozen=True, slots=True)
class Several:
    """One or more values of a kind, all different; a single one may stand without brackets."""

    kind: ValueKind

    def read(self, name: str, value: object) -> tuple[Any, ...]:
        """See :class:`ValueKind`."""
        if value == []:
            raise InvariError(f"{name} is empty; give at least one value")
        given = value if isinstance(value, list) else [value]
        values = [self.kind.read(name, one) for one in given]
        for index, one in enumerate(values):
            if one in values[:index]:
                raise InvariError(f"{name} names {shown(given[index])} twice")
        return tuple(values)

    def schema(self) -> Schema:
        """See :class:`ValueKind`."""
        one = self.kind.schema()
        return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1, "uniqueItems": True}]}


@dataclass(frozen=True, slots=True)
class Options:
    """A table of texts, numbers and ``true`` or ``false``, and lists of these."""

    def read(self, name: str, value: object) -> dict[str, Any]:
        """See :class:`ValueKind`."""
        if not isinstance(value, dict):
            raise _wrong(name, f"a table, as in {name} = {{at_least = 0.8}}", value)
        for key, one in value.items():
            for each in one if isinstance(one, list) else [one]:
                if not isinstance(each, bool | int | float | str):
                    raise _wrong(f"{name}.{key}", "a text, a number, true or false, or a list of these", each)
        return value

    def schema(self) -> Schema:
        """See :class:`ValueKind`."""
        plain: Schema = {"type": ["string", "number", "boolean"]}
        return {
            "type": "object",
            "additionalProperties": {"anyOf": [plain, {"type": "array", "items": plain}]},
        }


def shown(value: object, most: int = 60) -> str:
    """A value for an error message: on one line, and not longer than a reader wants."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) > _LARGEST:
        return "a number of more than 64 bits"
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, datetime.date | datetime.time):
        return f"the date or time {value.isoformat()}"
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"


def _wrong(name: str, meant: str, value: object) -> InvariError:
    return InvariError(f"{name} must be {meant}, not {shown(value)}")


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int) and abs(value) > _LARGEST:
        return None
    return float(value) if math.isfinite(value) else None
