"""The forest plot: each metric of each subject with its interval, what is asked of it, and its null."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_invari.baseline.regression import RegressionCriterion
from pytest_invari.criteria.metric import MetricCriterion
from pytest_invari.metrics import parse_metric
from pytest_invari.reports.html.canvas import drawing
from pytest_invari.reports.html.intervals import DrawnBound, IntervalRow, Panel, draw_panel, panel_table
from pytest_invari.reports.html.parts import Absent, Section
from pytest_invari.reports.rows import failed_views, is_unreported
from pytest_invari.reports.run import Result
from pytest_invari.reports.subjects import SubjectKey, Summary
from pytest_invari.text import harmless, printable

if TYPE_CHECKING:
    from pytest_invari.metrics import Metric
    from pytest_invari.reports.run import Run


_TITLE = "Every figure"
_TEXT = (
    "Each metric of each subject: the estimate over queries (dot) with its 95% interval. A red bracket is a "
    "criterion's bound, open to the side where the interval must lie. A hollow diamond is the null, which is "
    "what the metric would be if there were nothing to find: PPI without an effect of position, the exposure "
    "deviation that chance alone makes, 0 for differences and gaps, and for LOC that of random rankings."
)
_FAILED = (
    "Where views failed, the row says how many. By the suite's on_failure, the figure leaves out their "
    "queries (strict) or the views (drop), or has random orders in their place (random)."
)


def section(run: Run) -> Section | Absent:
    """The section of the page, or why there is none."""
    found = list(panels(run))
    if not found:
        return Absent(_TITLE, "nothing was measured")
    with drawing():
        pictures = [draw_panel(each, f"forest{number}") for number, each in enumerate(found, 1)]
    text = f"{_TEXT} {_FAILED}" if any(row.notes for each in found for row in each.rows) else _TEXT
    return Section("figures", _TITLE, text, pictures, [panel_table(each) for each in found])


def panels(run: Run) -> Iterator[Panel]:
    """Metrics as the tables have them, then differences from rerankers and from stored baselines."""
    results = run.results
    subjects = results.subjects
    known = {each.key: each for each in subjects}
    yield from _metrics(subjects, results.criteria)
    yield from _of_results(results.criteria, known)
    yield from _of_changes(results.comparisons, known)


def _metrics(subjects: Sequence[Summary], results: Sequence[Result]) -> Iterator[Panel]:
    bounds: dict[tuple[str, str, str, int], dict[DrawnBound, None]] = {}
    for result in results:
        check, criterion = result.check, result.check.criterion
        if isinstance(criterion, MetricCriterion) and not criterion.is_relative:
            limit = criterion.limit(check.plan.k)
            key = criterion.metric.name, check.shown_reranker, check.shown_dataset, check.plan.k
            bounds.setdefault(key, {})[DrawnBound(limit.side, limit.value)] = None
    for name in dict.fromkeys(name for each in subjects for name in each.metrics):
        having = [each for each in subjects if name in each.metrics and not is_unreported(each, name)]
        rows = [_measured(each, name, tuple(bounds.get((name, *each.key), ()))) for each in having]
        metric = parse_metric(name)
        if rows and (not metric.is_hidden_at_zero or any(row.estimate for row in rows)):
            caption, counted = _about(metric)
            yield Panel(metric.row, caption, rows, counted)


def _measured(summary: Summary, name: str, bounds: tuple[DrawnBound, ...]) -> IntervalRow:
    value = summary.metrics[name]
    return IntervalRow(
        _group(summary.dataset, summary.k),
        printable(summary.reranker),
        value.estimate,
        value.low,
        value.high,
        value.n,
        bounds,
        _null(summary, name),
        reason=printable(value.reason or ""),
        notes=_notes(summary),
    )


def _null(summary: Summary, name: str) -> float:
    metric = parse_metric(name)
    match metric.null:
        case float(number):
            return number
        case str(other):
            null = summary.metrics.get(other)
            return math.nan if null is None else null.estimate
    return metric.null(metric.k or 0, summary.k, summary.pictures["exposure"]["pooled"])


def _of_results(results: Sequence[Result], known: Mapping[SubjectKey, Summary]) -> Iterator[Panel]:
    """Criteria whose figure stands in no table of metrics: differences, and findings of analyses."""
    found: dict[tuple[str, str, bool], list[IntervalRow]] = {}
    for result in results:
        check, judgement, criterion = result.check, result.judgement, result.check.criterion
        if not isinstance(criterion, MetricCriterion):
            continue
        metric = criterion.metric
        if criterion.is_relative:
            title, null = f"{metric.row} minus {check.shown_baseline}'s", 0.0
        elif metric.kind == "analysis":
            title, null = metric.name, metric.null if isinstance(metric.null, float) else math.nan
        else:
            continue
        lists = check.shown_dataset, check.plan.k
        row = IntervalRow(
            _group(check.shown_dataset, check.plan.k),
            printable(check.shown_reranker),
            judgement.estimate,
            judgement.low,
            judgement.high,
            judgement.n,
            (DrawnBound(criterion.limit(check.plan.k).side, judgement.bound),),
            null,
            reason="" if judgement.is_measured else harmless(judgement.reason),
            notes=_notes(
                known.get((check.shown_reranker, *lists)), known.get((check.shown_baseline, *lists))
            ),
        )
        found.setdefault((printable(title), *_about(metric)), []).append(row)
    yield from (Panel(title, caption, rows, counted) for (title, caption, counted), rows in found.items())


def _of_changes(results: Sequence[Result], known: Mapping[SubjectKey, Summary]) -> Iterator[Panel]:
    found: dict[tuple[str, str, bool], list[IntervalRow]] = {}
    for result in results:
        check, judgement, criterion = result.check, result.judgement, result.check.criterion
        assert isinstance(criterion, RegressionCriterion)
        metric, margin = criterion.metric, criterion.margin
        lower = metric.direction == "lower"
        bound = DrawnBound("at_most", margin) if lower else DrawnBound("at_least", -margin)
        row = IntervalRow(
            _group(check.shown_dataset, check.plan.k),
            printable(check.shown_reranker),
            judgement.estimate,
            judgement.low,
            judgement.high,
            judgement.n,
            (bound,),
            0.0,
            reason=harmless(judgement.reason),
            notes=_notes(known.get((check.shown_reranker, check.shown_dataset, check.plan.k))),
        )
        title = f"{metric.row} minus the stored baseline's"
        found.setdefault((title, *_about(metric)), []).append(row)
    yield from (Panel(title, caption, rows, counted) for (title, caption, counted), rows in found.items())


def _notes(own: Summary | None, other: Summary | None = None) -> tuple[str, ...]:
    """How many views failed of a reranker, and of the one that it is compared with."""
    failed = [failed_views(each) if each else "" for each in (own, other)]
    return tuple(f"{whose}{text}" for whose, text in zip(("", "the other's: "), failed, strict=True) if text)


def _about(metric: Metric) -> tuple[str, bool]:
    """The caption of a metric's panel, and whether it is counted."""
    return f"{metric.description}; {metric.direction} is better", metric.is_amount


def _group(dataset: str, k: int) -> str:
    return printable(f"{dataset}, lists of {k}")
