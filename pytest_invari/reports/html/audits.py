"""What a few questions told of each reranker before it ranked."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from pytest_invari.observation.audit import Audit
from pytest_invari.reports.html.parts import Absent, Section, Table
from pytest_invari.reports.subjects import Summary
from pytest_invari.text import harmless, printable

_TITLE = "What each reranker is"
_TEXT = (
    "Before it ranked, each reranker was asked a few questions about the first lists. The answers decide "
    "nothing; they say how the figures are to be read."
)


def section(subjects: Sequence[Summary]) -> Section | Absent:
    """The section of the page, or why there is none."""
    rows = [
        (
            printable(each.reranker),
            printable(each.dataset),
            str(each.k),
            *map(harmless, Audit.from_plain(structs.asdict(each.audit)).lines),
        )
        for each in subjects
        if each.audit
    ]
    if not rows:
        return Absent(_TITLE, "no reranker was asked any questions before it ranked")
    headings = ("reranker", "data set", "list length", "what it is", "ties, texts, and what it took")
    return Section("audits", _TITLE, _TEXT, tables=[Table("Audits", headings, rows)])
