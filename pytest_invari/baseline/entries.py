"""The entries that a run's items were measured for, gathered from its reports wherever the items ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_invari.baseline.changes import forgotten
from pytest_invari.baseline.file import Entry, read_baseline

if TYPE_CHECKING:
    from pytest_invari.suitefile.suite import Check


class MeasuredEntries:
    """What a baseline is to store of a run."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._unmeasured: dict[str, None] = {}
        self.dropped = 0
        """How many entries of the file :meth:`merged` has left out."""

    def add(self, entries: Mapping[str, Any]) -> None:
        """Take the entries of an item's report; one that is None could not be measured there."""
        for name, entry in entries.items():
            if entry is None:
                self._unmeasured[name] = None
            else:
                self._entries[name] = Entry(**entry)

    @property
    def measured(self) -> int:
        """How many there are."""
        return len(self._entries)

    @property
    def unmeasured(self) -> list[str]:
        """Those that a baseline lacks because they could not be measured."""
        return [name for name in self._unmeasured if name not in self._entries]

    def merged(self, path: Path, checks: Iterable[Check]) -> dict[str, Entry]:
        """The entries of the file at *path*, where there is one, with those of this run in their places.

        Of the subjects that this run stores, those are dropped whose metric the suites of *checks* ask for no
        more.

        Raises:
            InvariError: the file is no baseline.
        """
        known = read_baseline(path) if path.exists() else {}
        stored = {_subject_of(name) for name in self._entries}
        lost = [f"{suite}::{metric}[{subject}]" for suite, metric, subject in forgotten(known, checks)]
        dropped = {name for name in lost if _subject_of(name) in stored}
        self.dropped = len(dropped)
        return {name: entry for name, entry in known.items() if name not in dropped} | self._entries


def _subject_of(entry: str) -> tuple[str, str]:
    """Suite and subject of an entry's id."""
    return entry.partition("::")[0], entry.partition("[")[2]
