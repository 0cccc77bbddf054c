"""The last lines of every report: what the rankings cost, and where they came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_invari.errors import counted
from pytest_invari.reports.rows import cost_line, failed_records_line, records_line
from pytest_invari.reports.subjects import Summary
from pytest_invari.text import printable

if TYPE_CHECKING:
    from pathlib import Path


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
