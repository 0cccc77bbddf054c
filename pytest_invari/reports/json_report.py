"""The JSON report ``invari-report/1``: everything the terminal shows, for other programs."""

from __future__ import annotations

import json
import math
import platform
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from pytest_invari.baseline.regression import RegressionCriterion
from pytest_invari.reports.models import (
    ChangeModel,
    CriterionModel,
    EnvironmentModel,
    LeftOutModel,
    ReportModel,
    SuiteModel,
    VerdictsModel,
)
from pytest_invari.reports.run import Result, Run
from pytest_invari.suitefile.suite import describe

if TYPE_CHECKING:
    from pytest_invari.suitefile.suite import Check


FORMAT: Literal["invari-report/1"] = "invari-report/1"
SELFCHECK_FORMAT: Literal["invari-selfcheck/1"] = "invari-selfcheck/1"
REPORT_BEGINS = ('{\n  "format": "invari-report/', '{\n  "format": "invari-selfcheck/')
"""How the text of a report opens, of any version."""

_PACKAGES = ("pytest-invari", "pytest", "numpy", "torch", "transformers")


def make_report(run: Run) -> dict[str, Any]:
    """Put the results of a run into the report's form; what is undefined is null."""
    results = run.results
    suites = [
        _suite(check) for check in {each.check.suite.name: each.check for each in results.criteria}.values()
    ]
    verdicts = Counter(result.judgement.verdict for result in results.criteria)
    report = ReportModel(
        format=FORMAT,
        # Most runs have one suite; readers of several use "suites" and the criteria's own "suite".
        suite=suites[0] if suites else None,
        suites=suites,
        environment=_environment(),
        strict=run.settings.strict,
        subjects=[summary.subject for summary in results.subjects],
        criteria=[_criterion(result) for result in results.criteria],
        changes=[_change(result) for result in results.comparisons],
        left_out=[
            LeftOutModel(each.suite, each.criterion, each.subject, each.reason)
            for each in run.expansion.left_out
        ],
        unjudged=list(run.unjudged),
        reruns=list(run.reruns),
        verdicts=VerdictsModel(verdicts["pass"], verdicts["fail"], verdicts["undecided"]),
    )
    plain: dict[str, Any] = _without_nan(msgspec.to_builtins(report))
    return plain


def report_text(report: object) -> str:
    """A report as the text of its file."""
    return json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _suite(check: Check) -> SuiteModel:
    suite = check.suite
    return SuiteModel(suite.name, suite.title, suite.sha256, check.profile.name)


def _criterion(result: Result) -> CriterionModel:
    check, judgement = result.check, result.judgement
    facts = check.criterion.facts()
    return CriterionModel(
        id=check.id,
        suite=check.suite.name,
        criterion=check.criterion.name,
        kind=check.criterion.kind,
        metric=facts.get("metric"),
        comparison=cast(Any, facts.get("comparison")),
        reranker=check.shown_reranker,
        baseline=check.shown_baseline or None,
        dataset=check.shown_dataset,
        k=check.plan.k,
        why=check.criterion.why or None,
        text=describe(check, judgement),
        **judgement.plain(),
    )


def _change(result: Result) -> ChangeModel:
    check, judgement = result.check, result.judgement
    criterion = check.criterion
    assert isinstance(criterion, RegressionCriterion)
    return ChangeModel(
        id=check.id,
        suite=check.suite.name,
        criterion=criterion.name,
        metric=criterion.metric.name,
        reranker=check.shown_reranker,
        dataset=check.shown_dataset,
        k=check.plan.k,
        margin=criterion.margin,
        outcome=criterion.outcome(judgement),
        difference=judgement.estimate,
        low=judgement.low,
        high=judgement.high,
        n=judgement.n,
        undefined=judgement.undefined,
        before=judgement.details.get("before"),
        now=judgement.details.get("now"),
        reason=judgement.reason,
        n_needed=judgement.n_needed,
        text=result.line,
    )


def _environment() -> EnvironmentModel:
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return EnvironmentModel(platform.python_version(), platform.platform(), packages)


def _without_nan(values: Any) -> Any:
    """The same values, at every depth, with null for what is undefined."""
    if isinstance(values, dict):
        return {name: _without_nan(value) for name, value in values.items()}
    if isinstance(values, list):
        return [_without_nan(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values
