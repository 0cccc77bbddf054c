"""The least stable queries: where each candidate came out in each view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_invari.reports.html.parts import Absent, Cell, Query, Ranked, Section
from pytest_invari.reports.subjects import Summary
from pytest_invari.text import number, printable

_SHADES = 10
_TITLE = "The least stable queries"
_TEXT = (
    "The queries whose rankings differ most from view to view, by the mean Kendall distance of two of them "
    "(0: the same, 1: reversed). A column is a view, a row a candidate, the best on average first. In each "
    "cell stands the place that the candidate was ranked at, and below it the place it was shown at; the "
    "stronger the colour, the nearer to the top."
)


def section(subjects: Sequence[Summary]) -> Section | Absent:
    """The section of the page, or why there is none."""
    found = [query for each in subjects for query in queries(each)]
    if not found:
        return Absent(_TITLE, "no query with a figure was ranked in two ways")
    return Section("queries", _TITLE, _TEXT, queries=found)


def queries(summary: Summary) -> list[Query]:
    """Those of one subject, the least stable first."""
    subject = printable(f"{summary.reranker} on {summary.dataset}, lists of {summary.k}")
    return [_query(subject, each) for each in summary.pictures["unstable"]]


def _query(subject: str, found: Any) -> Query:
    candidates = sorted(found["candidates"], key=_order)
    return Query(
        subject,
        found["query"],
        found["text"],
        number(found["distance"], 3),
        found["views"],
        [
            Ranked(
                each["title"],
                each["id"],
                each["relevant"],
                _moved(each["ranks"]),
                [
                    _cell(rank, shown, len(candidates))
                    for rank, shown in zip(each["ranks"], each["shown"], strict=True)
                ],
            )
            for each in candidates
        ],
    )


def _order(candidate: Any) -> tuple[float, str]:
    """The mean rank, then the id; a view without a ranking has none for anybody."""
    ranks = [rank for rank in candidate["ranks"] if rank is not None]
    return sum(ranks) / len(ranks), candidate["id"]


def _moved(ranks: Sequence[int | None]) -> str:
    known = [rank for rank in ranks if rank is not None]
    return f"{min(known)} to {max(known)}" if min(known) < max(known) else f"always {known[0]}"


def _cell(rank: int | None, shown: int, items: int) -> Cell:
    if rank is None:
        return Cell("failed", str(shown), 0)
    return Cell(str(rank), str(shown), _SHADES - 1 - (rank - 1) * _SHADES // items)
