"""pytest-xdist: the same results, a subject in one worker, and what a crash leaves."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

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


def test_a_failure_stays_when_a_crashed_worker_is_replaced(project: Project) -> None:
    project.write(
        "mine_crash.py",
        """
        import os, pathlib

        def rank(context, texts):
            mark = pathlib.Path("crashed")
            if not mark.exists():
                mark.write_text("")
                os._exit(3)
            return [float(text.split()[-1]) for text in texts]
        """,
    )
    result = project.run("-n2", "--invari-json=report.json", reranker="mine_crash:rank")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["FAIL*loc*mine_crash:rank*", "*crashed*", "criteria: 3 passed, 1 failed, 0 undecided"]
    )
