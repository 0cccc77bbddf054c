"""pytest-xdist: the same results, a subject in one worker, and what a crash leaves."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project

pytestmark = pytest.mark.xdist

WHERE = """
import json, os, pathlib

def pytest_runtest_logfinish(nodeid):
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker:
        with open(f"ran_{worker}.txt", "a") as file:
            file.write(nodeid + "\\n")
"""


def criteria(project: Project, *arguments: str) -> Any:
    project.run("--reranker=biased", "--reranker=input_order", "--invari-json=report.json", *arguments)
    found = json.loads((project.path / "report.json").read_text())
    return found["criteria"]


def test_workers_come_to_the_same_figures_and_keep_a_subject_together(project: Project) -> None:
    alone = criteria(project)
    project.write("conftest.py", WHERE)
    project.write(
        "test_mine.py", "import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test_it(n): pass"
    )
    assert criteria(project, "-n2", "test_mine.py") == alone
    workers = defaultdict(set)
    for path in project.path.glob("ran_*.txt"):
        for name in path.read_text().split():
            workers[name.partition("[")[2]].add(path.name)
    subjects = {subject: seen for subject, seen in workers.items() if "tasks" in subject}
    assert len(subjects) == 3
    assert all(len(seen) == 1 for seen in subjects.values())
    assert len(list(project.path.glob("ran_*.txt"))) == 2


@pytest.mark.parametrize("mode", ["loadscope", "worksteal", "loadgroup"])
def test_the_other_ways_to_distribute_work_too(project: Project, mode: str) -> None:
    project.run("-n2", f"--dist={mode}").assert_outcomes(passed=4)


def test_an_id_runs_in_a_worker(project: Project) -> None:
    project.run("-n2", "small::gpi[first_stage-tasks-K6]").assert_outcomes(passed=1)


def test_lf_after_a_distributed_run_finds_what_failed(project: Project) -> None:
    project.run("-n2", reranker="random").assert_outcomes(passed=1, failed=2)
    project.run("-n2", "--lf", reranker="random").assert_outcomes(failed=2)


def test_an_undecided_check_is_undecided_in_the_controller(project: Project) -> None:
    result = project.run("-n2", "--invari-queries=8", "-k", "gpi")
    result.stdout.fnmatch_lines(["UNDECIDED gpi*", "*= 1 undecided in *"])
    assert result.ret == 0


CRASH = """
import os, pathlib

def rank(context, texts):
    with open("crashes.txt", "a") as file:
        file.write("x")
    os._exit(3)
"""


@pytest.mark.parametrize(
    "workers",
    [("-n1",), ("-n2",), *[("-n2", f"--dist={name}") for name in ("loadfile", "loadscope", "loadgroup")]],
    ids=" ".join,
)
def test_a_subject_that_kills_its_worker_is_tried_once(project: Project, workers: tuple[str, ...]) -> None:
    project.write("mine_crash.py", CRASH)
    project.write(
        "test_mine.py", "import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test_it(n): pass"
    )
    options = ("--reranker=mine_crash:rank", "--reranker=first_stage", "--invari-json=report.json")
    result = project.run(
        *workers, *options, "--invari-strict", "--junitxml=junit.xml", "test_mine.py", reranker=None
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=4 + 6, failed=4)
    assert (project.path / "crashes.txt").read_text() == "x"
    report = json.loads((project.path / "report.json").read_text())
    assert report["verdicts"] == {"pass": 4, "fail": 4, "undecided": 0}
    assert report["unjudged"] == []
    lost = {each["criterion"]: each["reason"] for each in report["criteria"] if each["verdict"] == "fail"}
    at = "crashed while running 'small::loc[mine_crash:rank-tasks-K6]'"
    assert re.fullmatch(f"nothing measured: worker 'gw\\d' {re.escape(at)}", lost.pop("loc"))
    assert set(lost.values()) == {f"nothing measured: its worker {at}"}
    assert "its worker crashed" in (project.path / "junit.xml").read_text()


def test_a_crash_that_would_not_come_again_fails_the_subject_all_the_same(project: Project) -> None:
    crash = CRASH.replace(
        "    os._exit", "    if file.name and len(pathlib.Path(file.name).read_text()) == 1: os._exit"
    )
    project.write("mine_crash.py", crash + "    return [float(text.split()[-1]) for text in texts]\n")
    result = project.run("-n2", "-k", "loc", reranker="mine_crash:rank")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["FAIL*loc*mine_crash:rank*", "criteria: 0 passed, 2 failed, 0 undecided"])


@pytest.mark.parametrize("name", ["loadfile", "loadscope"])
def test_ordinary_tests_stay_together_as_the_distribution_says(project: Project, name: str) -> None:
    project.write("conftest.py", WHERE)
    test = "import pytest\n@pytest.mark.parametrize('n', range(6))\n"
    project.write("test_mine.py", test + "def test_it(n): pass\n")
    project.run("-n2", f"--dist={name}", "-k", "calls or test_it", "test_mine.py").assert_outcomes(passed=7)
    files = [path.read_text() for path in project.path.glob("ran_*.txt")]
    assert sum("test_mine.py" in text for text in files) == 1
