"""Items that a conftest expects to fail: every report says so with the reason, and none calls them failed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project

MARKS = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name.startswith("gpi"):
            item.add_marker(pytest.mark.xfail({arguments}))
"""
REASON = "expected to fail: known"


def run(project: Project, arguments: str, *options: str) -> tuple[pytest.RunResult, Any]:
    project.write("conftest.py", MARKS.format(arguments=arguments))
    reports = ("--invari-json=r.json", "--invari-markdown=r.md", "--junitxml=junit.xml")
    result = project.run("-k", "gpi or calls", *reports, *options, reranker="input_order")
    return result, json.loads((project.path / "r.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
def test_an_expected_failure_is_told_as_one_everywhere(
    project: Project, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    result, report = run(project, "reason='known'", *workers)
    result.assert_outcomes(passed=1, xfailed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["XFAILED   gpi?input_order*", "criteria: 1 passed, 0 failed, 1 undecided"])
    result.stdout.fnmatch_lines(["::warning *invari xfailed%3A gpi*known"])
    result.stdout.no_fnmatch_line("::error*")
    assert report["verdicts"] == {"pass": 1, "fail": 0, "undecided": 1}
    [found] = [each for each in report["criteria"] if each["criterion"] == "gpi"]
    assert (found["verdict"], found["reason"]) == ("undecided", REASON)
    assert found["estimate"] > 0.2
    assert report["unjudged"] == []
    for name in ("r.md", "summary.md"):
        text = (project.path / name).read_text(encoding="utf-8")
        assert "1 passed, 0 failed, 1 undecided" in text
        assert REASON in text
    assert 'name="invari_verdict" value="undecided"' in (project.path / "junit.xml").read_text()


def test_what_is_not_run_because_it_is_expected_to_fail_is_told_as_what_is_skipped(project: Project) -> None:
    result, report = run(project, "run=False, reason='known'")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["XFAILED   gpi?input_order*", "criteria: 1 passed, 0 failed, 1 undecided"])
    [found] = [each for each in report["criteria"] if each["criterion"] == "gpi"]
    reason = "expected to fail: [NOTRUN] known"
    assert (found["verdict"], found["reason"]) == ("undecided", reason)
    assert [each["reason"] for each in report["unjudged"]] == [reason]
    assert "known" in (project.path / "r.md").read_text(encoding="utf-8")


def test_an_expected_regression_is_undecided(project: Project) -> None:
    project.run("--invari-save=base.json", "-k", "gpi or calls", reranker="oracle")
    text = (project.path / "base.json").read_text(encoding="utf-8").replace("oracle", "input_order")
    (project.path / "base.json").write_text(text, encoding="utf-8")
    result, report = run(project, "reason='known'", "--invari-compare=base.json")
    assert result.ret == 0
    outcomes = {each["criterion"]: (each["outcome"], each["reason"]) for each in report["changes"]}
    assert outcomes["gpi"] == ("undecided", REASON)
    assert outcomes["calls"][0] == "same"
    result.stdout.fnmatch_lines(["UNDECIDED gpi@baseline*", "baseline base.json: 1 undecided, 1 same"])
