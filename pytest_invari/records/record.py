"""A record: the observations of one subject under one fingerprint, in Parquet files of one folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_invari.cache import atomic_file
from pytest_invari.errors import InvariError
from pytest_invari.observation.observation import Observation, ObservationKey
from pytest_invari.observation.views import described
from pytest_invari.records.manifest import Manifest
from pytest_invari.records.notes import RecordNotes
from pytest_invari.records.rows import read_observations, write_observations

if TYPE_CHECKING:
    from pytest_invari.observation.plan import SubjectName
    from pytest_invari.tasks.task import TaskSet


MANIFEST = "manifest.json"
TASKS = "tasks.parquet"
VIEWS = "views"
# Files written one by one during a run are merged when there are this many.
MOST_PARTS = 256
# Another process that merges the same folder may remove a file between its listing and its reading.
READ_ATTEMPTS = 5
# A temporary file of this age was left by a process that was killed.
ABANDONED_SECONDS = 86_400.0


class Record:
    """The observations of one subject under one fingerprint.

    They lie in small Parquet files with names of their own, each written whole or not at all, and
    several processes may write at once. A view that is in two files (a process ended while merging
    them, or two ranked it at once) counts once: the first that did not fail. Which views were there twice
    with different answers is kept, since merging leaves one of them.
    """

    def __init__(self, path: Path, manifest: Manifest, subject: SubjectName) -> None:
        self.path = path
        self.manifest = manifest
        self.subject = subject
        self._written: list[Path] = []
        self.notes = RecordNotes(path)
        self._contradicted: set[ObservationKey] = set()

    @property
    def is_imported(self) -> bool:
        """Whether the rankings were made elsewhere: the orders shown are then theirs, not ours."""
        return self.manifest.is_imported

    @property
    def exists(self) -> bool:
        """Whether anything has been kept, or is about to be."""
        return (self.path / MANIFEST).is_file()

    def create(self, tasks: TaskSet) -> None:
        """Make the folder, unless it is there, with the tasks first and the manifest last."""
        from pytest_invari.tasks.taskfile import write_tasks

        if not (self.path / TASKS).is_file():
            write_tasks(self.path / TASKS, tasks)
        if self.exists:
            Manifest.read(self.path / MANIFEST)
            return
        with atomic_file(self.path / MANIFEST) as temporary:
            temporary.write_text(self.manifest.to_json(), encoding="utf-8")

    @property
    def disagreements(self) -> set[ObservationKey]:
        """Query and view of what runs that ranked at once did not agree on, as far as it was read or merged.

        Raises:
            InvariError: the file is damaged.
        """
        return self._contradicted | self.notes.disagreements()

    def tasks(self) -> TaskSet:
        """The tasks that were ranked, from the copy beside the observations.

        Raises:
            InvariError: they are missing or not those of the manifest.
        """
        from pytest_invari.tasks.task import content_hash
        from pytest_invari.tasks.taskfile import read_tasks

        tasks = read_tasks(self.path / TASKS, self.subject.dataset)
        if content_hash(tasks.tasks) != self.manifest.asked.get("tasks_sha256"):
            raise InvariError(f"{self.path / TASKS}: not the tasks that were ranked; restore the file")
        return tasks

    def read(self, *, strict: bool = False) -> dict[ObservationKey, Observation]:
        """All observations by query and view; with *strict*, no view may be there with two answers.

        Raises:
            InvariError: a file is torn, no file of records, has another fingerprint or a row that cannot
                be, or contradicts another.
        """
        for _ in range(READ_ATTEMPTS):
            parts = self._parts()
            kept, read = self._gather(parts, strict)
            if read == parts:
                return kept
        raise InvariError(f"{self.path}: keeps changing while it is read; let the other run end first")

    def take_over(self, others: Sequence[Record], tasks: TaskSet, wanted: Collection[ObservationKey]) -> None:
        """Keep what is *wanted* of those *tasks* that *others* have with equal content.

        Raises:
            InvariError: as :meth:`read` and :meth:`tasks`.
        """
        missing = set(wanted) - self.read().keys() if others else set()
        if not missing:
            return
        contents = _contents(tasks)
        found: dict[ObservationKey, Observation] = {}
        for other in others:
            theirs = _contents(other.tasks())
            same = {query_id for query_id, content in contents.items() if theirs.get(query_id) == content}
            for key, seen in other.read().items():
                if key in missing and seen.query_id in same and _replaces(seen, found.get(key)):
                    found[key] = seen
        if found:
            self.append(list(found.values()))

    def append(self, observations: Sequence[Observation]) -> None:
        """Keep these in a file of their own."""
        self._written.append(self._write(observations))
        if len(self._written) >= MOST_PARTS:
            self._merge(self._written)

    def compact(self) -> None:
        """Merge all files into one. It is complete before the others are removed."""
        parts = self._parts()
        if len(parts) > 1:
            self._merge(parts)
        for leftover in (self.path / VIEWS).glob(".*.parquet"):
            with contextlib.suppress(OSError):
                if time.time() - leftover.stat().st_mtime > ABANDONED_SECONDS:
                    leftover.unlink()

    def _parts(self) -> list[Path]:
        return sorted((self.path / VIEWS).glob("part-*.parquet"))

    def _gather(
        self, parts: Iterable[Path], strict: bool = False
    ) -> tuple[dict[ObservationKey, Observation], list[Path]]:
        """The observations in these files, and those of the files that were still there."""
        kept: dict[ObservationKey, Observation] = {}
        places: dict[ObservationKey, Path] = {}
        read = []
        for path in parts:
            found = read_observations(path, self.manifest.fingerprint)
            if found is None:
                continue
            read.append(path)
            for seen in found:
                known = kept.get(seen.key)
                if known is not None and (unlike := _unlike(known, seen)):
                    if strict:
                        raise InvariError(_contradiction(unlike, places[seen.key], seen, path))
                    self._contradicted.add(seen.key)
                if _replaces(seen, known):
                    kept[seen.key] = seen
                    places[seen.key] = path
        return kept, read

    def _merge(self, parts: Iterable[Path]) -> None:
        kept, read = self._gather(parts)
        self._write(list(kept.values()))
        if self._contradicted:
            self.notes.keep_disagreements(self.disagreements)
        _flush_folder(self.path / VIEWS)
        for path in read:
            path.unlink(missing_ok=True)
        self._written = []

    def _write(self, observations: Sequence[Observation]) -> Path:
        # Sorted by name, parts are in the order in which they were written.
        name = f"part-{time.time_ns():020d}-{os.getpid()}-{secrets.token_hex(3)}.parquet"
        path = self.path / VIEWS / name
        with atomic_file(path) as temporary:
            write_observations(temporary, observations, self.subject, self.manifest.fingerprint)
        return path


def _contents(tasks: TaskSet) -> dict[str, str]:
    """The hash of each task by its query."""
    from pytest_invari.tasks.task import content_hash

    return {task.query_id: content_hash([task]) for task in tasks.tasks}


def _replaces(seen: Observation, known: Observation | None) -> bool:
    """Whether an answer is the one to keep: the first, unless that failed and this one did not."""
    return known is None or (known.ranking.status == "failed" and seen.ranking.status != "failed")


def _unlike(one: Observation, other: Observation) -> list[str]:
    """In what two rows of one view contradict each other. A failure was tried again: it may differ."""
    answers = {
        "input": (one.shown, other.shown),
        "status": (one.ranking.status, other.ranking.status),
        "output": (one.ranking.order, other.ranking.order),
        "scores": (one.ranking.scores, other.ranking.scores),
    }
    if "failed" in answers["status"]:
        answers = {"input": answers["input"]}
    return [name for name, (known, seen) in answers.items() if known != seen]


def _contradiction(unlike: Sequence[str], first: Path, other: Observation, second: Path) -> str:
    between, remedy = "is there twice", "; remove the file"
    if first != second:
        between = f"is also in {first.name}"
        remedy = (
            ", as when several runs have ranked at once; a run with these records and no --invari-replay "
            "keeps the first and says so"
        )
    return (
        f"{second}: query {other.query_id!r}, {described(other.view)} {between}, with another "
        f"{' and '.join(unlike)}{remedy}"
    )


def _flush_folder(path: Path) -> None:
    """Make renames in a folder survive a loss of power; Windows cannot open folders and does it itself."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
