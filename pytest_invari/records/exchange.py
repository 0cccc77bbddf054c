"""Records to a file of rankings and back: what was ranked here is read elsewhere, and the other way round."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_invari.cache import file_hash
from pytest_invari.errors import InvariError, counted
from pytest_invari.observation.plan import SubjectName
from pytest_invari.observation.views import CANONICAL, view_order
from pytest_invari.protocol import Candidate, Context
from pytest_invari.records.folder import RecordFolder
from pytest_invari.records.jsonl import RankingLine, read_rankings, write_rankings
from pytest_invari.records.manifest import Manifest, describe_import, describe_reranker, describe_tasks
from pytest_invari.records.record import Record
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.tasks.task import Task, TaskSet
from pytest_invari.tasks.taskfile import read_tasks
from pytest_invari.text import without_secrets


def export_rankings(folder: Path, file: Path) -> Record:
    """Write the rankings of one reranker on one data set as JSON Lines.

    They are in the order of the tasks, and the views of a query sorted by name: the same records give the
    same bytes, however often a run was interrupted or its bank has grown.

    Args:
        folder: of records, where it holds one subject, or a subject's own folder in it.
        file: where to write.

    Raises:
        InvariError: there is no record or more than one, it is damaged, or the file cannot be written.
    """
    record = RecordFolder(folder).only()
    places = {task.query_id: place for place, task in enumerate(record.tasks().tasks)}
    kept = record.read(strict=True).values()
    if unknown := {seen.query_id for seen in kept} - places.keys():
        raise InvariError(
            f"{record.path}: holds a ranking of query {min(unknown)!r}, which is none of its tasks"
        )
    write_rankings(file, sorted(kept, key=lambda seen: (places[seen.query_id], view_order(seen.view))))
    return record


def import_rankings(
    file: Path, folder: Path, *, reranker: str = "", tasks: Path | None = None, dataset: str = ""
) -> Record:
    """Keep the rankings of a file as records, to be judged by a replay.

    The orders in which its views were shown are the file's own, whatever they are named; only ``canonical``
    must be the data set's order. What is known of the model that made them is in *reranker* alone.

    Args:
        file: as :func:`pytest_invari.records.jsonl.read_rankings` reads it.
        folder: of records; a folder for these is made in it.
        reranker: by which they are asked for, with options where wanted; by default the file's name.
        tasks: a task file with texts, relevance and groups. All its lists, or its first ones, are those that
            were ranked. Without it lists are known by their ids alone.
        dataset: by which they are asked for; by default the task file's name, without one the file's.

    Raises:
        InvariError: the file has a mistake, or does not fit the tasks; the message names file and line.
    """
    spec = RerankerSpec.parse(reranker or file.stem)
    lines = read_rankings(file)
    _require_one_list_a_query(lines)
    name = dataset or (tasks or file).stem
    ranked = _listed(name, lines) if tasks is None else _ranked(name, lines, tasks, file)
    k = len(lines[0].seen.shown)
    manifest = Manifest(
        {**describe_reranker(spec), **describe_tasks(ranked), "k": k},
        environment=describe_import(file_hash(file)),
    )
    records = RecordFolder(folder)
    records.check()
    record = records.open(SubjectName(without_secrets(spec.label), name, k), manifest, ranked)
    if not record.read():
        record.append([line.seen for line in lines])
    return record


def _require_one_list_a_query(lines: Sequence[RankingLine]) -> None:
    """All views of a query show the same candidates, and all lists are of one length."""
    first = lines[0]
    known: dict[str, RankingLine] = {}
    for line in lines:
        seen, length = line.seen, len(first.seen.shown)
        where = f"{line.place}: query {seen.query_id!r}"
        if len(seen.shown) != length:
            raise InvariError(
                f"{where} is shown {counted(len(seen.shown), 'candidate')}, but line {first.number} shows "
                f"{length}; lists of another length need a file of their own"
            )
        other = known.setdefault(seen.query_id, line)
        if alien := set(seen.shown) - set(other.seen.shown):
            raise InvariError(f"{where} is shown {min(alien)!r}, which it is not at line {other.number}")


def _listed(name: str, lines: Sequence[RankingLine]) -> TaskSet:
    """Tasks that know no more than the lines do; without a canonical view, candidates are sorted by id."""
    orders: dict[str, tuple[str, ...]] = {}
    for line in lines:
        seen = line.seen
        orders.setdefault(seen.query_id, tuple(sorted(seen.shown)))
        if seen.view == CANONICAL:
            orders[seen.query_id] = seen.shown
    return TaskSet.of(
        name,
        (
            Task(query_id, Context(), tuple(Candidate(item, item) for item in order))
            for query_id, order in orders.items()
        ),
    )


def _ranked(name: str, lines: Sequence[RankingLine], path: Path, file: Path) -> TaskSet:
    """The tasks of a task file that were ranked."""
    tasks = read_tasks(path, name)
    k = len(lines[0].seen.shown)
    lists = {task.query_id: task.ids[:k] for task in tasks.tasks}
    for line in lines:
        _require_task(line, lists, path)
    queries = {line.seen.query_id for line in lines}
    for task in tasks.tasks[: len(queries)]:
        if task.query_id not in queries:
            raise InvariError(
                f"{file}: has no ranking of query {task.query_id!r} of {path}; rank it, or leave it out there"
            )
    return tasks.head(len(queries)).at_k(k)


def _require_task(line: RankingLine, lists: dict[str, tuple[str, ...]], path: Path) -> None:
    seen = line.seen
    where = f"{line.place}: query {seen.query_id!r}"
    order = lists.get(seen.query_id)
    if order is None:
        raise InvariError(f"{where} is not in {path}")
    if alien := set(seen.shown) - set(order):
        raise InvariError(
            f"{where} is shown {min(alien)!r}, which is not among its first {len(seen.shown)} candidates in "
            f"{path}"
        )
    if seen.view == CANONICAL and seen.shown != order:
        raise InvariError(
            f"{where}, view {CANONICAL!r} is not in the order of {path}; give the order of that file, or "
            "another name to the view"
        )
