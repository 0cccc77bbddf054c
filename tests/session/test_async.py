"""Users' async code in a run: one line, and no warning of a coroutine that was never awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project

HINT = "async functions are not awaited; wrap it in a plain function that calls asyncio.run"

HOOK = """
import pytest
from pytest_invari import CustomMetric

async def mine(*given): return 1.0
def late(given): return mine(given)

@pytest.hookimpl(optionalhook=True)
{hook}
"""


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        (
            "async def pytest_invari_rerankers(config): return {}",
            "hook pytest_invari_rerankers in {path} is async, and ",
        ),
        (
            "async def pytest_invari_update_report(config, report): return None",
            "hook pytest_invari_update_report in {path} is async, and ",
        ),
        (
            "def pytest_invari_rerankers(config): return mine()",
            "hook pytest_invari_rerankers returned a coroutine: ",
        ),
        (
            "def pytest_invari_criteria(config): return {'calm': mine}",
            "hook pytest_invari_criteria: kind 'calm' is async, and ",
        ),
        (
            "def pytest_invari_metrics(config): return {'mine': CustomMetric("
            "mine, direction='lower', low=0, high=1, description='x')}",
            "hook pytest_invari_metrics raised TypeError: function is async, and ",
        ),
    ],
)
def test_what_a_hook_gives_is_refused_before_anything_runs(project: Project, hook: str, message: str) -> None:
    path = project.write("conftest.py", HOOK.format(hook=hook))
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    [line] = [line for line in result.errlines if line.strip()]
    assert line.startswith(f"ERROR: {message.format(path=path)}{HINT}")


def test_a_reranker_is_refused_before_anything_is_ranked(project: Project) -> None:
    project.write("mine_async.py", "async def rank(context, texts):\n    return [1.0 for text in texts]\n")
    result = project.run(reranker="mine_async:rank")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    [line] = [line for line in result.errlines if line.strip()]
    assert line == f"ERROR: reranker 'mine_async:rank': 'rank' is async, and {HINT}"


@pytest.mark.parametrize(
    ("hook", "criterion", "message"),
    [
        (
            "def pytest_invari_metrics(config): return {'mine': CustomMetric("
            "late, direction='lower', low=0, high=1, description='x')}",
            "metric = 'mine'\nat_most = 0.5",
            "metric 'mine' of hook pytest_invari_metrics: its function returned a coroutine: ",
        ),
        (
            "def pytest_invari_criteria(config): return {'calm': late}",
            "kind = 'calm'",
            "hook pytest_invari_criteria: kind 'calm': it returned a coroutine: ",
        ),
    ],
)
def test_what_shows_in_an_answer_fails_its_criterion_with_one_line(
    project: Project, hook: str, criterion: str, message: str
) -> None:
    project.write("conftest.py", HOOK.format(hook=hook))
    project.write(
        "own.invari.toml",
        "[suite]\nname = 'own'\n[profile.quick]\ndatasets = ['tasks.jsonl']\nk = 6\nviews = 2\n"
        f"[[criterion]]\nname = 'mine'\n{criterion}\n",
    )
    result = project.pytest("--invari-suite=own.invari.toml", "--reranker=first_stage", "-rN", "-q")
    result.assert_outcomes(failed=1)
    assert f"{message}{HINT}" in " ".join(result.stdout.str().split())
