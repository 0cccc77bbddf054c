"""The audit before the views: two lines, an entry in report and records, left out on demand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project

COUNTED = """
from pathlib import Path

def rank(context, texts):
    with Path("calls.txt").open("a") as file:
        file.write(f"{len(texts)} ")
    return [float(len(text)) + float(text[-1]) for text in texts]
"""
# Two lists, the first again, each of a new reranker, both in a batch with their reverses, two candidates
# alone, and a list in reverse. The texts are too short for one whose end is cut off.
QUESTIONS = 2 + 1 + 2 + 4 + 2 + 1


def run(project: Project, *arguments: str, reranker: str = "mine_counted:rank") -> pytest.RunResult:
    project.write("mine_counted.py", COUNTED)
    project.audits = True
    return project.run(
        "-k", "loc and not baseline", "--invari-json=report.json", *arguments, reranker=reranker
    )


def audit(project: Project) -> Any:
    [subject] = json.loads((project.path / "report.json").read_text())["subjects"]
    return subject["audit"]


def calls(project: Project) -> int:
    return len((project.path / "calls.txt").read_text().split())


def test_two_lines_and_an_entry_of_the_report(project: Project) -> None:
    result = run(project, "--invari-markdown=report.md")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "audit of mine_counted:rank on tasks, K=6: pointwise *",
            "*whether long texts are cut: not known*",
        ]
    )
    found = audit(project)
    assert (found["kind"], found["again_alone"], found["again_among_others"]) == ("pointwise", 0.0, 0.0)
    assert found["calls"] == QUESTIONS
    assert calls(project) == QUESTIONS + 160
    [line] = [each for each in (project.path / "report.md").read_text().splitlines() if "audit of" in each]
    assert "pointwise (alone," in line
    assert "   " not in line
    assert "0.0% among others; 0.0% ties; " in line


def test_it_is_left_out_on_demand(project: Project) -> None:
    result = run(project, "--invari-no-audit")
    result.stdout.no_fnmatch_line("*audit of*")
    assert audit(project) is None
    assert calls(project) == 160


def test_it_is_made_once_for_all_criteria_and_kept_in_the_records(project: Project) -> None:
    run(project, "--invari-records=kept")
    first = audit(project)
    assert calls(project) == QUESTIONS + 160
    run(project, "--invari-records=kept")
    assert (audit(project), calls(project)) == (first, QUESTIONS + 160)
    run(project, "--invari-records=kept", "--invari-replay")
    assert (audit(project), calls(project)) == (first, QUESTIONS + 160)


def test_records_without_one_that_lack_nothing_ask_nothing(project: Project) -> None:
    run(project, "--invari-records=kept", "--invari-no-audit")
    run(project, "--invari-records=kept")
    assert audit(project) is None
    assert calls(project) == 160


def test_one_that_cannot_be_read_is_told_with_its_file(project: Project) -> None:
    run(project, "--invari-records=kept")
    [path] = (project.path / "kept").glob("*/audit.json")
    path.write_text("{")
    result = run(project, "--invari-records=kept")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*audit.json: no audit can be read from it*remove it*"])


def test_a_question_that_fails_is_told_and_fails_nothing(project: Project) -> None:
    project.write(
        "mine_alone.py",
        """
        def rank(context, texts):
            if len(texts) == 1:
                raise ValueError("one \\x1b[31m text?")
            return [float(len(text)) + float(text[-1]) for text in texts]
        """,
    )
    result = run(project, reranker="mine_alone:rank")
    result.assert_outcomes(passed=1)
    assert audit(project)["kind"] == "unknown"
    assert "\x1b[31m" not in result.stdout.str()
    assert "a question failed: raised ValueError: one" in " ".join(result.stdout.str().split())


@pytest.mark.xdist
def test_workers_bring_it_along(project: Project) -> None:
    run(project, "-n", "1")
    assert audit(project)["kind"] == "pointwise"
