"""The section ``invari`` at the end of a run: what was measured, and what it means for each criterion."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pytest_invari.reports.results import COSTS, Result, ResultBook, Summary, describe
from pytest_invari.reports.text import figure, printable

if TYPE_CHECKING:
    from pytest_invari.checks import LeftOut
    from pytest_invari.options import Settings

__all__ = ["format_tables", "write_section"]

_WORDS = {"pass": "PASS", "fail": "FAIL", "undecided": "UNDECIDED"}
_COLOURS = {"pass": "green", "fail": "red", "undecided": "yellow"}
_ROW_NAMES = {"ppi": "PPI", "gpi": "GPI", "loc": "LOC", "hr": "HR", "ndcg": "nDCG"}
# Three decimals let two subjects stand side by side in 80 columns.
_DIGITS = 3
_GAP = 2
_FIGURE = re.compile(r"\S+ \[[^][ ]+, [^][ ]+\] n=\d+")


def write_section(reporter: Any, book: ResultBook, left_out: Iterable[LeftOut], settings: Settings) -> None:
    """Write the tables, one entry a criterion, what was left out, and what the run cost."""
    width = reporter._tw.fullwidth
    reporter.section("invari")
    for lines in format_tables(book.subjects, width):
        for line in lines:
            reporter.write_line(line)
        reporter.write_line("")
    for result in book.results:
        verdict = result.judgement.verdict
        word = "SKIPPED" if result.skipped else _WORDS[verdict]
        for line in _criterion_lines(result, word, width):
            reporter.write_line(line, **{_COLOURS[verdict]: True})
    for line in _left_out_lines(left_out, width):
        reporter.write_line(line)
    for line in _closing_lines(book, settings, width):
        reporter.write_line(line)


def format_tables(subjects: Sequence[Summary], width: int) -> list[list[str]]:
    """Lay out the measurements: a row a metric, a column a subject, a table for each data set and length.

    Columns that do not fit beside each other into *width* stand in tables below each other.
    """
    tables: list[list[str]] = []
    ordered = sorted(subjects, key=lambda each: (each["dataset"], each["k"], each["views"]))
    for (dataset, k, views), group in groupby(
        ordered, lambda each: (each["dataset"], each["k"], each["views"])
    ):
        columns = list(group)
        title = f"{dataset}: lists of {k}, {views} views of each query; estimate [95% interval] n=queries"
        wrapped = textwrap.wrap(printable(title), width)
        names = list(dict.fromkeys(name for column in columns for name in column["metrics"]))
        labels = [_row_name(name) for name in names]
        cells = [[_cell(column, name) for name in names] for column in columns]
        room = width - max(map(len, labels)) - _GAP
        for part in _fit([max(map(len, cell)) for cell in cells], room):
            tables.append(
                [
                    *wrapped,
                    *_table(labels, [columns[index] for index in part], [cells[index] for index in part]),
                ]
            )
            wrapped = []
    return tables


def _fit(widths: Sequence[int], room: int) -> list[list[int]]:
    """Which columns go into which table; each holds one at least."""
    parts: list[list[int]] = [[]]
    used = 0
    for index, width in enumerate(widths):
        if parts[-1] and used + width + _GAP > room:
            parts.append([])
            used = 0
        parts[-1].append(index)
        used += width + _GAP
    return parts


def _table(labels: list[str], columns: list[Summary], cells: list[list[str]]) -> list[str]:
    from tabulate import tabulate

    headers = [""]
    for column, rows in zip(columns, cells, strict=True):
        room = max(map(len, rows))
        headers.append("\n".join(textwrap.wrap(printable(column["reranker"]), room)))
    text = tabulate(
        list(zip(labels, *cells, strict=True)),
        headers=headers,
        tablefmt="simple",
        disable_numparse=True,
        colalign=("left", *("left" for _ in columns)),
    )
    return [line.rstrip() for line in str(text).splitlines()]


def _row_name(metric: str) -> str:
    family, at, cutoff = metric.partition("@")
    if family.startswith("exposure_deviation"):
        family = family.replace("exposure_deviation", "exposure dev.").replace("_", " ")
    return _ROW_NAMES.get(family, family.replace("_", " ")) + at + cutoff


def _cell(column: Summary, name: str) -> str:
    value = column["metrics"].get(name)
    if value is None:
        return ""
    return figure(value["estimate"], value["low"], value["high"], value["n"], _DIGITS, counted=name in COSTS)


def _criterion_lines(result: Result, word: str, width: int) -> list[str]:
    check = result.check
    text = f"{word:<9} {printable(check.name)}  {describe(check, result.judgement)}"
    lines = _wrap(text, width)
    if result.judgement.verdict == "fail" and check.criterion.why:
        why = f"why: {printable(check.criterion.why)}"
        indent = " " * 10
        lines += textwrap.wrap(why, width, initial_indent=indent, subsequent_indent=indent + "     ")
    return lines


def _left_out_lines(left_out: Iterable[LeftOut], width: int) -> list[str]:
    lines = []
    for (criterion, reason), group in _grouped(left_out).items():
        whose = "" if len(group) > 1 else f"[{group[0]}]"
        text = printable(f"{'LEFT OUT':<9} {criterion}{whose}  {reason}")
        lines += _wrap(text, width)
    return lines


def _wrap(text: str, width: int) -> list[str]:
    """Wrap below the verdict's column, without tearing a figure from its interval."""
    bound = _FIGURE.sub(lambda match: match[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(bound, width, subsequent_indent=" " * 10, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def _grouped(left_out: Iterable[LeftOut]) -> dict[tuple[str, str], list[str]]:
    grouped: dict[tuple[str, str], list[str]] = {}
    for each in left_out:
        grouped.setdefault((each.criterion, each.reason), []).append(each.subject)
    return grouped


def _closing_lines(book: ResultBook, settings: Settings, width: int) -> list[str]:
    verdicts = [result.judgement.verdict for result in book.results]
    counts = (
        f"{verdicts.count('pass')} passed, {verdicts.count('fail')} failed, "
        f"{verdicts.count('undecided')} undecided"
    )
    if settings.strict and "undecided" in verdicts:
        counts += " (fails under --invari-strict)"
    lines = [f"criteria: {counts}"]
    subjects = book.subjects
    if subjects:
        lines.append(_cost_line(subjects))
    return [part for line in lines for part in textwrap.wrap(line, width, subsequent_indent="  ")]


def _cost_line(subjects: Sequence[Summary]) -> str:
    rankings = [each["queries"] * each["views"] for each in subjects]
    total = {
        name: sum(
            count * each["cost"][name]
            for count, each in zip(rankings, subjects, strict=True)
            if each["cost"][name] == each["cost"][name]
        )
        for name in COSTS
    }
    plural = "s" if len(subjects) > 1 else ""
    return (
        f"measured: {len(subjects)} subject{plural}, {sum(rankings):,} rankings, "
        f"{total['calls']:,.0f} calls, "
        f"{total['tokens_in']:,.0f} tokens in ({total['tokens_cached']:,.0f} of them cached), "
        f"{total['tokens_out']:,.0f} out, {total['seconds']:,.1f} s of reranking"
    )
