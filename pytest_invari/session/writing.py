"""Files that are written when the run is over, and whose faults cost no more than the file.

PYTEST_DONT_REWRITE: there are no asserts to rewrite.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.cache import atomic_file, why_unwritable
from pytest_invari.errors import InvariError
from pytest_invari.protocol.usercode import user_code
from pytest_invari.session.options import runs_nothing
from pytest_invari.text import harmless

NAME = "invari-writer"


def write_at_the_end(
    config: pytest.Config,
    switch: str,
    path: Path | None,
    make: Callable[[], Any],
    encode: Callable[[Any], str],
    begins: tuple[str, ...] = ("",),
) -> None:
    """Have what *make* gives written to *path* at the end of the run, but not by workers.

    It is written as the text that *encode* makes of it, and not at all where it is None. *switch* is the
    option that names the path. A file that is there is replaced when it is empty or opens as one of *begins*
    says, as what this option writes does: a suite, a task file or a module at that path is the user's own.

    Raises:
        InvariError: that cannot be; told before anything runs.
    """
    if path is None or hasattr(config, "workerinput"):
        return
    if not path.parent.is_dir():
        raise InvariError(f"{switch}={path}: there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        # Replacing /dev/null by a report would be thorough.
        kind = "a folder" if path.is_dir() else "no ordinary file"
        raise InvariError(f"{switch}={path}: that is {kind}")
    if reason := why_unwritable(path.parent):
        raise InvariError(f"{switch}={path}: the folder cannot be written to ({reason})")
    _require_replaceable(switch, path, begins)
    config.pluginmanager.register(Writer(switch, path, make, encode, begins), f"{NAME}{switch}")


class Writer:
    """Hooks that need no terminal. A fault is told after the summary, which may have taken hours to make."""

    def __init__(
        self,
        switch: str,
        path: Path,
        make: Callable[[], Any],
        encode: Callable[[Any], str],
        begins: tuple[str, ...],
    ) -> None:
        self._switch, self._path, self._make, self._encode = switch, path, make, encode
        self._begins = begins
        self._fault = ""

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file, unless nothing was run; a run that was a success is none when it fails."""
        if runs_nothing(session.config):
            return
        try:
            made = self._make()
            if made is None:
                return
            # Something else may have been written there in the meantime.
            _require_replaceable(self._switch, self._path, self._begins)
            with user_code(f"{self._switch}={self._path}: writing it"):
                text = self._encode(made)
                with atomic_file(self._path) as temporary:
                    temporary.write_text(text, encoding="utf-8")
        except InvariError as error:
            self._fault = harmless(str(error))
            session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Tell the fault."""
        if self._fault:
            from pytest_invari.reports.github import annotate_error

            print(f"ERROR: {self._fault}", file=sys.stderr)
            annotate_error(config, self._fault)


def _require_replaceable(switch: str, path: Path, begins: tuple[str, ...]) -> None:
    """Refuse to replace a file that this option has not written."""
    if not path.is_file():
        return
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            opening = file.read(max(map(len, begins)))
    except OSError as error:
        raise InvariError(f"{switch}={path}: cannot be read ({error.strerror or error})") from None
    if opening and not opening.startswith(begins):
        raise InvariError(
            f"{switch}={path}: that file is no report which this option has written, and it would be "
            "replaced; name another file, or remove this one"
        )
