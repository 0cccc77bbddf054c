"""No file of a run may replace another: each option that names one has a path of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_invari.settings import Settings


# Options of pytest, pytest-html and pytest-reportlog that name what they write.
_OTHERS = ("--junitxml", "--html", "--log-file", "--report-log")


def require_separate_files(config: pytest.Config, settings: Settings) -> None:
    """Refuse a path that two options name, of ours or of other plugins.

    Raises:
        pytest.UsageError: which options, and the path.
    """
    if settings.save and settings.compare and settings.save.resolve() == settings.compare.resolve():
        raise pytest.UsageError(
            f"--invari-save={settings.save} would replace the baseline that it is compared with; save to "
            "another file, or renew it by a run of its own"
        )
    ours = {
        "--invari-records": settings.records,
        "--invari-save": settings.save,
        "--invari-compare": settings.compare,
        "--invari-json": settings.json,
        "--invari-markdown": settings.markdown,
        "--invari-html": settings.html,
    }
    known = {path.resolve(): switch for switch, path in _written_by_others(config).items()}
    for switch, path in ours.items():
        if path is None:
            continue
        if path.resolve() in known:
            raise pytest.UsageError(
                f"{switch}={path}: {known[path.resolve()]} names the same file; give each one of its own"
            )
        known[path.resolve()] = switch


def _written_by_others(config: pytest.Config) -> dict[str, Path]:
    named = {switch: config.getoption(switch, None) for switch in _OTHERS}
    # A conftest may have an option of that name that is a flag.
    return {
        switch: Path(path).expanduser() for switch, path in named.items() if path and isinstance(path, str)
    }
