"""What a process has measured, beside a stored baseline, and what a new one is to store."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from pytest_invari.baseline.changes import entry_id, forgotten, reported
from pytest_invari.baseline.file import read_baseline
from pytest_invari.baseline.outcomes import ROUNDING, missing
from pytest_invari.errors import InvariError
from pytest_invari.protocol.capabilities import source_of
from pytest_invari.records.manifest import (
    MODEL_LIBRARIES,
    Scalar,
    describe_environment,
    describe_tasks,
    differences,
    flatten,
)
from pytest_invari.suitefile.checks import AT_BASELINE, LeftOut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pytest_invari.baseline.changes import Change
    from pytest_invari.baseline.file import Entry, Value
    from pytest_invari.baseline.outcomes import BaselineComparison
    from pytest_invari.measure.subject import Subject
    from pytest_invari.metrics import Metric
    from pytest_invari.session.judging import Judging
    from pytest_invari.suitefile.checks import Check
    from pytest_invari.tasks.task import TaskSet


# The parts of a plan that decide what the values of a metric are.
_PLAN = ("views", "view_seed", "include_canonical", "labels", "blind_ids", "ties", "on_failure")


class StoredBaseline:
    """What the items of a run share.

    Args:
        judging: measures the subjects.
        path: the baseline to compare with, where there is one.
        saves: whether what is measured is to be stored.

    Raises:
        InvariError: the baseline cannot be read.
    """

    def __init__(self, judging: Judging, path: Path | None, saves: bool) -> None:
        self._judging, self._path, self._saves = judging, path, saves
        self._stored: dict[str, Entry] = {} if path is None else read_baseline(path)
        self._given: set[str] = set()
        self._tasks: dict[Subject, Mapping[str, Scalar]] = {}

    def check(self, changes: Iterable[Change]) -> None:
        """Refuse stored values of other queries, views or rules, once the subjects are checked.

        Raises:
            InvariError: which entry of the file, and what differs.
        """
        for change in changes:
            entry = self._stored.get(entry_id(change))
            if entry is None:
                continue
            tasks = self._judging.tasks(change)
            expected = self._fit(change, tasks)
            stored = {key: value for key, value in entry.made.items() if key in expected}
            unlike = differences(stored, expected)
            where = f"{self._path}: {entry_id(change)}"
            if unlike:
                told = "; ".join(f"{key} {how}" for key, how in unlike.items())
                raise InvariError(
                    f"{where} does not fit this run: {told}; run as it was made, or make it anew with "
                    f"--invari-save={self._path}"
                )
            asked = {task.query_id for task in tasks.tasks}
            if odd := sorted(asked ^ entry.queries.keys()):
                has = "a value" if odd[0] in entry.queries else "no value"
                raise InvariError(
                    f"{where} was changed after it was written: it has {has} for query {odd[0]!r}; make it "
                    f"anew with --invari-save={self._path}"
                )
            [metric] = change.criterion.metrics
            for query, value in entry.queries.items():
                if why_not := _why_impossible(metric, value):
                    raise InvariError(
                        f"{where} was changed after it was written: query {query!r} has {why_not}; make it "
                        f"anew with --invari-save={self._path}"
                    )

    def forgotten(self, checks: Iterable[Check]) -> tuple[LeftOut, ...]:
        """The comparisons that the baseline has values for and these checks' suites ask for no more."""
        reason = (
            f"{self._path} has values of it, and the suite asks for it no more; --invari-save={self._path} "
            "drops them"
        )
        return tuple(
            LeftOut(suite, f"{metric}{AT_BASELINE}", subject, reason, is_lost=True)
            for suite, metric, subject in forgotten(self._stored, checks)
        )

    def comparison(self, change: Change) -> BaselineComparison:
        """Measure, unless another item of the same subject has, and compare."""
        entry = self._stored.get(entry_id(change))
        if entry is None:
            return missing(
                f"{self._path} has no entry {entry_id(change)}; add it with --invari-save={self._path}"
            )
        measured = self._judging.measured(change)
        if isinstance(measured, str):
            return missing(measured)
        from pytest_invari.baseline.comparison import compare

        try:
            return compare(change, measured, entry)
        except InvariError as error:
            return missing(f"{self._path}: {entry_id(change)}: {error}")

    def entries(self, check: Check) -> dict[str, Any]:
        """What a baseline stores of a measured check and of its subject's reported metrics, each once.

        They are plain values that survive pytest-xdist's transport. What could not be measured is None.
        """
        found: dict[str, Any] = {}
        if not self._saves:
            return found
        from pytest_invari.baseline.comparison import values_of

        for each in (check, *reported(check)):
            if each.criterion.why_not_stored:
                continue
            name, [metric] = entry_id(each), each.criterion.metrics
            if name in self._given:
                continue
            self._given.add(name)
            measured = self._judging.measured(each)
            if isinstance(measured, str):
                found[name] = None
                continue
            made = self._made(each, measured.tasks)
            found[name] = {"made": made, "queries": values_of(measured, metric.name)}
        return found

    def _made(self, check: Check, tasks: TaskSet) -> dict[str, Scalar]:
        """Everything that the values were made from; no path, host or time."""
        reranker = self._judging.fingerprint(check)
        models = {
            f"reranker.{key}": value
            for key, value in reranker.items()
            if key.rpartition(".")[2] in ("model", "revision")
        }
        left_out = {"machine"} if _runs_a_model(reranker) else {"machine", *MODEL_LIBRARIES}
        versions = {name: value for name, value in describe_environment().items() if name not in left_out}
        return {
            **self._fit(check, tasks),
            **models,
            **{f"version.{name}": value for name, value in versions.items()},
            "reranker": check.shown_reranker,
            "reranker_sha256": _sha256(reranker),
            "suite_sha256": check.suite.sha256,
        }

    def _fit(self, check: Check, tasks: TaskSet) -> dict[str, Scalar]:
        """What stored values and new ones must have in common to be compared."""
        plan, subject = check.plan, check.subject
        if subject not in self._tasks:
            self._tasks[subject] = describe_tasks(tasks)
        return {
            "tasks_sha256": self._tasks[subject]["tasks_sha256"],
            "plan.queries": self._tasks[subject]["queries"],
            "plan.k": plan.k,
            "plan.bank": " ".join(plan.bank),
            **{key: value for metric in check.criterion.metrics for key, value in _function(metric).items()},
            **{f"plan.{name}": getattr(plan, name) for name in _PLAN},
        }


def _why_impossible(metric: Metric, value: Value) -> str:
    """Why the metric cannot have this value, where it is a number; empty if it can."""
    if not isinstance(value, float) or metric.low - ROUNDING <= value <= metric.high + ROUNDING:
        return ""
    return f"the value {value:g}, and {metric.name} lies between {metric.low:g} and {metric.high:g}"


def _function(metric: Metric) -> dict[str, Scalar]:
    """What the function of a user's own metric is known by; nothing of a built-in one."""
    if metric.custom is None:
        return {}
    if metric.custom.version:
        return {"metric.version": metric.custom.version}
    return flatten(source_of(metric.custom.function), "metric.")


def _runs_a_model(reranker: Mapping[str, Scalar]) -> bool:
    """Whether a reranker says that it, or a base of it, has a model, and not at the address of a service.

    What is imported would not tell: another subject may have, and rankings from records need no model.
    """
    owners = [key.removesuffix("model") for key in reranker if key.rpartition(".")[2] == "model"]
    return any(f"{owner}url" not in reranker for owner in owners)


def _sha256(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
