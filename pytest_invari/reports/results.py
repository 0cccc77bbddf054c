"""Results on their way from the items to the reports: plain values that survive pytest-xdist's transport."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_invari.criteria.criterion import Criterion, Judgement
from pytest_invari.errors import InvariError
from pytest_invari.measure.requests import further_requests, has_cut_texts
from pytest_invari.measure.validity import is_valid
from pytest_invari.metrics import all_metrics, parse_metric
from pytest_invari.progress import bar
from pytest_invari.reports.text import figure, harmless

if TYPE_CHECKING:
    from pytest_invari.criteria.checks import Check
    from pytest_invari.measure.audit import Audit
    from pytest_invari.measure.measured import Measured
    from pytest_invari.measure.plan import Plan
    from pytest_invari.metrics import Metric
    from pytest_invari.metrics.catalog import Analysis
    from pytest_invari.protocol import Cost, Ranking

__all__ = [
    "COSTS",
    "TOKENS",
    "Result",
    "ResultBook",
    "SubjectKey",
    "Summary",
    "Wording",
    "carry",
    "describe",
    "summarise",
    "table_metrics",
    "verdict_line",
    "what_would_decide",
    "why_failed",
    "why_nothing",
    "witness_costs",
    "wording",
]

STANDING = (
    *("ppi", "ppi_null", "bucket_agreement_gap", "gpi", "gpi_lower_bound", "loc"),
    *("exposure_deviation@{}", "hr@{}", "ndcg@{}", "tie_rate", "invalid_view_rate"),
)
"""Measured of every subject; ``{}`` stands for the length of the top."""

TOKENS = ("tokens_in", "tokens_cached", "tokens_out")
COSTS = ("calls", "depth", *TOKENS, "seconds")

MOST_QUERIES = 100_000
"""The most queries that a report says would decide; estimates beyond are in the JSON report alone."""

Summary = Mapping[str, Any]
"""What was measured of one subject: the JSON report's ``subjects[]`` entry."""

SubjectKey = tuple[str, str, int]
"""Reranker, data set, list length."""


@dataclass(frozen=True, slots=True)
class Result:
    """One check and what became of it; *aside* is pytest's own word for one that was not to count."""

    check: Check
    judgement: Judgement
    aside: Literal["", "skipped", "xfailed"] = ""

    @property
    def line(self) -> str:
        """The figure, then what was demanded of it: the message of a failing item."""
        return describe(self.check, self.judgement)


@dataclass(frozen=True, slots=True)
class Wording:
    """What is said of a judgement: its figure, what was demanded, and what else must be known."""

    figure: str
    demand: str
    remarks: tuple[str, ...]

    @property
    def line(self) -> str:
        """All of it in one line."""
        said = ": ".join(filter(None, [self.figure, self.demand]))
        return harmless("; ".join([said, *self.remarks]))


class ResultBook:
    """The results of a run, gathered from its reports wherever the items ran.

    *others* are items that are no checks, and whose subjects are shown all the same.

    A check may be reported twice, when a worker of pytest-xdist crashes and another one takes over. The
    failure stays then.
    """

    def __init__(self, checks: Mapping[str, Check], others: Iterable[Check] = ()) -> None:
        self._checks = checks
        self._others = tuple(others)
        self._results: dict[str, Result] = {}
        self._subjects: dict[SubjectKey, Summary] = {}

    def add(self, report: pytest.TestReport) -> None:
        """Take note of an item's report; those of other tests are ignored."""
        carried = getattr(report, "invari", None)
        if carried is not None:
            for summary in carried["subjects"]:
                self._add_subject(summary)
        check = self._checks.get(report.nodeid)
        if check is None:
            return
        bound = check.criterion.bound(check.plan.k)
        is_expected = report.skipped and hasattr(report, "wasxfail")
        if carried is not None:
            result = Result(check, Judgement(**carried["judgement"]), "xfailed" if is_expected else "")
        elif report.failed:
            result = Result(check, Judgement("fail", bound, reason=why_nothing(report)))
        elif report.skipped:
            judgement = Judgement("undecided", bound, reason=why_nothing(report))
            result = Result(check, judgement, "xfailed" if is_expected else "skipped")
        else:
            return
        known = self._results.get(report.nodeid)
        if known is None or known.judgement.verdict != "fail":
            self._results[report.nodeid] = result

    def _add_subject(self, summary: Summary) -> None:
        key = summary["reranker"], summary["dataset"], summary["k"]
        known = self._subjects.get(key, summary)
        # Workers that share a baseline find in the records what another has just ranked; that is not old.
        counts = ("rankings_from_records", "failures_from_records")
        fewest = {name: min(known[name], summary[name]) for name in counts}
        asked = max(known, summary, key=lambda each: each["witness_rankings"])
        self._subjects[key] = {
            **summary,
            **fewest,
            **{name: asked[name] for name in ("witness_rankings", "witness_cost")},
        }

    @property
    def results(self) -> list[Result]:
        """In the order of the suites, whichever order the items ran in."""
        return [self._results[name] for name in self._checks if name in self._results]

    @property
    def subjects(self) -> list[Summary]:
        """Sorted as the checks are: each subject's baseline follows it."""
        order: dict[SubjectKey, None] = {}
        for check in (*self._checks.values(), *self._others):
            for reranker in (check.shown_reranker, check.shown_baseline):
                order[reranker, check.shown_dataset, check.plan.k] = None
        return [self._subjects[key] for key in order if key in self._subjects]


def carry(judgement: Judgement, summaries: list[Summary], entries: Mapping[str, Any]) -> dict[str, Any]:
    """The value that rides on a report as its attribute ``invari``; *entries* are those of a baseline."""
    return {"judgement": asdict(judgement), "subjects": summaries, "entries": entries}


def why_nothing(report: pytest.TestReport) -> str:
    """Why an item that failed, was skipped or was expected to fail has no verdict of its own."""
    if report.failed:
        return "nothing measured: " + why_failed(report)
    if hasattr(report, "wasxfail"):
        reason = str(report.wasxfail).removeprefix("reason: ")
        return f"expected to fail: {reason}" if reason else "expected to fail"
    return "skipped: " + _skip_reason(report)


def describe(check: Check, judgement: Judgement) -> str:
    """One line that begins with the figure and goes on to the demand and the reason."""
    return wording(check, judgement).line


def wording(check: Check, judgement: Judgement) -> Wording:
    """The same in its parts."""
    return _wording(
        check.criterion,
        judgement,
        k=check.plan.k,
        baseline=check.shown_baseline,
        min_queries=check.suite.min_queries,
    )


def verdict_line(
    criterion: Criterion, judgement: Judgement, *, k: int, baseline: str, min_queries: int
) -> str:
    """The line of a criterion that no suite holds; *baseline* is what the other reranker is called."""
    return _wording(criterion, judgement, k=k, baseline=baseline, min_queries=min_queries).line


def _wording(
    criterion: Criterion, judgement: Judgement, *, k: int, baseline: str, min_queries: int
) -> Wording:
    shown = judgement.figure or "no figure"
    if judgement.is_measured:
        counted = any(metric.family in COSTS for metric in criterion.metrics)
        shown = figure(judgement.estimate, judgement.low, judgement.high, judgement.n, counted=counted)
    remarks = [judgement.reason] if judgement.reason else []
    if judgement.verdict == "undecided" and judgement.is_measured:
        remarks += what_would_decide(
            judgement.n_needed, judgement.reason, bool(judgement.undefined), min_queries
        )
    distance = abs(judgement.bound)
    if criterion.is_relative and judgement.verdict == "undecided" and 0 < distance < judgement.detectable:
        remarks.append(
            f"{judgement.n:,} queries mostly show differences of {judgement.detectable:.2g} and more, and "
            f"{distance:g} is asked for"
        )
    return Wording(shown, criterion.demand(k, baseline), tuple(remarks))


def what_would_decide(needed: int | None, reason: str, has_undefined: bool, min_queries: int) -> list[str]:
    """How many queries would decide what is undecided; nothing where the *reason* leaves nothing to say.

    Of a number that no data set has, only the size is told.
    """
    if needed is None:
        on_bound = "the figure, or nearly every query, lies on the bound, so more queries may not decide"
        return [] if reason else [on_bound]
    # That the least number of queries is wanted has been said by the reason.
    if needed == min_queries:
        return []
    queries = "queries with a value" if has_undefined else "queries"
    if needed > MOST_QUERIES:
        return [f"more than {MOST_QUERIES:,} {queries} would be needed to decide"]
    return [f"about {needed:,} {queries} would decide"]


def summarise(
    measured: Measured,
    reranker: str,
    dataset: str,
    metrics: list[str],
    analyses: Sequence[Analysis] = (),
    audit: Audit | None = None,
) -> dict[str, Any]:
    """Reduce what was measured of a subject to plain numbers; *reranker* and *dataset* are what is shown.

    ``analyses`` holds each analysis whole, and ``tables`` the lines that a terminal shows of it.
    """
    reported = {name: measured.analyses.report(name) for name in analyses}
    plan, observations = measured.plan, measured.observations
    total_cost = _total_cost([seen.ranking.cost for seen in observations])
    unreported = {name for name, total in total_cost.items() if total is None}
    figures = {}
    what = harmless(f"judging {reranker} on {dataset}, K={plan.k}")
    with bar(len(metrics) + 1, what, unit="figure") as progress:
        for name in metrics:
            is_unreported = name in unreported
            figures[name] = _no_figure(measured, "not_reported") if is_unreported else _figure(measured, name)
            progress.advance()
        position_p_value = measured.position_p_value
        progress.advance()
    return {
        "reranker": reranker,
        "dataset": dataset,
        "k": int(plan.k),
        "views": int(plan.views),
        "queries": len(measured.query_ids),
        "rankings": len(observations),
        "rankings_from_records": sum(seen.from_records for seen in observations),
        "failures": int(measured.failure_count),
        "failures_from_records": sum(seen.from_records and not is_valid(seen) for seen in observations),
        **_request_counts([seen.ranking for seen in observations]),
        "cost": {
            name: None if name in unreported else float(measured.interval(name).estimate) for name in COSTS
        },
        "total_cost": total_cost,
        **witness_costs(()),
        "metrics": figures,
        "audit": None if audit is None else audit.plain(),
        "position_p_value": position_p_value,
        "regions": asdict(measured.regions),
        "analyses": {name: plain for name, (plain, _) in reported.items()},
        "tables": {name: lines for name, (_, lines) in reported.items()},
    }


def table_metrics(plan: Plan, suite_metrics: Iterable[Metric]) -> list[str]:
    """The rows of a subject's table, in the order of the catalogue: the standing ones and the suite's.

    Findings of analyses have tables of their own.
    """
    top = 5 if plan.k > 5 else 1
    standing = [parse_metric(word.format(top)) for word in (*STANDING, *COSTS)]
    if plan.repeats:
        standing.append(parse_metric("repeat_difference"))
    if plan.labels == "redrawn":
        standing.append(parse_metric("label_agreement_gap"))
    order = list(all_metrics())
    found = {each.name: each for each in (*standing, *suite_metrics) if each.kind != "analysis"}
    return sorted(found, key=lambda name: (order.index(found[name].family), found[name].k or 0))


def _request_counts(rankings: Sequence[Ranking]) -> dict[str, int]:
    """How many rankings a service did not answer at once, or did not read whole."""
    further = [further_requests(ranking) for ranking in rankings]
    return {
        "rankings_asked_again": sum(map(bool, further)),
        "further_requests": sum(further),
        "rankings_with_cut_texts": sum(map(has_cut_texts, rankings)),
    }


def witness_costs(costs: Sequence[Cost]) -> dict[str, Any]:
    """What the rankings took that were made for witnesses besides the measured ones."""
    return {"witness_rankings": len(costs), "witness_cost": _total_cost(costs)}


def _total_cost(costs: Sequence[Cost]) -> dict[str, float | None]:
    """The cost of all rankings; None of a kind that the reranker does not report.

    Without a language model there are no tokens; with one, none of them may be cached.
    """
    found = {name: float(sum(getattr(cost, name) for cost in costs)) for name in COSTS}
    kinds = {name: TOKENS if name in TOKENS else (name,) for name in COSTS}
    return {name: found[name] if any(found[each] for each in kinds[name]) else None for name in COSTS}


def _no_figure(measured: Measured, reason: str) -> dict[str, Any]:
    """Where there is no figure: of a cost that is not reported, of a user's metric that is broken."""
    undefined = dict.fromkeys(("estimate", "low", "high"), math.nan)
    return {**undefined, "n": 0, "undefined": len(measured.query_ids), "reason": reason}


def _figure(measured: Measured, name: str) -> dict[str, Any]:
    try:
        interval = measured.interval(name)
    except InvariError as error:
        return _no_figure(measured, harmless(str(error)))
    return {
        "estimate": float(interval.estimate),
        "low": float(interval.low),
        "high": float(interval.high),
        "n": int(interval.n),
        "undefined": int(interval.undefined),
        "reason": interval.reason if interval.n else measured.why_undefined(name) or interval.reason,
    }


def why_failed(report: pytest.TestReport) -> str:
    """What the error said, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = report.longreprtext if crash is None else crash.message.strip().partition("\n")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("E ").strip() if lines else "no reason was reported"


def _skip_reason(report: pytest.TestReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")
