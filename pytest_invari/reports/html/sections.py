"""The sections of a page, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_invari.reports.html import audits, exposure, forest, freshness, lengths, plane, unstable

if TYPE_CHECKING:
    from pytest_invari.reports.html.page import Page
    from pytest_invari.reports.html.parts import Section

__all__ = ["sections"]


def sections(page: Page) -> Iterator[Section]:
    """Those that the run has something for."""
    subjects = page.book.subjects
    found = (
        forest.section(page),
        exposure.section(subjects),
        lengths.section(subjects),
        freshness.section(subjects),
        plane.section(subjects),
        unstable.section(subjects),
        audits.section(subjects),
    )
    yield from (each for each in found if each is not None)
