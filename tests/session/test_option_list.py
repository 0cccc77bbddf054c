"""--invari-list: everything that can be named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_invari.metrics import metric_names
from pytest_invari.suitefile.keys import CRITERION_KINDS

if TYPE_CHECKING:
    from tests.session.conftest import Project


HOOK = """
import pytest

@pytest.hookimpl(optionalhook=True)
def pytest_invari_rerankers(config):
    return {"house": "shop.search:rerank"}
"""


def test_everything_is_listed_one_line_each_and_nothing_runs(project: Project) -> None:
    project.write("test_mine.py", "def test_it(): assert 0")
    result = project.pytest("--invari-list")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "suites (--invari-suite):",
            "  recsys26  *profiles quick, paper)",
            "rerankers (--reranker):",
            "  bootstrapping  *",
            "  sgs  *",
            "  zero_shot  *",
            "data sets (--invari-dataset):",
            "  movielens_small  *",
            "metrics (in a suite):",
            "  loc  *",
            "kinds of criteria (in a suite):",
            "  metric  *",
            "  witness  *",
        ]
    )
    names = (*metric_names(), *CRITERION_KINDS)
    assert all(any(line.startswith(f"  {name} ") for line in result.outlines) for name in names)
    assert "test session starts" not in result.stdout.str()


def test_a_conftest_hook_and_pyproject_are_listed_too(project: Project) -> None:
    project.write("conftest.py", HOOK)
    project.write(
        "pyproject.toml", '[tool.pytest.ini_options]\n[tool.invari.rerankers.mine]\nreranker = "constant"\n'
    )
    project.pytest("--invari-list").stdout.fnmatch_lines(
        ["  house  *shop.search:rerank*", "  mine  *pyproject.toml*"]
    )


KINDS = """
import pytest

def stable_head(study):
    '''The first item stays.

    And more.
    '''

def calm(study): pass

@pytest.hookimpl(optionalhook=True)
def pytest_invari_criteria(config):
    return {"stable_head": stable_head, "calm": KIND}
"""


def test_kinds_of_criteria_that_a_hook_names_are_listed_too(project: Project) -> None:
    project.write("conftest.py", KINDS.replace("KIND", "calm"))
    project.pytest("--invari-list").stdout.fnmatch_lines(
        [
            "kinds of criteria (in a suite):",
            "  calm         conftest hook: conftest.calm",
            "  metric       *",
            "  stable_head  conftest hook: The first item stays.",
            "  witness      *",
        ]
    )


def test_a_broken_kind_is_one_line(project: Project) -> None:
    project.write("conftest.py", KINDS.replace("KIND", "3"))
    result = project.pytest("--invari-list")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: hook pytest_invari_criteria: kind 'calm' is 3, not a function *"])


def test_a_broken_table_is_one_line(project: Project) -> None:
    project.write("pyproject.toml", "[tool.pytest.ini_options]\n[tool.invari.rerankers.mine]\nnothing = 1\n")
    result = project.pytest("--invari-list")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: *pyproject.toml*"])
