"""--invari-records and --invari-replay: what was ranked once is judged again without the reranker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

COUNTED = """
from pathlib import Path

def rank(context, texts):
    with Path("calls.txt").open("a") as file:
        file.write("x")
    return [float(len(text)) + float(text[-1]) for text in texts]
"""


def calls(project: Project) -> int:
    path = project.path / "calls.txt"
    return len(path.read_text()) if path.exists() else 0


def criteria(project: Project, *arguments: str) -> Any:
    project.run("--invari-json=report.json", *arguments, reranker="mine_counted:rank")
    return json.loads((project.path / "report.json").read_text())["criteria"]


def test_a_run_with_records_is_judged_again_from_them(project: Project) -> None:
    project.write("mine_counted.py", COUNTED)
    first = criteria(project, "--invari-records=kept")
    assert calls(project) == 160
    assert criteria(project, "--invari-records=kept") == first
    assert criteria(project, "--invari-records=kept", "--invari-replay") == first
    assert calls(project) == 160


def test_without_records_nothing_is_kept(project: Project) -> None:
    before = {path.name for path in project.path.iterdir()}
    project.run("-p", "no:cacheprovider")
    assert {path.name for path in project.path.iterdir()} == before


def test_the_ini_key_names_the_folder(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\ninvari_records = kept\n")
    project.run().assert_outcomes(passed=4)
    assert (project.path / "kept").is_dir()


def test_replay_needs_the_folder(project: Project) -> None:
    result = project.run("--invari-replay")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --invari-replay needs --invari-records=DIR*"])


def test_replay_of_what_was_never_recorded_is_refused(project: Project) -> None:
    project.run("--invari-records=kept", "-k", "calls")
    for arguments in (("--invari-views=4",), ("--invari-seed=5",)):
        result = project.run("--invari-records=kept", "--invari-replay", "-k", "calls", *arguments)
        assert result.ret != 0
        assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_workers_share_the_folder(project: Project) -> None:
    pytest.importorskip("xdist")
    run = ("--reranker=biased", "--reranker=input_order", "--invari-records=kept")
    first = project.run(*run, "-n2")
    again = project.run(*run, "--invari-replay", "-n2")
    assert first.parseoutcomes() == again.parseoutcomes()
