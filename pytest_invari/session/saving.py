"""What a run measured, stored as a baseline at its end, and the alarm where something could not be measured.

PYTEST_DONT_REWRITE: there are no asserts to rewrite.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pytest_invari.baseline.entries import MeasuredEntries
from pytest_invari.baseline.file import read_baseline, write_text
from pytest_invari.baseline.stored import EntryMaker
from pytest_invari.errors import counted
from pytest_invari.session.options import runs_nothing
from pytest_invari.session.writing import write_at_the_end
from pytest_invari.text import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_invari.baseline.entries import MeasuredEntries
    from pytest_invari.session.judging import Judging
    from pytest_invari.suitefile.suite import Check


class Saving:
    """What a baseline is to hold, from the making of its entries to the writing of the file.

    Args:
        config: pytest's.
        path: of the file. What is in it and was not measured stays.
        judging: measures the items' subjects.
        checks: the items of the run.

    Raises:
        InvariError: the file is something else, or cannot be written.
    """

    def __init__(self, config: pytest.Config, path: Path, judging: Judging, checks: Iterable[Check]) -> None:
        self.entry_maker = EntryMaker(judging.measured, judging.fingerprint)
        self.entries = entries = MeasuredEntries()
        write_at_the_end(
            config,
            "--invari-save",
            path,
            lambda: entries.merged(path, checks) if entries.measured else None,
            write_text,
        )
        if path.exists():
            read_baseline(path)
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(_Shortfall(path, entries), "invari-shortfall")

    def add(self, report: pytest.TestReport) -> None:
        """Take the entries that come with an item's report, wherever it ran."""
        parts = getattr(report, "invari", None)
        if parts is not None:
            self.entries.add(parts["entries"])


class _Shortfall:
    """Ends a run with an error of its own where it could not store all that it was asked to.

    A criterion that is not met is no such case, so that the two are told apart by the exit status.
    """

    def __init__(self, path: Path, entries: MeasuredEntries) -> None:
        self._path, self._entries = path, entries
        self._fault = ""

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Change the exit status; that of an interruption stays, and that of a run that runs nothing."""
        is_over = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        self._fault = self._shortfall() if is_over and not runs_nothing(session.config) else ""
        if self._fault:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_unconfigure(self) -> None:
        """Tell it last, where it is not overlooked."""
        if self._fault:
            print(harmless(f"ERROR: --invari-save={self._path}: {self._fault}"), file=sys.stderr)

    def _shortfall(self) -> str:
        lacking, stored = self._entries.unmeasured, self._entries.measured
        if not lacking:
            return "" if stored else "nothing was measured that a baseline stores; nothing is saved"
        asked = counted(len(lacking) + stored, "metric")
        rest = "the others are saved" if stored else "nothing is saved"
        return f"{len(lacking)} of {asked} could not be measured, the first {lacking[0]}; {rest}"
