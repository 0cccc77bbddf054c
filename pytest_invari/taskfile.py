"""Task files: a data set of queries and candidate lists, as Parquet or as JSON Lines.

One row (or line) is one query::

    query_id        text
    text            text or null                the query, where there is one
    history         list of {text, rating}      newest first; rating is a number or null
    candidates      list of {id, text, relevance, group, meta}, in the first stage's order
                    relevance: a grade, 0 or null for an irrelevant item; group: text or null;
                    meta: a JSON object, written as text in Parquet, or null
    relevant_total  integer or null             all held-out positives; null: those in the list

Only ``query_id`` and ``candidates``, and of a candidate ``id`` and ``text``, must be there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_invari.cache import atomic_file
from pytest_invari.errors import InvariError, unknown_name
from pytest_invari.protocol import Candidate, Context, HistoryEntry
from pytest_invari.tasks import Task, TaskSet, task_row

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_tasks", "write_tasks"]

ROW_KEYS = ("query_id", "text", "history", "candidates", "relevant_total")
HISTORY_KEYS = ("text", "rating")
CANDIDATE_KEYS = ("id", "text", "relevance", "group", "meta")
DESCRIPTION_KEY = b"pytest_invari.description"


def read_tasks(path: str | Path, name: str | None = None) -> TaskSet:
    """Read a task file; its name is *name*, or the file's own without the ending.

    Raises:
        InvariError: the file is missing, empty, not what its ending says, or a row breaks the schema;
            the message names the file, the line or row, and the query and candidate where known.
    """
    path = Path(path)
    rows, description = _reader(path)
    tasks: list[Task] = []
    places: dict[str, str] = {}
    for place, row in rows:
        task = _parse_task(row, place)
        if task.query_id in places:
            raise InvariError(
                f"{place}: query id {task.query_id!r} was used before ({places[task.query_id]}); "
                "every query needs an id of its own"
            )
        places[task.query_id] = place.rpartition(": ")[2]
        tasks.append(task)
    if not tasks:
        raise InvariError(f"{path}: holds no tasks; a task file needs at least one row")
    return TaskSet.of(path.stem if name is None else name, tasks, description)


def write_tasks(path: str | Path, tasks: TaskSet) -> None:
    """Write a task set as Parquet (``.parquet``) or JSON Lines (``.jsonl``), whole or not at all.

    Raises:
        InvariError: another ending, a folder that cannot be written to, or tasks that
            ``read_tasks`` would refuse.
    """
    path = Path(path)
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    for task in tasks.tasks:
        row = task_row(task)
        _parse_task(row, f"{path}: task {len(rows) + 1}")
        if task.query_id in seen:
            raise InvariError(f"{path}: query id {task.query_id!r} is used by two tasks")
        seen.add(task.query_id)
        rows.append(row)
    if not rows:
        raise InvariError(f"{path}: there are no tasks to write")
    match path.suffix:
        case ".parquet":
            _write_parquet(path, rows, tasks.description)
        case ".jsonl":
            _write_jsonl(path, rows)
        case _:
            raise _unknown_ending(path)


def _reader(path: Path) -> tuple[Iterator[tuple[str, Any]], str]:
    """The rows of a file, each with the place to name in an error, and the file's description."""
    if path.suffix not in (".parquet", ".jsonl"):
        raise _unknown_ending(path)
    if not path.is_file():
        raise InvariError(f"{path}: there is no such file")
    try:
        path.open("rb").close()
    except OSError as error:
        raise InvariError(f"{path}: cannot be read ({error.strerror or error})") from None
    return _read_parquet(path) if path.suffix == ".parquet" else (_read_jsonl(path), "")


def _unknown_ending(path: Path) -> InvariError:
    return InvariError(f"{path}: a task file ends in .parquet or .jsonl, not in {path.suffix!r}")


# JSON Lines


def _read_jsonl(path: Path) -> Iterator[tuple[str, Any]]:
    # Only b"\n" ends a line here: text may hold U+2028 and other characters that str.splitlines splits at.
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                continue
            place = f"{path}: line {number}"
            try:
                yield place, _load_json(line.rstrip(b"\r\n").decode("utf-8"))
            except UnicodeDecodeError as error:
                raise InvariError(f"{place}: is not UTF-8 text (byte {error.start + 1})") from None
            except RecursionError:
                raise InvariError(f"{place}: is nested too deeply to be a task") from None
            except json.JSONDecodeError as error:
                raise InvariError(f"{place}: is not JSON ({error.msg}, column {error.colno})") from None
            except ValueError as error:
                raise InvariError(f"{place}: {error}") from None


def _load_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key!r} stands twice in one object")
        found[key] = value
    return found


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _write_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as lines:
        for row in rows:
            lines.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")


# Parquet


def _schema() -> pa.Schema:
    import pyarrow as pa

    text, number = pa.string(), pa.float64()
    entry = pa.struct([("text", text), ("rating", number)])
    candidate = pa.struct(
        [("id", text), ("text", text), ("relevance", number), ("group", text), ("meta", text)]
    )
    return pa.schema(
        [
            ("query_id", text),
            ("text", text),
            ("history", pa.list_(entry)),
            ("candidates", pa.list_(candidate)),
            ("relevant_total", pa.int64()),
        ]
    )


def _read_parquet(path: Path) -> tuple[Iterator[tuple[str, Any]], str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as opened:
            table = pq.ParquetFile(opened, page_checksum_verification=True).read()
    except (pa.ArrowInvalid, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else "no reason given"
        raise InvariError(f"{path}: is not a Parquet file that can be read ({reason})") from None
    description = (table.schema.metadata or {}).get(DESCRIPTION_KEY, b"").decode(errors="replace")
    for column in table.column_names:
        if column not in ROW_KEYS:
            raise unknown_name("column", column, ROW_KEYS, str(path))

    def rows() -> Iterator[tuple[str, Any]]:
        number = 0
        for batch in table.to_batches():
            for row in batch.to_pylist():
                number += 1
                yield f"{path}: row {number}", row

    return rows(), description


def _write_parquet(path: Path, rows: list[dict[str, Any]], description: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for row in rows:
        for candidate in row["candidates"]:
            if candidate["meta"] is not None:
                candidate["meta"] = json.dumps(candidate["meta"], ensure_ascii=False, allow_nan=False)
    schema = _schema().with_metadata({DESCRIPTION_KEY: description.encode()})
    table = pa.Table.from_pylist(rows, schema=schema)
    with atomic_file(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


# The schema, checked the same way whatever the file


def _parse_task(row: Any, place: str) -> Task:
    _check_object(row, "a task", ROW_KEYS, place)
    query_id = _text(row, "query_id", place)
    place = f"{place}, query {query_id!r}"
    candidates: dict[str, Candidate] = {}
    relevance: dict[str, float] = {}
    groups: dict[str, str] = {}
    for number, entry in enumerate(_list(row, "candidates", place), start=1):
        here = f"{place}, candidate {number}"
        _check_object(entry, "a candidate", CANDIDATE_KEYS, here)
        item = _text(entry, "id", here)
        here = f"{place}, candidate {item!r}"
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
    return Task(query_id, context, tuple(candidates.values()), relevance, total, groups)


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
    if total < in_list:
        raise InvariError(
            f"{place}: relevant_total is {total}, but {in_list} candidates are relevant; it counts all of "
            "the query's relevant items, in the list or not"
        )
    return total


def _meta(entry: Mapping[str, Any], place: str) -> dict[str, Any]:
    meta = entry.get("meta")
    if isinstance(meta, str):
        try:
            meta = _load_json(meta)
        except (ValueError, RecursionError) as error:
            raise InvariError(f"{place}: meta is not JSON ({error})") from None
    if meta is None:
        return {}
    if not isinstance(meta, dict):
        raise _wrong_type("meta", "a JSON object or null", meta, place)
    try:
        # Also refuses what a file cannot hold, when the tasks come from code.
        json.dumps(meta, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvariError(f"{place}: meta cannot be written as JSON ({error})") from None
    return meta


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
    names = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        dict: "an object",
    }
    return "null" if value is None else f"{names.get(type(value), type(value).__name__)} ({_short(value)})"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
