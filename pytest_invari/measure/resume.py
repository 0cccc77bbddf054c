"""Resuming: which records in a folder are a subject's, and whether they hold all that its plan is about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_invari.errors import InvariError
from pytest_invari.observation.observe import is_due
from pytest_invari.protocol.capabilities import fingerprint_of, has_early_fingerprint
from pytest_invari.records.folder import RecordFolder
from pytest_invari.records.manifest import (
    Manifest,
    Scalar,
    describe_environment,
    describe_reranker,
    describe_tasks,
    flatten,
)
from pytest_invari.registry.registry import TASK_FILES

if TYPE_CHECKING:
    from pytest_invari.measure.loading import Loader
    from pytest_invari.measure.subject import Subject
    from pytest_invari.records.record import Record
    from pytest_invari.settings import ModelSettings
    from pytest_invari.tasks.task import TaskSet


class RecordStore:
    """The records in one folder.

    Args:
        path: of the folder.
        loader: the rerankers and tasks of the run.
        settings: of the language model.
        retry_failed: whether what is kept as failed is to be ranked again.
    """

    def __init__(self, path: Path, loader: Loader, settings: ModelSettings, retry_failed: bool) -> None:
        self._folder = RecordFolder(path)
        self._loader, self._settings, self._retry_failed = loader, settings, retry_failed
        self._manifests: dict[Subject, Manifest] = {}
        self._complete: set[Subject] = set()

    def check(self, subject: Subject) -> None:
        """Read all that a run may go on from, so that damage is found before anything is ranked.

        Which record it will be depends on what the reranker says of itself once it is loaded.

        Raises:
            InvariError: the folder cannot hold records, or a record is damaged.
        """
        self._folder.check()
        tasks = self._loader.tasks(subject.plan)
        asked = self._describe(subject) | {"dataset": tasks.name}
        for record in self._folder.of(subject.name(tasks.name), asked):
            record.read()
            if record.manifest.asked.get("tasks_sha256") != tasks.sha256:
                record.tasks()

    def may_be_complete(self, subject: Subject) -> bool:
        """Whether records may hold every ranking; nothing is written for it.

        It is not known of a reranker that must be loaded to say which records are its own.

        Raises:
            InvariError: a record is damaged.
        """
        if not has_early_fingerprint(self._loader.reranker(subject)):
            return False
        name = subject.name(self._loader.tasks(subject.plan).name)
        record = self._folder.at(name, self._manifest(subject))
        return self._is_complete(record, subject) if record.exists else bool(self._folder.siblings(record))

    def open(self, subject: Subject) -> tuple[Record, bool]:
        """The subject's record with all that others have for it, and whether no ranking is missing.

        A reranker that must be loaded to say which record it is has to be.

        Raises:
            InvariError: a record is damaged.
        """
        tasks = self._loader.tasks(subject.plan)
        record = self._folder.open(subject.name(tasks.name), self._manifest(subject), tasks)
        record.take_over(self._folder.siblings(record), tasks, self._loader.wanted(subject.plan))
        return record, self._is_complete(record, subject)

    def find(self, subject: Subject) -> tuple[Record, TaskSet]:
        """The one record that a replay takes, and its tasks; no reranker is built.

        Raises:
            InvariError: no record fits, or several do; or the data set has a mistake.
        """
        asked, plan = self._describe(subject), subject.plan
        try:
            tasks = self._loader.tasks(plan)
        except InvariError:
            # A data set may be missing where its records are read, but a file that is there must be right.
            if Path(plan.dataset).expanduser().exists():
                raise
            is_path = Path(plan.dataset).suffix in (*TASK_FILES, ".zip") or "/" in plan.dataset
            dataset = Path(plan.dataset).stem if is_path else plan.dataset
            asked |= {"dataset": dataset} | ({} if plan.queries is None else {"queries": plan.queries})
            record = self._folder.find(subject.name(dataset), asked)
            return record, record.tasks()
        return self._folder.find(subject.name(tasks.name), asked | describe_tasks(tasks)), tasks

    def _describe(self, subject: Subject) -> dict[str, Scalar]:
        """The part of a manifest that is known without building anything, but for the tasks."""
        plan = subject.plan
        return {
            **describe_reranker(subject.reranker),
            "model": self._settings.model,
            "dtype": self._settings.dtype,
            "k": plan.k,
            **plan.deciding("requests"),
        }

    def _manifest(self, subject: Subject) -> Manifest:
        if subject not in self._manifests:
            self._manifests[subject] = Manifest(
                self._describe(subject) | describe_tasks(self._loader.tasks(subject.plan)),
                flatten(fingerprint_of(self._loader.reranker(subject), subject.reranker.label)),
                describe_environment(device=self._settings.device, batch_tokens=self._settings.batch_tokens),
            )
        return self._manifests[subject]

    def _is_complete(self, record: Record, subject: Subject) -> bool:
        """Whether no ranking is missing or due again."""
        if subject not in self._complete:
            kept, wanted = record.read(), self._loader.wanted(subject.plan)
            if any(each not in kept or is_due(kept[each], self._retry_failed) for each in wanted):
                return False
            self._complete.add(subject)
        return True
