"""What a page is made of: sections with pictures, tables and notes. Text is plain until it is rendered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_invari.text import printable

if TYPE_CHECKING:
    from pytest_invari.reports.subjects import Summary


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first column names its rows; ``rows`` are as long as ``headings``."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing: SVG that is safe to stand in the page, with a title and a description of its own."""

    title: str
    caption: str
    svg: str


@dataclass(frozen=True, slots=True)
class Cell:
    """Where a candidate came out in one view, where it was shown, and a shade from 0 (bottom) to 9 (top)."""

    rank: str
    shown: str
    shade: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate of a query: how far it ``moved``, and a cell for each view."""

    title: str
    id: str
    is_relevant: bool
    moved: str
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a subject: what it asks, how far two of its rankings are apart, and its candidates."""

    subject: str
    id: str
    text: str
    distance: str
    views: Sequence[str]
    candidates: Sequence[Ranked]


@dataclass(frozen=True, slots=True)
class Absent:
    """A section that a run has nothing for, and why."""

    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class Section:
    """One heading of the page: what it shows, its pictures, and the same numbers as tables."""

    anchor: str
    title: str
    text: str
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    queries: Sequence[Query] = ()


def not_drawn(why: str, subjects: Sequence[Summary]) -> str:
    """A sentence behind others that names the *subjects* without a line; empty where all have one."""
    names = [printable(f"{each.reranker} on {each.dataset}, K={each.k}") for each in subjects]
    return f" Not drawn, since {why}: {'; '.join(names)}." if names else ""
