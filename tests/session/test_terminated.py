"""SIGTERM, by which build servers cancel a job, ends a run as Ctrl-C does: what was ranked is kept."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without a signal")

SLOW = """
import time

def rank(context, texts):
    with open("calls.txt", "a") as file:
        print(context, file=file, flush=True)
    time.sleep(0.01)
    return [sum(map(ord, text)) / 7 for text in texts]
"""

LAST_WORDS = (
    r"interrupted: (\d+) of 160 rankings by mine_slow:rank on tasks, K=6 are kept in kept; "
    r"the same command goes on from there\n"
)

OWN_HANDLER = """
import os, signal
signal.signal(signal.SIGTERM, lambda number, frame: os._exit(77))
"""


def terminated(project: Project) -> subprocess.CompletedProcess[str]:
    """A run that is sent SIGTERM once it has ranked a few lists."""
    project.write("mine_slow.py", SLOW)
    command = [
        *(sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:hypothesispytest", "-p", "no:anyio"),
        *("--invari-suite=small.invari.toml", "--reranker=mine_slow:rank", "-k", "gpi", "--invari-no-audit"),
        *("--invari-records=kept", "--invari-json=report.json"),
    ]
    process = subprocess.Popen(
        command, cwd=project.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    calls = project.path / "calls.txt"
    while not calls.exists() or calls.read_text().count("\n") < 20:
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def test_what_was_ranked_is_kept_and_told(project: Project) -> None:
    result = terminated(project)
    assert result.returncode == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt: SIGTERM" in result.stdout
    said = re.fullmatch(LAST_WORDS, result.stderr)
    assert said is not None
    files = project.path.glob("kept/*/views/*.parquet")
    kept = sum(pyarrow.parquet.read_metadata(file).num_rows for file in files)
    assert int(said[1]) == kept
    # The list that was asked for when the signal came is not kept, unless its ranking was there already.
    ranked = (project.path / "calls.txt").read_text().count("\n")
    assert ranked - 1 <= kept <= ranked
    # The reports are written, though the one criterion is not judged.
    assert json.loads((project.path / "report.json").read_text())["criteria"] == []


def test_a_handler_of_the_users_own_stays(project: Project) -> None:
    project.write("conftest.py", OWN_HANDLER)
    assert terminated(project).returncode == 77
