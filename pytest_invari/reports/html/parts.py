"""What a page is made of: sections with pictures, tables and notes. Text is plain until it is rendered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Picture", "Section", "Table"]


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
    svg: str


@dataclass(frozen=True, slots=True)
class Section:
    """One heading of the page: what it shows, its pictures, and the same numbers as tables."""

    anchor: str
    title: str
    text: str
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = field(default=())
