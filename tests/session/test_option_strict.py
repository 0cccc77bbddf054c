"""--invari-strict: a release gate does not let an undecided criterion through."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
def test_undecided_fails_and_stays_called_undecided(project: Project, workers: tuple[str, ...]) -> None:
    project.write_suite("open", loc="at_least = 0.001")
    result = project.pytest(
        "open.invari.toml", "--reranker=random", "--invari-strict", "--invari-json=r.json", *workers
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["criteria: 0 passed, 0 failed, 1 undecided (fails under --invari-strict)"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    report = json.loads((project.path / "r.json").read_text())
    assert report["verdicts"] == {"pass": 0, "fail": 0, "undecided": 1}
    assert report["strict"] is True


def test_the_ini_key_switches_it_on(project: Project) -> None:
    project.write_suite("open", loc="at_least = 0.001")
    project.write("pytest.ini", "[pytest]\ninvari_strict = true\n")
    project.pytest("open.invari.toml", "--reranker=random").assert_outcomes(failed=1)


def test_a_decided_criterion_is_not_touched(project: Project) -> None:
    project.run("--invari-strict").assert_outcomes(passed=4)
