"""The workflows of docs/ci.md: their commands run, one after another in one folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_documentation import ROOT, blocks, commands, project
from tests.session.conftest import QUIET

__all__ = ["project"]

PAGE = ROOT / "docs" / "ci.md"
SCRIPT = re.compile(r"^( *)- run: \|\n((?:\1    .*\n)+)", re.MULTILINE)
STEP = re.compile(r"^ *- (?:run: )?(pytest .*|python .*)$", re.MULTILINE)
INSTALLATION = "python -m pip install -r requirements.txt"


def steps(page_blocks: list[str]) -> list[str]:
    return [step for block in page_blocks for step in STEP.findall(block)]


def test_the_workflows_do_in_order_what_the_page_says(project: pytest.Pytester) -> None:
    every = [*commands(PAGE), *steps(blocks(PAGE, "yaml"))]
    run = [command for command in every if command != INSTALLATION]
    assert [len(every), len(run)] == [9, 6]
    outcomes = []
    for command in run:
        words, _, status = command.partition(" || ")
        assert status in ("", "test $? -eq 1")
        result = project.runpytest_inprocess(*QUIET, *shlex.split(words)[1:])
        assert result.ret in (0, 1), f"{command}: {result.stderr.str()}"
        outcomes += [line for line in result.outlines if line.startswith(("baseline ", "saved: "))]
    compared, saved = "baseline brief.json: 2 same", "saved: 2 metrics in brief.json"
    assert outcomes == [saved, compared, compared, saved, compared, saved]
    assert f"\n{compared}\n" in (project.path / "report.md").read_text(encoding="utf-8")


def test_the_page_names_every_outcome_and_installs_first() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for outcome in ("improved", "same", "regressed", "undecided", "missing"):
        assert f"\n| {outcome} |" in text
    for block in blocks(PAGE, "yaml"):
        assert steps([block])[0] == INSTALLATION


@pytest.fixture
def shell(project: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project as a checkout, in the environment of a job; ``gh`` writes its words to ``opened``."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "gh").write_text('#!/bin/sh\necho "$@" >> opened\n')
    (bin_folder / "pytest").write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest {" ".join(QUIET)} "$@"\n')
    for program in bin_folder.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
    for name, value in {"GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": "1", "HOME": str(bin_folder)}.items():
        monkeypatch.setenv(name, value)
    for command in (
        f"git init --quiet --bare {tmp_path}/origin.git",
        "git init --quiet --initial-branch=main",
        "git config user.name us && git config user.email us@example.org",
        f"git remote add origin {tmp_path}/origin.git",
        "echo opened > .gitignore && git add . && git commit --quiet --message first",
    ):
        assert done(command, project.path) == 0
    return project.path


def done(script: str, folder: Path) -> int:
    """The exit status of a step, as GitHub runs one."""
    return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, check=False).returncode


def branches(folder: Path) -> list[str]:
    told = subprocess.run(
        ["git", "ls-remote", "--heads", "origin"], cwd=folder, check=True, capture_output=True, text=True
    )
    return [line.partition("refs/heads/")[2] for line in told.stdout.splitlines()]


def test_a_new_baseline_is_a_pull_request_and_an_unchanged_one_is_none(shell: Path) -> None:
    [workflow] = [block for block in blocks(PAGE, "yaml") if "baseline.yml" in block]
    save = next(step for step in steps([workflow]) if step.startswith("pytest "))
    [(_, script)] = SCRIPT.findall(workflow)
    # Its criterion on relevance is not met.
    assert done(save.partition(" || ")[0], shell) == 1
    assert done(save, shell) == 0
    for _ in range(2):
        assert done(script, shell) == 0
        assert branches(shell) == ["baseline-7-1"]
        assert (shell / "opened").read_text() == "pr create --fill\n"
        assert done(save, shell) == 0


def test_a_reranker_that_crashes_saves_nothing_and_fails_the_job(shell: Path) -> None:
    save = next(step for step in steps(blocks(PAGE, "yaml")) if "--invari-save" in step)
    module = shell / "my_rerankers.py"
    with module.open("a") as file:
        file.write("\ndef shortest_first(context, texts):\n    raise OSError('the index is away')\n")
    assert done(save, shell) == 1
    module.unlink()
    assert done(save, shell) == 1
    assert not (shell / "brief.json").exists()
