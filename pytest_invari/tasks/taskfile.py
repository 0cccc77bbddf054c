"""Task files: a data set of queries and candidate lists, as Parquet or as JSON Lines.

One row (or line) is one query::

    query_id        text
    text            text or null                the query, where there is one
    history         list of {text, rating}      newest first; rating is a number or null
    candidates      list of {id, text, relevance, group, meta}, in the first stage's order
                    relevance: a grade, 0 or null for an irrelevant item; group: text or null;
                    meta: a JSON object, written as text in Parquet, or null
    relevant_total  integer or null             all held-out positives; null: those in the list
    stratum         text or null                controlled or untouched, the same in every row

Only ``query_id`` and ``candidates``, and of a candidate ``id`` and ``text``, must be there.
A JSON Lines file is UTF-8, with or without a byte order mark; its lines may end as on Windows.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_invari.cache import atomic_file
from pytest_invari.errors import InvariError, unknown_name
from pytest_invari.tasks.task import Task, TaskSet, task_row
from pytest_invari.tasks.taskrow import ROW_KEYS, load_json, parse_task

if TYPE_CHECKING:
    import pyarrow as pa


DESCRIPTION_KEY = b"pytest_invari.description"


def read_tasks(path: str | Path, name: str | None = None) -> TaskSet:
    """Read a task file; its name is *name*, or the file's own without the ending.

    Raises:
        InvariError: the file is missing, empty, not what its ending says, of several strata, or a row
            breaks the schema; the message names the file, the line or row, and the query and candidate
            where known.
    """
    path = Path(path)
    if path.suffix not in (".parquet", ".jsonl"):
        raise _unknown_ending(path)
    if path.is_dir():
        raise InvariError(f"{path}: is a folder; a task file is one file")
    if not path.is_file():
        raise InvariError(f"{path}: there is no such file")
    rows, description = _read_parquet(path) if path.suffix == ".parquet" else (_read_jsonl(path), "")
    tasks: list[Task] = []
    places: dict[str, str] = {}
    for place, row in rows:
        task = parse_task(row, place)
        if task.query_id in places:
            raise InvariError(
                f"{place}: query id {task.query_id!r} was used before ({places[task.query_id]}); "
                "every query needs an id of its own"
            )
        places[task.query_id] = place.rpartition(": ")[2]
        tasks.append(task)
    if not tasks:
        raise InvariError(f"{path}: holds no tasks; a task file needs at least one row")
    try:
        return TaskSet.of(path.stem if name is None else name, tasks, description)
    except InvariError as error:
        raise InvariError(f"{path}: {error}") from None


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
        parse_task(row, f"{path}: task {len(rows) + 1}")
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


def _unknown_ending(path: Path) -> InvariError:
    endings = ".jsonl (one query a line) or .parquet"
    return InvariError(
        f"{path}: a task file ends in {endings}, not in {path.suffix!r}; MovieLens data is a folder or a .zip"
    )


# JSON Lines


def _read_jsonl(path: Path) -> Iterator[tuple[str, Any]]:
    """The rows, each with the place to name in an error."""
    # Only b"\n" ends a line here: text may hold U+2028 and other characters that str.splitlines splits at.
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                if content.strip():
                    place = f"{path}: line {number}"
                    yield place, _read_line(content, place)
    except OSError as error:
        raise InvariError(f"{path}: cannot be read ({error.strerror or error})") from None


def _read_line(line: bytes, place: str) -> Any:
    try:
        return load_json(line.rstrip(b"\r\n").decode("utf-8"))
    except UnicodeDecodeError as error:
        byte = error.start + 1
        raise InvariError(f"{place}: is not UTF-8 text (byte {byte}); save the file as UTF-8") from None
    except RecursionError:
        raise InvariError(f"{place}: is nested too deeply to be a task") from None
    except json.JSONDecodeError as error:
        reason = f"{error.msg}, column {error.colno}"
        raise InvariError(f"{place}: is not JSON ({reason}); each line is one whole query") from None
    except ValueError as error:
        raise InvariError(f"{place}: {error}") from None


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
            ("stratum", text),
        ]
    )


def _read_parquet(path: Path) -> tuple[Iterator[tuple[str, Any]], str]:
    """The same, and the file's description."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as opened:
            table = pq.ParquetFile(opened, page_checksum_verification=True).read()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else "no reason given"
        raise InvariError(f"{path}: is not a Parquet file that can be read ({reason})") from None
    description = (table.schema.metadata or {}).get(DESCRIPTION_KEY, b"").decode(errors="replace")
    for index, column in enumerate(table.column_names):
        if column not in ROW_KEYS:
            raise unknown_name("column", column, ROW_KEYS, str(path))
        if column in table.column_names[:index]:
            raise InvariError(f"{path}: column {column!r} stands twice")
    return _rows(table, path), description


def _rows(table: pa.Table, path: Path) -> Iterator[tuple[str, Any]]:
    import pyarrow as pa

    number = 0
    for batch in table.to_batches():
        for index in range(batch.num_rows):
            number += 1
            place = f"{path}: row {number}"
            try:
                (row,) = batch.slice(index, 1).to_pylist()
            except UnicodeDecodeError:
                raise InvariError(f"{place}: is not UTF-8 text") from None
            except (ValueError, OverflowError, pa.ArrowException) as error:
                raise InvariError(f"{place}: cannot be read ({error})") from None
            yield place, row


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
