"""The report of a run as Markdown, for pull requests and the summaries of CI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_invari.errors import counted
from pytest_invari.reports.markup import code, fenced, plain, table
from pytest_invari.reports.rows import (
    audits,
    closing_lines,
    grouped_left_out,
    measurements,
    outcome_line,
    verdict_counts,
)
from pytest_invari.suitefile.suite import wording
from pytest_invari.text import harmless

if TYPE_CHECKING:
    from pytest_invari.reports.run import Result, Results, Run
    from pytest_invari.suitefile.suite import Expansion


MARKDOWN_BEGINS = ("## invari: ",)
"""How the text of a report opens."""

_WORDS = {"pass": "pass", "fail": "**FAIL**", "undecided": "undecided"}
_OUTCOMES = {"regressed": "**REGRESSED**", "missing": "**MISSING**"}
_SHORTENED = "Shortened to the size that a summary may have; `--invari-markdown=FILE` writes the whole."


def markdown_text(run: Run) -> str:
    """The whole report."""
    return _joined(markdown_blocks(run))


def markdown_blocks(run: Run) -> list[str]:
    """The report as blocks: a heading, a paragraph, a list, a table or fenced lines each."""
    return [
        *_head(run),
        *_criteria(run.results.criteria),
        *_comparisons(run),
        *_not_judged(run),
        *_left_out(run.expansion),
        *_measured(run.results),
        *_closing(run),
    ]


def shortened(blocks: Iterable[str], size: int) -> str:
    """As many lines as fit into *size* bytes, with a note of it where some are left out."""
    blocks = list(blocks)
    whole = _joined(blocks)
    if len(whole.encode()) <= size:
        return whole
    kept: list[str] = []
    room = size - len(_joined([_SHORTENED]).encode()) - 1
    for block in blocks:
        part = _that_fits(block, room)
        room -= len(part.encode()) + 2
        if part:
            kept.append(part)
        if part != block:
            break
    return _joined([*kept, _SHORTENED]) if room >= 0 else ""


def _that_fits(block: str, size: int) -> str:
    """The first lines of a block; nothing of fenced ones, whose end would be missing."""
    lines: list[str] = []
    for line in block.split("\n"):
        size -= len(line.encode()) + 1
        if size < 0:
            return "" if block.startswith("```") else "\n".join(lines)
        lines.append(line)
    return block


def _joined(blocks: Iterable[str]) -> str:
    return "\n\n".join(blocks) + "\n"


def _head(run: Run) -> Iterator[str]:
    unjudged = len(run.blamed)
    missing = f", {unjudged:,} not judged" if unjudged else ""
    yield f"{MARKDOWN_BEGINS[0]}{verdict_counts(run)}{missing}"
    if outcomes := outcome_line(run):
        yield plain(outcomes)
    for check in {check.suite.name: check for check in run.expansion.items}.values():
        plan = check.plan
        queries = "all queries" if plan.queries is None else counted(plan.queries, "query")
        title = f": {plain(check.suite.title)}" if check.suite.title else ""
        yield (
            f"Suite {code(check.suite.name)}{title} (profile {code(check.profile.name)}, "
            f"{plan.views} views of {queries}, seed {plan.view_seed})"
        )


def _criteria(results: Sequence[Result]) -> Iterator[str]:
    if not results:
        return
    yield table(
        ["verdict", "criterion", "figure [95% interval]", "demand", "reason"],
        [
            [
                result.aside or _WORDS[result.judgement.verdict],
                code(result.check.id),
                *_parts(result),
            ]
            for result in results
        ],
    )
    for result in results:
        if lines := result.judgement.lines:
            yield f"{code(result.check.id)}:"
            yield fenced(lines)


def _parts(result: Result) -> list[str]:
    said = wording(result.check, result.judgement)
    remarks = list(said.remarks)
    if result.judgement.verdict == "fail" and result.check.criterion.why:
        remarks.append(f"why: {result.check.criterion.why}")
    return [plain(harmless(each)) for each in (said.figure, said.demand, "; ".join(remarks))]


def _comparisons(run: Run) -> Iterator[str]:
    if not run.results.comparisons:
        return
    yield "### Comparisons with the baseline"
    # The line opens with the difference, where there is one.
    rows = [
        [_OUTCOMES.get(each.outcome, each.outcome), code(each.check.id), plain(each.line)]
        for each in run.results.comparisons
    ]
    yield table(["outcome", "comparison", "difference [95% interval]"], rows)


def _not_judged(run: Run) -> Iterator[str]:
    if run.blamed:
        yield "### Not judged"
        yield _listed((each.id, each.reason) for each in run.blamed)
    if run.reruns:
        yield "### Run again"
        yield _listed((each.id, each.reason) for each in run.reruns)


def _listed(names: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- {code(name)}: {plain(harmless(reason))}" for name, reason in names)


def _left_out(expansion: Expansion) -> Iterator[str]:
    grouped = grouped_left_out(expansion.left_out)
    if grouped:
        yield "### Left out"
        yield "\n".join(
            f"- {code(criterion)} of {', '.join(map(code, subjects))}: {plain(harmless(reason))}"
            for (criterion, reason), subjects in grouped.items()
        )


def _measured(results: Results) -> Iterator[str]:
    if not results.subjects:
        return
    yield "### Measurements"
    for found in measurements(results.subjects):
        yield f"Data set {plain(found.title)}"
        columns = zip(*found.cells, strict=True)
        yield table(
            ["metric", *map(code, found.headings)],
            [[plain(label), *map(plain, cells)] for label, cells in zip(found.labels, columns, strict=True)],
        )
        for note in found.notes(range(len(found.headings))):
            yield plain(note)
    entries = audits(results.subjects)
    if entries:
        yield "\n".join(f"- {plain('; '.join(map(str.strip, entry)))}" for entry in entries)
    for summary in results.subjects:
        for name, lines in summary.tables.items():
            yield f"{code(name)} of {code(summary.reranker)} on {code(summary.dataset)}:"
            yield fenced(lines)


def _closing(run: Run) -> Iterator[str]:
    yield from map(plain, closing_lines(run.results.subjects, run.settings.records))
    yield fenced([run.command])
