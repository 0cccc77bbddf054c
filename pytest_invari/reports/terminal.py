"""The section ``invari`` at the end of a run: what was measured, and what it means for each criterion."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pytest_invari.errors import counted
from pytest_invari.reports.rows import (
    audits,
    closing_lines,
    grouped_left_out,
    measurements,
    outcome_line,
    verdict_counts,
)
from pytest_invari.reports.subjects import Summary
from pytest_invari.suitefile.suite import describe
from pytest_invari.text import printable

if TYPE_CHECKING:
    from pytest_invari.reports.models import Unjudged
    from pytest_invari.reports.run import Result, Run
    from pytest_invari.suitefile.suite import LeftOut


_WORDS = {"pass": "PASS", "fail": "FAIL", "undecided": "UNDECIDED"}
_COLOURS = {
    **{"pass": "green", "fail": "red", "undecided": "yellow"},
    **{"improved": "green", "same": "green", "regressed": "red", "missing": "red"},
}
_GAP = 2
# So many items are named that were not judged for one reason.
_NAMED = 3
# tabulate makes a column this much wider than its heading.
_HEADING_PADDING = 2
# A name is not broken into shorter pieces than fit here, nor a metric's name into shorter ones than these.
_LEAST_COLUMN = 25
_LEAST_LABEL = 9
# Below this width an entry's lines are indented less, so that a figure fits into one.
_NARROW = 60
_FIGURE = re.compile(r"\S+ \[[^][]+\] n=\w+")


def write_section(reporter: Any, run: Run) -> None:
    """Write the tables, one entry a criterion, what was left out or not judged, and what the run cost."""
    width = reporter._tw.fullwidth
    results = run.results
    # Not section(), which leaves pytest's line of dots open and so a blank line below the heading.
    reporter.write_sep("=", "invari")
    for lines in format_tables(results.subjects, width):
        for line in lines:
            reporter.write_line(line)
        reporter.write_line("")
    entries = audits(results.subjects)
    for entry in entries:
        for text in entry:
            for line in _wrap(text, width, "  "):
                reporter.write_line(line)
    if entries:
        reporter.write_line("")
    for summary in results.subjects:
        for lines in summary.tables.values():
            reporter.write_line(f"{printable(summary.reranker)} on {printable(summary.dataset)}")
            for line in [*lines, ""]:
                reporter.write_line(line)
    for result in results.criteria:
        verdict = result.judgement.verdict
        word = result.aside.upper() or _WORDS[verdict]
        for line in _criterion_lines(result, word, width):
            reporter.write_line(line, **{_COLOURS[verdict]: True})
    for result in results.comparisons:
        for line in _entry(result.outcome.upper(), result.check.name, result.line, width):
            reporter.write_line(line, **{_COLOURS[result.outcome]: True})
    for line in _left_out_lines(run.expansion.left_out, width):
        reporter.write_line(line)
    for rerun in run.flaky:
        for line in _entry("RUN AGAIN", rerun.id, f"at first: {rerun.reason}", width):
            reporter.write_line(line, yellow=True)
    for names, reason in _unjudged(run.blamed):
        for line in _entry("UNJUDGED", names, reason, width):
            reporter.write_line(line, red=True)
    for line in _closing_lines(run, width):
        reporter.write_line(line)


def format_tables(subjects: Sequence[Summary], width: int) -> list[list[str]]:
    """Lay out the measurements: a row a metric, a column a subject, a table for each data set and length.

    Columns that do not fit beside each other into *width* stand in tables below each other.
    """
    tables: list[list[str]] = []
    for found in measurements(subjects):
        wrapped = _wrap(found.title, width, "")
        headings, cells = found.headings, found.cells
        needs = [
            max(*map(len, cell), min(len(heading) + _HEADING_PADDING, _LEAST_COLUMN))
            for heading, cell in zip(headings, cells, strict=True)
        ]
        labels = _broken(found.labels, width - max(needs) - _GAP)
        room = width - max(len(line) for label in labels for line in label.splitlines()) - _GAP
        for part in _fit(needs, room):
            spare = room - sum(needs[index] for index in part) - _GAP * (len(part) - 1)
            broken = _headings([(headings[index], needs[index]) for index in part], spare)
            table = _table(labels, broken, [cells[index] for index in part])
            notes = [line for note in found.notes(part) for line in _wrap(note, width, "  ")]
            tables.append([*wrapped, *table, *notes])
            wrapped = []
    return tables


def _fit(widths: Sequence[int], room: int) -> list[list[int]]:
    """Which columns go into which table; each holds one at least."""
    parts: list[list[int]] = [[]]
    used = 0
    for index, width in enumerate(widths):
        if parts[-1] and used + width > room:
            parts.append([])
            used = 0
        parts[-1].append(index)
        used += width + _GAP
    return parts


def _headings(columns: Sequence[tuple[str, int]], spare: int) -> list[str]:
    """Each name in its column and what it needs of the *spare* width, broken where that is too little."""
    headings = []
    for name, width in columns:
        wanted = max(0, len(name) + _HEADING_PADDING - width)
        taken = min(wanted, spare)
        spare -= taken
        headings.append(_broken_name(name, width + taken - _HEADING_PADDING))
    return headings


def _broken_name(name: str, room: int) -> str:
    """A reranker's name in lines, broken before its options, or anywhere when one of them is too long."""
    lines = [""]
    for piece in re.findall(r"[^:,]*[:,]|[^:,]+", name):
        if lines[-1] and len(lines[-1]) + len(piece) > room:
            lines.append("")
        pieces = [piece[start : start + room] for start in range(0, len(piece), room)]
        lines[-1] += pieces[0]
        lines += pieces[1:]
    return "\n".join(lines)


def _broken(labels: Iterable[str], room: int) -> list[str]:
    return ["\n".join(textwrap.wrap(label, max(room, _LEAST_LABEL))) for label in labels]


def _table(labels: list[str], headings: list[str], cells: list[list[str]]) -> list[str]:
    from tabulate import tabulate

    text = tabulate(
        list(zip(labels, *cells, strict=True)),
        headers=["", *headings],
        tablefmt="simple",
        disable_numparse=True,
        colalign=("left",) * (len(headings) + 1),
    )
    return [line.rstrip() for line in str(text).splitlines()]


def _criterion_lines(result: Result, word: str, width: int) -> list[str]:
    check = result.check
    lines = _entry(word, check.name, describe(check, result.judgement), width)
    for line in result.judgement.lines:
        lines += _wrap(_indent(width) + line, width, _indent(width) + "    ")
    if result.judgement.verdict == "fail" and check.criterion.why:
        why = f"why: {printable(check.criterion.why)}"
        indent = _indent(width)
        lines += textwrap.wrap(why, width, initial_indent=indent, subsequent_indent=indent + "     ")
    return lines


def _entry(word: str, name: str, text: str, width: int) -> list[str]:
    return _wrap(f"{word:<9} {printable(name)}  {text}", width, _indent(width))


def _left_out_lines(left_out: Iterable[LeftOut], width: int) -> list[str]:
    lines = []
    for (criterion, reason), group in grouped_left_out(left_out).items():
        whose = "" if len(group) > 1 else f"[{group[0]}]"
        text = printable(f"{'LEFT OUT':<9} {criterion}{whose}  {reason}")
        lines += _wrap(text, width, _indent(width))
    return lines


def _wrap(text: str, width: int, indent: str) -> list[str]:
    """Wrap, the lines after the first indented, without tearing a figure from its interval."""
    bound = _FIGURE.sub(lambda match: match[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(bound, width, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def _indent(width: int) -> str:
    """As wide as the verdict's column, where there is room for it."""
    return " " * (10 if width >= _NARROW else 4)


def _unjudged(found: Iterable[Unjudged]) -> list[tuple[str, str]]:
    """Ids and their common reason; a run that is stopped may leave hundreds for one."""
    names: dict[str, list[str]] = {}
    for each in found:
        names.setdefault(each.reason, []).append(each.id)
    return [
        (", ".join(ids[:_NAMED]) + (f" and {len(ids) - _NAMED} more" if ids[_NAMED:] else ""), reason)
        for reason, ids in names.items()
    ]


def _closing_lines(run: Run, width: int) -> list[str]:
    results, settings, entries = run.results, run.settings, run.entries
    lines = [f"criteria: {verdict_counts(run)}"]
    if outcomes := outcome_line(run):
        lines.append(outcomes)
    if settings.save is not None and entries is not None:
        lacking = f"; {len(entries.unmeasured)} could not be measured" if entries.unmeasured else ""
        dropped = f"; {entries.dropped} that the suite asks for no more dropped" if entries.dropped else ""
        saved = f"saved: nothing; {settings.save} is not written"
        if entries.measured:
            saved = f"saved: {counted(entries.measured, 'metric')} in {settings.save}"
        lines.append(printable(f"{saved}{lacking}{dropped}"))
    lines += closing_lines(results.subjects, settings.records)
    return [part for line in lines for part in textwrap.wrap(line, width, subsequent_indent="  ")]
