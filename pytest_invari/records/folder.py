"""Records: observations as Parquet files in a folder, from which everything after the model is computed."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_invari.cache import atomic_file, why_unwritable
from pytest_invari.errors import InvariError
from pytest_invari.measure.observe import Key, Observation
from pytest_invari.measure.views import described
from pytest_invari.records.manifest import Manifest, Scalar, differences
from pytest_invari.records.notes import Notes
from pytest_invari.records.rows import read_observations, write_observations

if TYPE_CHECKING:
    from pytest_invari.data.tasks import TaskSet
    from pytest_invari.measure.plan import Subject

__all__ = ["Record", "RecordFolder"]

MANIFEST = "manifest.json"
TASKS = "tasks.parquet"
VIEWS = "views"
# What a manifest says of the tasks; unknown to a replay that cannot load the data set.
TASK_KEYS = ("tasks_sha256", "queries")
# What a manifest cannot say of rankings that were made elsewhere.
RUN_KEYS = ("model", "dtype", "labels", "blind_ids")
# Files written one by one during a run are merged when there are this many.
MOST_PARTS = 256
# Another process that merges the same folder may remove a file between its listing and its reading.
READ_ATTEMPTS = 5
# A temporary file of this age was left by a process that was killed.
ABANDONED_SECONDS = 86_400.0


class RecordFolder:
    """The folder a user names: one folder in it for each subject and fingerprint."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self) -> None:
        """Refuse a folder that cannot hold records.

        Raises:
            InvariError: it is a file, or cannot be made or written to.
        """
        nearest = next(path for path in (self.path, *self.path.absolute().parents) if path.exists())
        if not nearest.is_dir():
            where = "is a file" if nearest == self.path else f"{nearest} is a file"
            raise InvariError(f"{self.path}: {where}; records need a folder")
        if reason := why_unwritable(nearest):
            raise InvariError(f"{self.path}: the folder {nearest} cannot be written to ({reason})")

    def open(self, subject: Subject, manifest: Manifest, tasks: TaskSet) -> Record:
        """The record of this subject and manifest, made where there is none, with its tasks beside it."""
        record = Record(self.path / f"{_slug(subject)}-{manifest.fingerprint[:16]}", manifest, subject)
        record.create(tasks)
        return record

    def of(self, subject: Subject, asked: Mapping[str, Scalar]) -> list[Record]:
        """The records of a subject that runs with these settings made, whatever the reranker said of itself.

        Args:
            subject: whose folders are looked at.
            asked: as in :meth:`find`.

        Raises:
            InvariError: the manifest of one of the subject's folders is damaged.
        """
        manifests = {folder: Manifest.read(folder / MANIFEST) for folder in self._folders(_slug(subject))}
        return [
            Record(folder, manifest, subject)
            for folder, manifest in manifests.items()
            if not manifest.is_imported and not _differences(manifest, asked)
        ]

    def siblings(self, record: Record) -> list[Record]:
        """The records that were made with the same as this one, but for the choice of tasks.

        Raises:
            InvariError: as :meth:`of`.
        """
        alike = self.of(record.subject, _but_for_tasks(record.manifest.asked))
        return [
            other
            for other in alike
            if other.path != record.path
            and other.manifest.reranker == record.manifest.reranker
            and other.manifest.environment == record.manifest.environment
        ]

    def only(self) -> Record:
        """The one record in this folder, or the record whose own folder it is.

        Raises:
            InvariError: there is none or more than one, or its manifest is damaged.
        """
        folders = [self.path] if (self.path / MANIFEST).is_file() else self._folders()
        if not folders:
            raise InvariError(f"{self.path}: holds no records; run once with --invari-records={self.path}")
        if len(folders) > 1:
            names = ", ".join(folder.name for folder in folders)
            raise InvariError(
                f"{self.path}: holds {len(folders)} records; name one of these folders: {names}"
            )
        manifest = Manifest.read(folders[0] / MANIFEST)
        return Record(folders[0], manifest, manifest.subject)

    def find(self, subject: Subject, asked: Mapping[str, Scalar]) -> Record:
        """The one record that was made with these settings, without building a reranker.

        Args:
            subject: named in errors.
            asked: the part of the manifest to match. Where the tasks' keys (``tasks_sha256``,
                ``queries``) are left out, any tasks fit. Imported rankings fit any model and labels.

        Raises:
            InvariError: no record fits, with what differs in the nearest of the same reranker; or several do.
        """
        found = {folder: Manifest.read(folder / MANIFEST) for folder in self._folders()}
        if not found:
            raise InvariError(
                f"{self.path}: holds no records; run once with --invari-records={self.path} and without "
                "--invari-replay"
            )
        unlike = {folder: _differences(manifest, asked) for folder, manifest in found.items()}
        fitting = [folder for folder in found if not unlike[folder]]
        if len(fitting) > 1:
            raise InvariError(self._ambiguous(subject, {folder: found[folder] for folder in fitting}))
        if not fitting:
            kin = [folder for folder in found if "reranker" not in unlike[folder]]
            told = {folder: _told(unlike[folder], found[folder], subject) for folder in kin}
            raise InvariError(self._unfitting(subject, asked.get("reranker"), found.values(), told))
        return Record(fitting[0], found[fitting[0]], subject)

    def _folders(self, slug: str = "") -> list[Path]:
        """The folders of records, or those whose names begin with a *slug*."""
        begin = f"{slug}-" if slug else ""
        try:
            return sorted(path.parent for path in self.path.glob(f"{begin}*/{MANIFEST}"))
        except OSError as error:
            raise InvariError(f"{self.path}: cannot be read ({error.strerror or error})") from None

    def _unfitting(
        self,
        subject: Subject,
        reranker: Scalar,
        found: Iterable[Manifest],
        told: Mapping[Path, Sequence[str]],
    ) -> str:
        """That nothing fits; *told* says of each record of the same reranker what differs."""
        way_out = "run once without --invari-replay to rank them"
        if not told:
            names = sorted({repr(manifest.asked.get("reranker")) for manifest in found})
            return (
                f"{self.path}: no records fit {subject.label}; there are none of reranker {reranker!r}, only "
                f"of {', '.join(names)}; {way_out}"
            )
        nearest = min(told, key=lambda folder: (len(told[folder]), folder.name))
        return (
            f"{self.path}: no records fit {subject.label}; the nearest are {nearest.name}: "
            f"{'; '.join(told[nearest])}; {way_out}"
        )

    def _ambiguous(self, subject: Subject, fitting: Mapping[Path, Manifest]) -> str:
        flats = [manifest.flat for manifest in fitting.values()]
        keys = sorted({key for one, other in itertools.pairwise(flats) for key in differences(one, other)})
        return (
            f"{self.path}: {len(fitting)} records fit {subject.label} and differ in {', '.join(keys)} (see "
            f"their {MANIFEST}); move all but one out of there: {', '.join(each.name for each in fitting)}"
        )


class Record:
    """The observations of one subject under one fingerprint.

    They lie in small Parquet files with names of their own, each written whole or not at all, and
    several processes may write at once. A view that is in two files (a process ended while merging
    them, or two ranked it at once) counts once: the first that did not fail. Which views were there twice
    with different answers is kept, since merging leaves one of them.
    """

    def __init__(self, path: Path, manifest: Manifest, subject: Subject) -> None:
        self.path = path
        self.manifest = manifest
        self.subject = subject
        self._written: list[Path] = []
        self.notes = Notes(path)
        self._contradicted: set[Key] = set()

    @property
    def is_imported(self) -> bool:
        """Whether the rankings were made elsewhere: the orders shown are then theirs, not ours."""
        return self.manifest.is_imported

    def create(self, tasks: TaskSet) -> None:
        """Make the folder, unless it is there, with the tasks first and the manifest last."""
        from pytest_invari.data.taskfile import write_tasks

        if not (self.path / TASKS).is_file():
            write_tasks(self.path / TASKS, tasks)
        if (self.path / MANIFEST).is_file():
            Manifest.read(self.path / MANIFEST)
            return
        with atomic_file(self.path / MANIFEST) as temporary:
            temporary.write_text(self.manifest.to_json(), encoding="utf-8")

    @property
    def disagreements(self) -> set[Key]:
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
        from pytest_invari.data.taskfile import read_tasks
        from pytest_invari.data.tasks import content_hash

        tasks = read_tasks(self.path / TASKS, self.subject.dataset)
        if content_hash(tasks.tasks) != self.manifest.asked.get("tasks_sha256"):
            raise InvariError(f"{self.path / TASKS}: not the tasks that were ranked; restore the file")
        return tasks

    def read(self, *, strict: bool = False) -> dict[Key, Observation]:
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

    def take_over(self, others: Sequence[Record], tasks: TaskSet, wanted: Collection[Key]) -> None:
        """Keep what is *wanted* of those *tasks* that *others* have with equal content.

        Raises:
            InvariError: as :meth:`read` and :meth:`tasks`.
        """
        missing = set(wanted) - self.read().keys() if others else set()
        if not missing:
            return
        contents = _contents(tasks)
        found: dict[Key, Observation] = {}
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
    ) -> tuple[dict[Key, Observation], list[Path]]:
        """The observations in these files, and those of the files that were still there."""
        kept: dict[Key, Observation] = {}
        places: dict[Key, Path] = {}
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


def _slug(subject: Subject) -> str:
    """How the names of a subject's folders begin."""
    return re.sub(r"[^A-Za-z0-9._=-]+", "_", subject.label).strip("._")[:80]


def _but_for_tasks(asked: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {key: value for key, value in asked.items() if key not in TASK_KEYS}


def _contents(tasks: TaskSet) -> dict[str, str]:
    """The hash of each task by its query."""
    from pytest_invari.data.tasks import content_hash

    return {task.query_id: content_hash([task]) for task in tasks.tasks}


def _replaces(seen: Observation, known: Observation | None) -> bool:
    """Whether an answer is the one to keep: the first, unless that failed and this one did not."""
    return known is None or (known.ranking.status == "failed" and seen.ranking.status != "failed")


def _told(unlike: Mapping[str, str], manifest: Manifest, subject: Subject) -> list[str]:
    """What differs, in words. Another choice of lists changes the tasks' hash, and is told alone."""
    if {"dataset", "k", "queries"} & unlike.keys():
        unlike = {key: words for key, words in unlike.items() if key != "tasks_sha256"}
    changed = (
        "was not there, or another, when they were imported" if manifest.is_imported else "has changed since"
    )
    return [
        f"the task file or data set {subject.dataset!r} {changed}" if key == "tasks_sha256"
        else f"{key}: {words}"
        for key, words in unlike.items()
    ]  # fmt: skip


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
    between = "is there twice" if first == second else f"is also in {first.name}"
    return (
        f"{second}: query {other.query_id!r}, {described(other.view)} {between}, with another "
        f"{' and '.join(unlike)}; remove the file that is wrong"
    )


def _differences(manifest: Manifest, asked: Mapping[str, Scalar]) -> dict[str, str]:
    """What differs between what was recorded and what is asked for, of what both can know."""
    if manifest.is_imported:
        asked = {key: value for key, value in asked.items() if key not in RUN_KEYS}
    known = manifest.asked.items()
    return differences({key: each for key, each in known if key in asked or key not in TASK_KEYS}, asked)


def _flush_folder(path: Path) -> None:
    """Make renames in a folder survive a loss of power; Windows cannot open folders and does it itself."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
