"""Colour as everywhere in pytest: by its option, by the terminal, and never against NO_COLOR."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project

ESCAPE = re.compile(r"\x1b\[[\d;]*m")
RED, GREEN = "\x1b[31m", "\x1b[32m"


def section(result: pytest.RunResult) -> list[str]:
    lines = result.outlines
    start = next(index for index, line in enumerate(lines) if "= invari =" in line)
    return lines[start : next(i for i, line in enumerate(lines) if i > start and "= short test" in line)]


def test_verdicts_are_coloured_where_that_is_asked_for(project: Project) -> None:
    plain = section(project.run("--color=no", reranker="input_order"))
    assert not any("\x1b" in line for line in plain)
    coloured = section(project.run("--color=yes", reranker="input_order"))
    assert any(line.startswith(f"{RED}FAIL ") for line in coloured)
    assert any(line.startswith(f"{GREEN}PASS ") for line in coloured)
    # Colour changes no text, and no line of it becomes longer than the terminal.
    without = [ESCAPE.sub("", line) for line in coloured]
    assert [line for line in without if "second" not in line and "of reranking" not in line] == [
        line for line in plain if "second" not in line and "of reranking" not in line
    ]
    assert max(map(len, without)) <= 80


@pytest.mark.parametrize(
    ("variables", "coloured"), [({"NO_COLOR": "1"}, False), ({"FORCE_COLOR": "1"}, True)]
)
def test_the_variables_of_the_environment_are_heeded(
    project: Project, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], coloured: bool
) -> None:
    monkeypatch.delenv("PY_COLORS")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    lines = section(project.run(reranker="input_order"))
    assert any("\x1b" in line for line in lines) is coloured


@pytest.mark.parametrize("options", [(), ("-q",), ("--capture=sys",), ("-v",), ("--tb=no", "-r", "N")])
def test_the_section_needs_no_option_to_be_seen(project: Project, options: tuple[str, ...]) -> None:
    project.run(*options).stdout.fnmatch_lines(
        ["*= invari =*", "PASS      loc*", "criteria: 4 passed, 0 failed, 0 undecided"]
    )
