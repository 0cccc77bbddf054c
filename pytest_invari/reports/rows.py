"""What every report of a run shows alike: the rows of its tables, what was left out, and what it cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import structs

from pytest_invari.errors import counted
from pytest_invari.metrics import parse_metric
from pytest_invari.metrics.costs import COSTS, TOKENS
from pytest_invari.observation.audit import Audit
from pytest_invari.reports.subjects import Summary
from pytest_invari.text import figure, harmless, number, printable

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_invari.reports.run import Run
    from pytest_invari.settings import Settings
    from pytest_invari.suitefile.suite import LeftOut


# Rows that are shown when one of their counts is not 0.
_COUNTS = {"failures": "failed views", "rankings_from_records": "from records"}
_POSITION_P = "position p"
# Three decimals let two subjects stand side by side in 80 columns.
_DIGITS = 3


@dataclass(frozen=True)
class Measurements:
    """The measurements of the subjects that share data set, length and number of views: a column each.

    ``cells`` has a column for each of ``headings``, as long as ``labels``. ``undefined`` has for each column
    the labels of its rows that are undefined, with the reason codes.
    """

    title: str
    labels: list[str]
    headings: list[str]
    cells: list[list[str]]
    undefined: list[dict[str, str]]

    def notes(self, columns: Sequence[int]) -> list[str]:
        """For each reason a line with the rows that have no value, and whose, unless it is all *columns*."""
        whose: dict[tuple[str, str], list[int]] = {}
        for column in columns:
            for label, reason in self.undefined[column].items():
                whose.setdefault((reason, label), []).append(column)
        rows: dict[tuple[str, tuple[int, ...]], list[str]] = {}
        for (reason, label), found in whose.items():
            rows.setdefault((reason, tuple(found)), []).append(label)
        return [
            f"undefined ({reason}): {', '.join(labels)}"
            + (
                ""
                if len(found) == len(columns)
                else f"; of {', '.join(self.headings[each] for each in found)}"
            )
            for (reason, found), labels in rows.items()
        ]


def measurements(subjects: Sequence[Summary]) -> list[Measurements]:
    """What was measured, a row a metric and a column a subject, for each data set, length and views."""

    def same(each: Summary) -> tuple[str, int, int]:
        return each.dataset, each.k, each.views

    return [_measurements(*key, list(group)) for key, group in groupby(sorted(subjects, key=same), same)]


def _measurements(dataset: str, k: int, views: int, columns: list[Summary]) -> Measurements:
    names = [
        name
        for name in dict.fromkeys(name for column in columns for name in column.metrics)
        if not parse_metric(name).is_hidden_at_zero
        or any(column.metrics[name].estimate for column in columns)
    ]
    counts = [name for name in _COUNTS if any(getattr(column, name) for column in columns)]
    title = f"{dataset}: lists of {k}, {views} views of each query; estimate [95% interval] n=queries"
    return Measurements(
        printable(title),
        [*map(row_name, names), _POSITION_P, *(_COUNTS[name] for name in counts)],
        [printable(column.reranker) for column in columns],
        [
            [
                *(_cell(column, name) for name in names),
                number(math.nan if column.position_p_value is None else column.position_p_value, _DIGITS),
                *(f"{getattr(column, name)} of {column.rankings}" for name in counts),
            ]
            for column in columns
        ],
        [_undefined(column, names) for column in columns],
    )


def row_name(metric: str) -> str:
    """What a metric is called in a table: ``exposure dev.@5``."""
    return parse_metric(metric).row


def _cell(column: Summary, name: str) -> str:
    value = column.metrics.get(name)
    if value is None:
        return ""
    if is_unreported(column, name):
        return "-"
    return figure(value.estimate, value.low, value.high, value.n, _DIGITS, counted=name in COSTS)


def _undefined(column: Summary, names: Iterable[str]) -> dict[str, str]:
    """The labels of the rows without an estimate, with their reasons."""
    found = {}
    for name in names:
        value = column.metrics.get(name)
        if value is not None and math.isnan(value.estimate) and not is_unreported(column, name):
            found[row_name(name)] = printable(str(value.reason))
    # It tells chance from the mean bucket agreement gap, and is undefined with it.
    gap = column.metrics.get("bucket_agreement_gap")
    if gap is not None and gap.reason and column.position_p_value is None:
        found[_POSITION_P] = gap.reason
    return found


def is_unreported(column: Summary, name: str) -> bool:
    """Whether a metric is a cost that the reranker does not report."""
    return name in COSTS and column.total_cost[name] is None


def audits(subjects: Iterable[Summary]) -> list[tuple[str, str]]:
    """What a few questions told of each reranker that was audited, in two lines."""
    found = []
    for summary in subjects:
        if summary.audit:
            whose = f"{summary.reranker} on {summary.dataset}, K={summary.k}"
            first, second = Audit.from_plain(structs.asdict(summary.audit)).lines
            found.append((harmless(f"audit of {whose}: {first}"), harmless(f"  {second}")))
    return found


def failed_views(summary: Summary) -> str:
    """How many rankings a subject's figures had to do without; empty where none failed."""
    # A word first: behind a name that is read from right to left, numbers would change their places.
    return f"failed views: {summary.failures} of {summary.rankings}" if summary.failures else ""


def shown_name(summary: Summary) -> str:
    """A subject's reranker, and how many of its views failed, where some did."""
    return printable(summary.reranker) + in_brackets(failed_views(summary))


def in_brackets(remark: str) -> str:
    """What stands behind a name or a figure; nothing where there is no remark."""
    return f" ({remark})" if remark else ""


def grouped_left_out(left_out: Iterable[LeftOut]) -> dict[tuple[str, str], list[str]]:
    """By criterion and reason the subjects for which a criterion is not checked."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for each in left_out:
        grouped.setdefault((each.criterion, each.reason), []).append(each.subject)
    return grouped


def verdict_counts(run: Run) -> str:
    """How many criteria passed, failed and are undecided."""
    verdicts = [result.judgement.verdict for result in run.results.criteria]
    counts = (
        f"{verdicts.count('pass')} passed, {verdicts.count('fail')} failed, "
        f"{verdicts.count('undecided')} undecided"
    )
    return counts + _under_strict(run.settings, "undecided" in verdicts)


def outcome_line(run: Run) -> str:
    """How many comparisons with a baseline had which outcome; empty where there were none."""
    counts = Counter(result.outcome for result in run.results.comparisons)
    if not counts:
        return ""
    outcomes = ", ".join(f"{number} {outcome}" for outcome, number in counts.items())
    strict = _under_strict(run.settings, "undecided" in counts)
    return printable(f"baseline {run.settings.compare}: {outcomes}{strict}")


def _under_strict(settings: Settings, has_undecided: bool) -> str:
    return " (fails under --invari-strict)" if settings.strict and has_undecided else ""


def cost_line(subjects: Sequence[Summary]) -> str:
    """What the rankings of all subjects took together."""
    total = {name: sum(each.total_cost[name] or 0.0 for each in subjects) for name in COSTS}
    parts = [
        counted(len(subjects), "subject"),
        counted(sum(each.rankings for each in subjects), "ranking"),
        counted(round(total["calls"]), "call"),
    ]
    if any(total[name] for name in TOKENS):
        parts.append(f"{total['tokens_in']:,.0f} tokens in ({total['tokens_cached']:,.0f} of them cached)")
        parts.append(f"{total['tokens_out']:,.0f} out")
    line = f"measured: {', '.join(parts)}, {total['seconds']:,.1f} s of reranking"
    further = sum(each.witness_rankings for each in subjects)
    if not further:
        return line
    calls, seconds = (
        sum(each.witness_cost[name] or 0.0 for each in subjects) for name in ("calls", "seconds")
    )
    return (
        f"{line}; and for witnesses {counted(further, 'ranking')}, {counted(round(calls), 'call')}, "
        f"{seconds:,.1f} s"
    )


def records_line(subjects: Sequence[Summary], folder: Path) -> str:
    """How many rankings were made by earlier runs."""
    recorded = sum(each.rankings_from_records for each in subjects)
    rankings = counted(sum(each.rankings for each in subjects), "ranking")
    return printable(f"records: {recorded:,} of {rankings} came from records in {folder}")


def failed_records_line(subjects: Sequence[Summary]) -> str:
    """How many rankings had failed in earlier runs, and what to do; empty where none had."""
    failed = sum(each.failures_from_records for each in subjects)
    if not failed:
        return ""
    rankings = "1 failed ranking" if failed == 1 else f"{failed:,} failed rankings"
    return f"records: {rankings} came from records; to rank again what failed, add --invari-retry-failed"


def closing_lines(subjects: Sequence[Summary], records: Path | None) -> list[str]:
    """What all subjects took, which of them a service did not answer at once, and what came from records."""
    if not subjects:
        return []
    from_records = [] if records is None else [records_line(subjects, records), failed_records_line(subjects)]
    return [cost_line(subjects), *filter(None, [*map(_request_line, subjects), *from_records])]


def _request_line(summary: Summary) -> str:
    """What a subject's rankings met with on their way; empty where that is nothing."""
    again, cut = summary.rankings_asked_again, summary.rankings_with_cut_texts
    rankings = counted(summary.rankings, "ranking")
    told = []
    if again:
        further = counted(summary.further_requests, "further request")
        told.append(f"{again:,} of {rankings} {'was' if again == 1 else 'were'} asked again ({further})")
    if cut:
        told.append(f"texts of {cut:,}{'' if again else f' of {rankings}'} were cut")
    whose = f"{summary.reranker} on {summary.dataset}, K={summary.k}"
    return printable(f"requests of {whose}: {'; '.join(told)}") if told else ""
