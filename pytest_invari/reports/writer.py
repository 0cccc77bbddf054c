"""The end of ``--invari-json``: a report is written when the run is over, and a fault there costs only that.

PYTEST_DONT_REWRITE: there are no asserts to rewrite.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.cache import why_unwritable
from pytest_invari.errors import InvariError
from pytest_invari.reports.text import harmless
from pytest_invari.usercode import user_code

__all__ = ["ReportWriter", "write_at_the_end"]

NAME = "invari-report-writer"


def write_at_the_end(config: pytest.Config, path: Path | None, make: Callable[[], object]) -> None:
    """Have the report that *make* gives written to *path* at the end of the run, but not by workers.

    Raises:
        InvariError: that cannot be; told before anything runs.
    """
    if path is None or hasattr(config, "workerinput"):
        return
    if not path.parent.is_dir():
        raise InvariError(f"--invari-json={path}: there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        # Replacing /dev/null by a report would be thorough.
        kind = "a folder" if path.is_dir() else "no ordinary file"
        raise InvariError(f"--invari-json={path}: that is {kind}")
    if reason := why_unwritable(path.parent):
        raise InvariError(f"--invari-json={path}: the folder cannot be written to ({reason})")
    config.pluginmanager.register(ReportWriter(path, make), NAME)


class ReportWriter:
    """Hooks that need no terminal. A fault is told after the summary, which may have taken hours to make."""

    def __init__(self, path: Path, make: Callable[[], object]) -> None:
        self._path, self._make = path, make
        self._fault = ""

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report; a run that was a success is none when it fails."""
        from pytest_invari.reports.json_report import write_report

        try:
            report: Any = self._make()
            with user_code(f"--invari-json={self._path}: writing it"):
                write_report(self._path, report)
        except InvariError as error:
            self._fault = harmless(f"ERROR: {error}")
            session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR

    def pytest_unconfigure(self) -> None:
        """Tell the fault."""
        if self._fault:
            print(self._fault, file=sys.stderr)
