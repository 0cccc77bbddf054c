"""The sections of a page, in the order in which they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_invari.reports.html import audits, exposure, forest, freshness, lengths, plane, unstable

if TYPE_CHECKING:
    from pytest_invari.reports.html.parts import Absent, Section
    from pytest_invari.reports.run import Run


def sections(run: Run) -> list[Section | Absent]:
    """All of them; in place of what the run has nothing for stands the reason."""
    subjects = run.results.subjects
    return [
        forest.section(run),
        exposure.section(subjects),
        lengths.section(subjects),
        freshness.section(subjects),
        plane.section(subjects),
        unstable.section(subjects),
        audits.section(subjects),
    ]
