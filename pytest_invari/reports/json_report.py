"""The JSON report ``invari-report/1``: everything the terminal shows, for other programs."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from pytest_invari.baseline.regression import RegressionCriterion
from pytest_invari.reports.run import Result, Run
from pytest_invari.reports.subjects import Summary
from pytest_invari.suitefile.checks import describe

if TYPE_CHECKING:
    from pytest_invari.suitefile.checks import Check


FORMAT = "invari-report/1"
SELFCHECK_FORMAT = "invari-selfcheck/1"
REPORT_BEGINS = ('{\n  "format": "invari-report/', '{\n  "format": "invari-selfcheck/')
"""How the text of a report opens, of any version."""

_PACKAGES = ("pytest-invari", "pytest", "numpy", "torch", "transformers")


def make_report(run: Run) -> dict[str, Any]:
    """Put the results of a run into the report's form; what is undefined is null."""
    results = run.results
    suites = [
        _suite(check) for check in {each.check.suite.name: each.check for each in results.criteria}.values()
    ]
    criteria = [_criterion(result) for result in results.criteria]
    verdicts = [each["verdict"] for each in criteria]
    return {
        "format": FORMAT,
        # Most runs have one suite; readers of several use "suites" and the criteria's own "suite".
        "suite": suites[0] if suites else None,
        "suites": suites,
        "environment": _environment(),
        "strict": run.settings.strict,
        "subjects": [_subject(summary) for summary in results.subjects],
        "criteria": criteria,
        "changes": [_change(result) for result in results.comparisons],
        "left_out": [
            {"suite": each.suite, "criterion": each.criterion, "subject": each.subject, "reason": each.reason}
            for each in run.expansion.left_out
        ],
        "unjudged": [asdict(each) for each in run.unjudged],
        "reruns": [asdict(each) for each in run.reruns],
        "verdicts": {verdict: verdicts.count(verdict) for verdict in ("pass", "fail", "undecided")},
    }


def report_text(report: object) -> str:
    """A report as the text of its file."""
    return json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _suite(check: Check) -> dict[str, Any]:
    suite = check.suite
    return {"name": suite.name, "title": suite.title, "sha256": suite.sha256, "profile": check.profile.name}


def _subject(summary: Summary) -> dict[str, Any]:
    """All but the terminal's lines, whose figures stand under ``analyses``, and what only a page shows."""
    shown_elsewhere = ("tables", "pictures")
    return _without_nan({name: value for name, value in summary.items() if name not in shown_elsewhere})


def _criterion(result: Result) -> dict[str, Any]:
    check, judgement = result.check, result.judgement
    facts = check.criterion.facts()
    return _without_nan(
        {
            "id": check.id,
            "suite": check.suite.name,
            "criterion": check.criterion.name,
            "kind": check.criterion.kind,
            "metric": facts.get("metric"),
            "comparison": facts.get("comparison"),
            "reranker": check.shown_reranker,
            "baseline": check.shown_baseline or None,
            "dataset": check.shown_dataset,
            "k": check.plan.k,
            "estimate": judgement.estimate,
            "low": judgement.low,
            "high": judgement.high,
            "bound": judgement.bound,
            "verdict": judgement.verdict,
            "reason": judgement.reason or None,
            "n": judgement.n,
            "n_needed": judgement.n_needed,
            "detectable": judgement.detectable,
            "p_fail": judgement.p_fail,
            "why": check.criterion.why or None,
            "text": describe(check, judgement),
            "details": judgement.details or None,
        }
    )


def _change(result: Result) -> dict[str, Any]:
    check, judgement = result.check, result.judgement
    criterion = check.criterion
    assert isinstance(criterion, RegressionCriterion)
    return _without_nan(
        {
            "id": check.id,
            "suite": check.suite.name,
            "criterion": criterion.name,
            "metric": criterion.metric.name,
            "reranker": check.shown_reranker,
            "dataset": check.shown_dataset,
            "k": check.plan.k,
            "margin": criterion.margin,
            "outcome": result.outcome,
            "difference": judgement.estimate,
            "low": judgement.low,
            "high": judgement.high,
            "n": judgement.n,
            "undefined": judgement.undefined,
            "before": judgement.details.get("before"),
            "now": judgement.details.get("now"),
            "reason": judgement.reason,
            "n_needed": judgement.n_needed,
            "text": result.line,
        }
    )


def _environment() -> dict[str, Any]:
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
    }


def _without_nan(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same mapping, at every depth, with null for what is undefined."""
    plain: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            plain[name] = _without_nan(value)
        else:
            plain[name] = None if isinstance(value, float) and not math.isfinite(value) else value
    return plain
