"""The workflows of docs/ci.md: their commands run, one after another in one folder."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.docs.test_documentation import ROOT, blocks, commands, project
from tests.plugin.conftest import QUIET

__all__ = ["project"]

PAGE = ROOT / "docs" / "ci.md"
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
