"""One row of a task file as a task: what it may hold, checked the same way whatever the file."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pytest_invari.errors import InvariError, counted, unknown_name
from pytest_invari.protocol import Candidate, Context, HistoryEntry
from pytest_invari.tasks.task import STRATA, Stratum, Task

ROW_KEYS = ("query_id", "text", "history", "candidates", "relevant_total", "stratum")
HISTORY_KEYS = ("text", "rating")
CANDIDATE_KEYS = ("id", "text", "relevance", "group", "meta")

# The largest integer of Parquet's int64, in which totals are written.
LARGEST_TOTAL = 2**63 - 1
# No meta data of an item needs more, and Python's own limit depends on who calls.
DEEPEST_META = 50


def parse_task(row: Any, place: str) -> Task:
    """Read a row; *place* names it in errors.

    Raises:
        InvariError: it breaks the schema that :mod:`pytest_invari.tasks.taskfile` describes.
    """
    _check_object(row, "a task", ROW_KEYS, place)
    query_id = _text(row, "query_id", place)
    place = f"{place}, query {_short(query_id)}"
    candidates: dict[str, Candidate] = {}
    relevance: dict[str, float] = {}
    groups: dict[str, str] = {}
    for number, entry in enumerate(_list(row, "candidates", place), start=1):
        here = f"{place}, candidate {number}"
        _check_object(entry, "a candidate", CANDIDATE_KEYS, here)
        item = _text(entry, "id", here)
        here = f"{place}, candidate {_short(item)}"
        if item in candidates:
            raise InvariError(f"{here}: stands twice in the list; candidate ids must be distinct")
        candidates[item] = Candidate(item, _text(entry, "text", here), _meta(entry, here))
        grade = _number(entry, "relevance", here)
        if grade is not None and grade < 0:
            raise InvariError(f"{here}: relevance is {grade:g}; a grade is 0 (irrelevant) or more")
        if grade:
            relevance[item] = grade
        group = _optional_text(entry, "group", here)
        if group is not None:
            groups[item] = group
    if not candidates:
        raise InvariError(f"{place}: candidates is empty; there is nothing to rank")
    context = Context(_optional_text(row, "text", place) or "", tuple(_history(row, place)))
    total = _relevant_total(row, len(relevance), place)
    stratum = _stratum(row, place)
    if stratum == "controlled":
        _check_controlled({groups.get(item) for item in relevance}, place)
    return Task(query_id, context, tuple(candidates.values()), relevance, total, groups, stratum)


def _history(row: Mapping[str, Any], place: str) -> Iterator[HistoryEntry]:
    if row.get("history") is None:
        return
    for number, entry in enumerate(_list(row, "history", place), start=1):
        here = f"{place}, history entry {number}"
        _check_object(entry, "a history entry", HISTORY_KEYS, here)
        yield HistoryEntry(_text(entry, "text", here), _number(entry, "rating", here))


def _relevant_total(row: Mapping[str, Any], in_list: int, place: str) -> int:
    total = row.get("relevant_total")
    if total is None:
        return in_list
    if isinstance(total, bool) or not isinstance(total, int):
        raise _wrong_type("relevant_total", "an integer or null", total, place)
    if total > LARGEST_TOTAL:
        raise InvariError(f"{place}: relevant_total is larger than any count can be")
    if total < in_list:
        raise InvariError(
            f"{place}: relevant_total is {total}, but {counted(in_list, 'candidate')} "
            f"{'is' if in_list == 1 else 'are'} relevant; it counts all of the query's relevant "
            "items, in the list or not"
        )
    return total


def _stratum(row: Mapping[str, Any], place: str) -> Stratum:
    name = _optional_text(row, "stratum", place)
    if name is None:
        return ""
    for stratum in STRATA:
        if name == stratum:
            return stratum
    raise unknown_name("stratum", name, STRATA, place)


def _check_controlled(groups: Collection[str | None], place: str) -> None:
    """Refuse a controlled list without a target: the groups of its relevant candidates must be both."""
    missing = [group for group in ("head", "tail") if group not in groups]
    if missing:
        raise InvariError(
            f"{place}: a controlled list has relevant candidates of the groups head and tail; this one has "
            f"none of {' and none of '.join(missing)}"
        )


def _meta(entry: Mapping[str, Any], place: str) -> dict[str, Any]:
    meta = entry.get("meta")
    if isinstance(meta, str):
        try:
            meta = load_json(meta)
        except (ValueError, RecursionError) as error:
            raise InvariError(f"{place}: meta is not JSON ({error})") from None
    if meta is None:
        return {}
    if not isinstance(meta, dict):
        raise _wrong_type("meta", "a JSON object or null", meta, place)
    if _nests_beyond(DEEPEST_META, meta):
        raise InvariError(f"{place}: meta is nested deeper than {DEEPEST_META} levels")
    try:
        # Also refuses what a file cannot hold, when the tasks come from code.
        json.dumps(meta, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvariError(f"{place}: meta cannot be written as JSON ({error})") from None
    return meta


def _nests_beyond(levels: int, value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_nests_beyond(levels - 1, each) for each in inner)


def _check_object(value: Any, what: str, known: Iterable[str], place: str) -> None:
    if not isinstance(value, Mapping):
        raise InvariError(
            f"{place}: {what} must be an object with the keys {', '.join(known)}, not {_kind(value)}"
        )
    for key in value:
        if key not in known:
            raise unknown_name("key", key, known, place)


def _list(row: Mapping[str, Any], key: str, place: str) -> list[Any]:
    value = row.get(key)
    if value is None:
        raise InvariError(f"{place}: has no {key}")
    if not isinstance(value, list):
        raise _wrong_type(key, "a list", value, place)
    return value


def _text(row: Mapping[str, Any], key: str, place: str) -> str:
    value = _optional_text(row, key, place)
    if value is None or not value.strip():
        raise InvariError(f"{place}: has no {key}" if value is None else f"{place}: {key} is blank")
    return value


def _optional_text(row: Mapping[str, Any], key: str, place: str) -> str | None:
    value = row.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _wrong_type(key, "text", value, place)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        code = ord(value[error.start])
        raise InvariError(f"{place}: {key} holds half a surrogate pair (U+{code:04X})") from None
    return value


def _number(row: Mapping[str, Any], key: str, place: str) -> float | None:
    value = row.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong_type(key, "a number or null", value, place)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvariError(
            f"{place}: {key} is {value if isinstance(value, float) else 'too large'}; it must be finite"
        )
    return number


def _wrong_type(key: str, expected: str, value: Any, place: str) -> InvariError:
    return InvariError(f"{place}: {key} must be {expected}, not {_kind(value)}")


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    names = {
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        dict: "an object",
    }
    return f"{names.get(type(value), type(value).__name__)} ({_short(value)})"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def load_json(text: str) -> Any:
    """Read JSON more strictly than the standard library does.

    Raises:
        ValueError: it is not JSON, a key stands twice in one object, or a number is NaN, infinite or has
            more digits than Python reads.
        RecursionError: it is nested too deeply.
    """
    return json.loads(
        text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant, parse_int=_read_integer
    )


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key!r} stands twice in one object")
        found[key] = value
    return found


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _read_integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise ValueError(f"a number of {len(digits):,} digits is too long to be read") from None
