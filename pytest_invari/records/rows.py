"""Rows: an observation as a row of a Parquet file, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pytest_invari.errors import InvariError
from pytest_invari.observation.observation import Observation
from pytest_invari.observation.views import described
from pytest_invari.protocol import Cost, Ranking, Status

if TYPE_CHECKING:
    import pyarrow as pa

    from pytest_invari.observation.plan import SubjectName


# Rows that are turned into Python's objects, and back, at a time: many files are larger than memory likes.
CHUNK = 1000
COUNTS = ("calls", "depth", "tokens_in", "tokens_cached", "tokens_out")


def schema() -> pa.Schema:
    """The columns: what was ranked by what, the order shown, the answer, its status, cost and diagnostics.

    ``scores`` are aligned with ``output``, null where the reranker gave none; ``diagnostics`` is a JSON
    object. A ranking that failed has no output; its diagnostics say why under ``fault``.
    """
    import pyarrow as pa

    text, count = pa.string(), pa.int64()
    names = {
        "dataset": text,
        "query_id": text,
        "view": text,
        "reranker": text,
        "fingerprint": text,
        "input": pa.list_(text),
        "output": pa.list_(text),
        "scores": pa.list_(pa.float64()),
        "status": text,
        **dict.fromkeys(COUNTS, count),
        "seconds": pa.float64(),
        "diagnostics": text,
    }
    return pa.schema([pa.field(name, kind, nullable=name == "scores") for name, kind in names.items()])


def write_observations(
    path: Path, observations: Sequence[Observation], subject: SubjectName, fingerprint: str
) -> None:
    """Write a file of rows.

    Raises:
        InvariError: an id is not valid Unicode.
    """
    import pyarrow as pa
    import pyarrow.parquet

    columns = schema()
    try:
        with pyarrow.parquet.ParquetWriter(path, columns, write_page_checksum=True) as writer:
            for start in range(0, len(observations), CHUNK):
                part = observations[start : start + CHUNK]
                rows = [_row(seen, subject, fingerprint) for seen in part]
                writer.write_table(pa.Table.from_pylist(rows, columns))
    except UnicodeEncodeError as error:
        raise InvariError(
            f"records cannot hold {error.object!r}: it is not valid Unicode; give that query or candidate "
            "another id"
        ) from None


def read_observations(path: Path, fingerprint: str) -> list[Observation] | None:
    """Read a file of rows; None when the file is gone.

    Raises:
        InvariError: the file is torn, is no file of records, or has a row that cannot be: of another
            fingerprint, with an output that is not an order of its input, or with an impossible cost.
    """
    import pyarrow as pa
    import pyarrow.parquet

    expected = schema()
    try:
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            found = file.schema_arrow
            lacking = [field.name for field in expected if found.get_field_index(field.name) < 0]
            if lacking:
                raise InvariError(f"{path}: not a file of records, it lacks {', '.join(lacking)}; remove it")
            ids: dict[str, str] = {}
            observations = []
            for batch in file.iter_batches(CHUNK, columns=expected.names):
                rows = batch.select(expected.names).cast(expected).to_pylist()
                observations += [_observation(row, fingerprint, path, ids) for row in rows]
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvariError(
            f"{path}: torn, or not a file of records ({reason}); remove it and its views are ranked again"
        ) from None
    return observations


def _row(seen: Observation, subject: SubjectName, fingerprint: str) -> dict[str, Any]:
    ranking = seen.ranking
    return {
        "dataset": subject.dataset,
        "query_id": seen.query_id,
        "view": seen.view,
        "reranker": subject.reranker,
        "fingerprint": fingerprint,
        "input": seen.shown,
        "output": ranking.order,
        "scores": ranking.scores,
        "status": ranking.status,
        **{name: int(getattr(ranking.cost, name)) for name in COUNTS},
        "seconds": float(ranking.cost.seconds),
        # Escaped, so that a fault's text may hold what is not valid Unicode.
        "diagnostics": json.dumps(ranking.diagnostics),
    }


def _observation(row: Mapping[str, Any], fingerprint: str, path: Path, ids: dict[str, str]) -> Observation:
    """The observation that a row holds; *ids* holds each text once that stands in many rows."""
    where = f"{path}: query {row['query_id']!r}, {described(row['view'])}"
    if row["fingerprint"] != fingerprint:
        raise InvariError(f"{where}: has another fingerprint than its folder's manifest; remove the file")
    status = row["status"]
    if status not in get_args(Status):
        raise InvariError(f"{where}: unknown status {status!r}; remove the file")
    if status != "failed" and sorted(row["output"]) != sorted(row["input"]):
        raise InvariError(f"{where}: the output is not an order of the input; remove the file")
    try:
        diagnostics = json.loads(row["diagnostics"])
    except ValueError as error:
        raise InvariError(f"{where}: diagnostics are not JSON ({error}); remove the file") from None
    cost = Cost(**{name: row[name] for name in COUNTS}, seconds=row["seconds"])
    if cost.fault:
        raise InvariError(f"{where}: {cost.fault}; remove the file")
    scores = row["scores"]
    ranking = Ranking(
        tuple(ids.setdefault(item, item) for item in row["output"]),
        None if scores is None else tuple(scores),
        cost,
        status,
        diagnostics,
    )
    shown = tuple(ids.setdefault(item, item) for item in row["input"])
    query_id, view = (ids.setdefault(row[name], row[name]) for name in ("query_id", "view"))
    return Observation(query_id, view, shown, ranking, from_records=True)
