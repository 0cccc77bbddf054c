"""Baselines as files ``invari-baseline/1``: JSON whose every line is one query's value or one fact."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_invari.errors import InvariError
from pytest_invari.records.manifest import Scalar

FORMAT = "invari-baseline/1"

StoredCounts = tuple[tuple[int, ...], int]
"""What one query adds to a pooled metric: its counts, and what they are out of."""

Value = float | str | StoredCounts
"""What one query has: a number, the reason code of why it has none, or its counts."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One metric of one subject: ``made`` says of what, by dotted keys; ``queries`` has the values."""

    made: Mapping[str, Scalar]
    queries: Mapping[str, Value]


def read_baseline(path: Path) -> dict[str, Entry]:
    """The entries of a baseline by their ids, such as ``recsys26::loc[sgs-movielens_small-K10]``.

    Raises:
        InvariError: the file cannot be read, or is no baseline; where it can be told, line, entry or query.
    """
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise InvariError(f"{path}:{error.lineno}: not JSON ({error.msg}); {_REMEDY}") from None
    except FileNotFoundError:
        raise InvariError(f"{path}: there is no such file; make it with --invari-save={path}") from None
    except OSError as error:
        raise InvariError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError) as error:
        raise InvariError(f"{path}: cannot be read as a baseline ({error}); {_REMEDY}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvariError(f"{path}: not a baseline of format {FORMAT}; {_REMEDY}")
    entries = content.get("entries")
    if not isinstance(entries, dict):
        raise InvariError(f"{path}: 'entries' is not an object; {_REMEDY}")
    return {name: _entry(f"{path}: {name}", entry) for name, entry in entries.items()}


def write_text(entries: Mapping[str, Entry]) -> str:
    """The whole file: sorted, a line for each fact and each query, so that versions differ by lines."""
    blocks = {
        name: [
            '   "made": {',
            *_lines({key: _quoted(value) for key, value in entry.made.items()}, "    "),
            "   },",
            '   "queries": {',
            *_lines({query: _quoted(value) for query, value in entry.queries.items()}, "    "),
            "   }",
        ]
        for name, entry in entries.items()
    }
    written = ["\n".join([f"  {_quoted(name)}: {{", *blocks[name], "  }"]) for name in sorted(blocks)]
    body = ",\n".join(written)
    return f'{{\n "format": {_quoted(FORMAT)},\n "entries": {{\n{body}\n }}\n}}\n'


_REMEDY = "restore it, or make it anew with --invari-save"


def _lines(values: Mapping[str, str], indent: str) -> list[str]:
    lines = [f"{indent}{_quoted(key)}: {values[key]}," for key in sorted(values)]
    return [*lines[:-1], lines[-1].removesuffix(",")] if lines else []


def _quoted(value: object) -> str:
    """JSON on one line; text that a terminal or an editor might obey is escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if text.isprintable() else json.dumps(value, allow_nan=False)


def _without_repeats(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """What a merge of two versions may leave is a key twice, of which JSON would take the last."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key!r} is there twice")
        found[key] = value
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no value")


def _entry(where: str, given: object) -> Entry:
    made = given.get("made") if isinstance(given, dict) else None
    queries = given.get("queries") if isinstance(given, dict) else None
    if not isinstance(made, dict) or not isinstance(queries, dict):
        raise InvariError(f"{where}: lacks 'made' or 'queries'; {_REMEDY}")
    for key, value in made.items():
        if not (value is None or isinstance(value, bool | int | float | str)):
            raise InvariError(f"{where}: made: {key!r} is not one value; {_REMEDY}")
    return Entry(
        made, {query: _value(f"{where}: query {query!r}", value) for query, value in queries.items()}
    )


def _value(where: str, given: object) -> Value:
    if isinstance(given, str):
        return given
    if isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given):
        return float(given)
    if isinstance(given, list) and len(given) == 2 and isinstance(given[0], list):
        counts, total = given
        if all(_is_count(each) for each in (*counts, total)):
            return tuple(counts), total
    raise InvariError(f"{where} has no number, reason or counts; {_REMEDY}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
