"""What stored values were made of, and what they must have in common with new ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_invari.baseline.changes import entry_id, reported
from pytest_invari.baseline.outcomes import ROUNDING
from pytest_invari.baseline.regression import RegressionCriterion
from pytest_invari.errors import InvariError
from pytest_invari.metrics.metric import OwnMetric
from pytest_invari.protocol.capabilities import source_of
from pytest_invari.records.manifest import (
    MODEL_LIBRARIES,
    Scalar,
    describe_environment,
    describe_tasks,
    differences,
    flatten,
)

if TYPE_CHECKING:
    from pytest_invari.baseline.file import Value
    from pytest_invari.measure.measured import Measured
    from pytest_invari.metrics import Metric
    from pytest_invari.suitefile.suite import Check
    from pytest_invari.tasks.task import TaskSet


def require_fit(changes: Iterable[Check], tasks_of: Callable[[Check], TaskSet]) -> None:
    """Refuse stored values of other queries, views or rules, once the subjects have been checked.

    Raises:
        InvariError: which entry of the file, and what differs.
    """
    described: dict[int, Mapping[str, Scalar]] = {}
    for change in changes:
        criterion = change.criterion
        assert isinstance(criterion, RegressionCriterion)
        entry = criterion.entry
        if entry is None:
            continue
        tasks = tasks_of(change)
        if id(tasks) not in described:
            described[id(tasks)] = describe_tasks(tasks)
        expected = _fit(change, described[id(tasks)])
        stored = {key: value for key, value in entry.made.items() if key in expected}
        unlike = differences(stored, expected)
        where = f"{criterion.path}: {criterion.entry_id}"
        anew = f"--invari-save={criterion.path}"
        if unlike:
            said = "; ".join(f"{key} {how}" for key, how in unlike.items())
            raise InvariError(
                f"{where} does not fit this run: {said}; run as it was made, or make it anew with {anew}"
            )
        queries = {task.query_id for task in tasks.tasks}
        if odd := sorted(queries ^ entry.queries.keys()):
            has = "a value" if odd[0] in entry.queries else "no value"
            raise InvariError(
                f"{where} was changed after it was written: it has {has} for query {odd[0]!r}; make it anew "
                f"with {anew}"
            )
        for query, value in entry.queries.items():
            if why_not := _why_impossible(criterion.metric, value):
                raise InvariError(
                    f"{where} was changed after it was written: query {query!r} has {why_not}; make it anew "
                    f"with {anew}"
                )


class EntryMaker:
    """Makes what a baseline stores of the items of a run, each entry once.

    Args:
        measured: what was measured of a check's reranker, or the fault that leaves nothing.
        fingerprint: what a check's reranker, once measured, says of itself.
    """

    def __init__(
        self,
        measured: Callable[[Check], Measured | str],
        fingerprint: Callable[[Check], Mapping[str, Scalar]],
    ) -> None:
        self._measured, self._fingerprint = measured, fingerprint
        self._made: set[str] = set()
        self._tasks: dict[int, Mapping[str, Scalar]] = {}

    def entries(self, check: Check) -> dict[str, Any]:
        """What a baseline stores of a measured check and of its subject's reported metrics.

        They are plain values that survive pytest-xdist's transport. What could not be measured is None.
        """
        from pytest_invari.baseline.comparison import values_of

        found: dict[str, Any] = {}
        for each in (check, *reported(check)):
            if each.criterion.why_not_stored:
                continue
            name, [metric] = entry_id(each), each.criterion.metrics
            if name in self._made:
                continue
            self._made.add(name)
            measured = self._measured(each)
            if isinstance(measured, str):
                found[name] = None
                continue
            made = self._made_of(each, measured.tasks)
            found[name] = {"made": made, "queries": values_of(measured, metric.name)}
        return found

    def _made_of(self, check: Check, tasks: TaskSet) -> dict[str, Scalar]:
        """Everything that the values were made from; no path, host or time."""
        if id(tasks) not in self._tasks:
            self._tasks[id(tasks)] = describe_tasks(tasks)
        reranker = self._fingerprint(check)
        models = {
            f"reranker.{key}": value
            for key, value in reranker.items()
            if key.rpartition(".")[2] in ("model", "revision")
        }
        left_out = {"machine"} if _runs_a_model(reranker) else {"machine", *MODEL_LIBRARIES}
        versions = {name: value for name, value in describe_environment().items() if name not in left_out}
        return {
            **_fit(check, self._tasks[id(tasks)]),
            **models,
            **{f"version.{name}": value for name, value in versions.items()},
            "reranker": check.shown_reranker,
            "reranker_sha256": _sha256(reranker),
            "suite_sha256": check.suite.sha256,
        }


def _fit(check: Check, tasks: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """What stored values and new ones must have in common to be compared."""
    plan = check.plan
    return {
        "tasks_sha256": tasks["tasks_sha256"],
        "plan.queries": tasks["queries"],
        "plan.k": plan.k,
        **{key: value for metric in check.criterion.metrics for key, value in _function(metric).items()},
        **{
            f"plan.{name}": " ".join(value) if isinstance(value, tuple) else value
            for name, value in plan.deciding("orders", "requests", "values").items()
        },
    }


def _why_impossible(metric: Metric, value: Value) -> str:
    """Why the metric cannot have this value, where it is a number; empty if it can."""
    if not isinstance(value, float) or metric.low - ROUNDING <= value <= metric.high + ROUNDING:
        return ""
    return f"the value {value:g}, and {metric.name} lies between {metric.low:g} and {metric.high:g}"


def _function(metric: Metric) -> dict[str, Scalar]:
    """What the function of a user's own metric is known by; nothing of a built-in one."""
    if not isinstance(metric, OwnMetric):
        return {}
    if metric.version:
        return {"metric.version": metric.version}
    return flatten(source_of(metric.function), "metric.")


def _runs_a_model(reranker: Mapping[str, Scalar]) -> bool:
    """Whether a reranker says that it, or a base of it, has a model, and not at the address of a service.

    What is imported would not tell: another subject may have, and rankings from records need no model.
    """
    owners = [key.removesuffix("model") for key in reranker if key.rpartition(".")[2] == "model"]
    return any(f"{owner}url" not in reranker for owner in owners)


def _sha256(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
