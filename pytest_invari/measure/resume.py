"""The shelf: which records in a folder are a subject's, and whether they hold all that a plan asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_invari.errors import InvariError
from pytest_invari.observation.observe import is_due
from pytest_invari.observation.plan import Plan, Subject
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
from pytest_invari.redaction import without_secrets
from pytest_invari.registry.registry import TASK_FILES

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from pytest_invari.measure.loading import Loader
    from pytest_invari.observation.observation import ObservationKey
    from pytest_invari.records.record import Record
    from pytest_invari.registry.spec import RerankerSpec
    from pytest_invari.settings import ModelSettings
    from pytest_invari.tasks.task import TaskSet


class RecordStore:
    """The records in one folder.

    Args:
        path: of the folder.
        stock: the rerankers and tasks of the run.
        settings: of the language model.
        retry_failed: whether what is kept as failed is to be ranked again.
    """

    def __init__(self, path: Path, stock: Loader, settings: ModelSettings, retry_failed: bool) -> None:
        self._records = RecordFolder(path)
        self._stock, self._settings, self._retry_failed = stock, settings, retry_failed
        self._manifests: dict[tuple[str, Plan], Manifest] = {}
        self._whole: set[tuple[Path, Plan]] = set()

    def check(self, spec: RerankerSpec, plan: Plan) -> None:
        """Read all that a run may go on from: damage is told before anything is ranked.

        Which record it will be depends on what the reranker says of itself once it is loaded.

        Raises:
            InvariError: the folder cannot hold records, or a record is damaged.
        """
        self._records.check()
        tasks = self._stock.tasks(plan)
        asked = self._asked(spec, plan) | {"dataset": tasks.name}
        for record in self._records.of(subject_of(spec, plan, tasks.name), asked):
            record.read()
            if record.manifest.asked.get("tasks_sha256") != tasks.sha256:
                record.tasks()

    def may_be_whole(self, spec: RerankerSpec, plan: Plan, wanted: AbstractSet[ObservationKey]) -> bool:
        """Whether records may hold all that is *wanted*; nothing is written for it.

        It is not known of a reranker that must be loaded to say which records are its own.

        Raises:
            InvariError: a record is damaged.
        """
        if not has_early_fingerprint(self._stock.reranker(spec, plan)):
            return False
        subject = subject_of(spec, plan, self._stock.tasks(plan).name)
        record = self._records.at(subject, self._manifest(spec, plan))
        return self._is_whole(record, plan, wanted) if record.exists else bool(self._records.siblings(record))

    def open(
        self, spec: RerankerSpec, plan: Plan, wanted: AbstractSet[ObservationKey]
    ) -> tuple[Record, bool]:
        """The subject's record with all that others have for it, and whether it holds all that is *wanted*.

        A reranker that must be loaded to say which record it is has to be.

        Raises:
            InvariError: a record is damaged.
        """
        tasks = self._stock.tasks(plan)
        record = self._records.open(subject_of(spec, plan, tasks.name), self._manifest(spec, plan), tasks)
        record.take_over(self._records.siblings(record), tasks, wanted)
        return record, self._is_whole(record, plan, wanted)

    def find(self, spec: RerankerSpec, plan: Plan) -> tuple[Record, TaskSet]:
        """The one record that a replay takes, and its tasks; no reranker is built.

        Raises:
            InvariError: no record fits, or several do; or the data set has a mistake.
        """
        asked = self._asked(spec, plan)
        try:
            tasks = self._stock.tasks(plan)
        except InvariError:
            # A data set may be missing where its records are read, but a file that is there must be right.
            if Path(plan.dataset).expanduser().exists():
                raise
            is_path = Path(plan.dataset).suffix in (*TASK_FILES, ".zip") or "/" in plan.dataset
            name = Path(plan.dataset).stem if is_path else plan.dataset
            asked |= {"dataset": name} | ({} if plan.queries is None else {"queries": plan.queries})
            record = self._records.find(subject_of(spec, plan, name), asked)
            return record, record.tasks()
        asked |= describe_tasks(tasks)
        return self._records.find(subject_of(spec, plan, tasks.name), asked), tasks

    def _asked(self, spec: RerankerSpec, plan: Plan) -> dict[str, Scalar]:
        """The part of a manifest that is known without building anything, but for the tasks."""
        return {
            **describe_reranker(spec),
            "model": self._settings.model,
            "dtype": self._settings.dtype,
            "k": plan.k,
            "labels": plan.labels,
            "blind_ids": plan.blind_ids,
        }

    def _manifest(self, spec: RerankerSpec, plan: Plan) -> Manifest:
        key = (spec.label, plan)
        if key not in self._manifests:
            self._manifests[key] = Manifest(
                self._asked(spec, plan) | describe_tasks(self._stock.tasks(plan)),
                flatten(fingerprint_of(self._stock.reranker(spec, plan), spec.label)),
                describe_environment(device=self._settings.device, batch_tokens=self._settings.batch_tokens),
            )
        return self._manifests[key]

    def _is_whole(self, record: Record, plan: Plan, wanted: AbstractSet[ObservationKey]) -> bool:
        """Whether no ranking is missing or due again."""
        key = (record.path, plan)
        if key not in self._whole:
            kept = record.read()
            if any(each not in kept or is_due(kept[each], self._retry_failed) for each in wanted):
                return False
            self._whole.add(key)
        return True


def subject_of(spec: RerankerSpec, plan: Plan, dataset: str) -> Subject:
    """What is measured, as records and reports name it."""
    return Subject(without_secrets(spec.label), dataset, plan.k)
