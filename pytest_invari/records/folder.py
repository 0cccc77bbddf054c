"""The folder of records: one folder in it for each subject and fingerprint, found by what a user asks for."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_invari.cache import why_unwritable
from pytest_invari.errors import InvariError
from pytest_invari.observation.view_settings import ViewSettings, names_deciding
from pytest_invari.records.manifest import Manifest, Scalar, differences
from pytest_invari.records.record import MANIFEST, Record

if TYPE_CHECKING:
    from pytest_invari.observation.plan import SubjectName
    from pytest_invari.tasks.task import TaskSet


# What a manifest says of the tasks; unknown to a replay that cannot load the data set.
TASK_KEYS = ("tasks_sha256", "queries")
# What a manifest cannot say of rankings that were made elsewhere.
RUN_KEYS = ("model", "dtype", *names_deciding(ViewSettings, "requests"))


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

    def at(self, subject: SubjectName, manifest: Manifest) -> Record:
        """The record of this subject and manifest, whether it exists or not."""
        return Record(self.path / f"{_slug(subject)}-{manifest.fingerprint[:16]}", manifest, subject)

    def open(self, subject: SubjectName, manifest: Manifest, tasks: TaskSet) -> Record:
        """The same, made where there is none, with its tasks beside it."""
        record = self.at(subject, manifest)
        record.create(tasks)
        return record

    def of(self, subject: SubjectName, asked: Mapping[str, Scalar]) -> list[Record]:
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

    def find(self, subject: SubjectName, asked: Mapping[str, Scalar]) -> Record:
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
            told = {folder: _described(unlike[folder], found[folder], subject) for folder in kin}
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
        subject: SubjectName,
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

    def _ambiguous(self, subject: SubjectName, fitting: Mapping[Path, Manifest]) -> str:
        flats = [manifest.flat for manifest in fitting.values()]
        keys = sorted({key for one, other in itertools.pairwise(flats) for key in differences(one, other)})
        return (
            f"{self.path}: {len(fitting)} records fit {subject.label} and differ in {', '.join(keys)} (see "
            f"their {MANIFEST}); move all but one out of there: {', '.join(each.name for each in fitting)}"
        )


def _slug(subject: SubjectName) -> str:
    """How the names of a subject's folders begin."""
    return re.sub(r"[^A-Za-z0-9._=-]+", "_", subject.label).strip("._")[:80]


def _but_for_tasks(asked: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {key: value for key, value in asked.items() if key not in TASK_KEYS}


def _described(unlike: Mapping[str, str], manifest: Manifest, subject: SubjectName) -> list[str]:
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


def _differences(manifest: Manifest, asked: Mapping[str, Scalar]) -> dict[str, str]:
    """What differs between what was recorded and what is asked for, of what both can know."""
    if manifest.is_imported:
        asked = {key: value for key, value in asked.items() if key not in RUN_KEYS}
    known = manifest.asked.items()
    return differences({key: each for key, each in known if key in asked or key not in TASK_KEYS}, asked)
