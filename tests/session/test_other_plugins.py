"""Beside other plugins: the same ids, verdicts and figures, and what each of them adds works on checks."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pytest_html")
pytest.importorskip("pytest_randomly")
pytest.importorskip("pytest_rerunfailures")
pytest.importorskip("pytest_timeout")
pytest.importorskip("pytest_cov")

if TYPE_CHECKING:
    from tests.session.conftest import Project

pytestmark = pytest.mark.xdist

THREE = ("--reranker=first_stage", "--reranker=random", "--reranker=input_order")
ALL = (
    *("-n2", "-p", "randomly", "--randomly-seed=11", "--reruns=1", "--timeout=100"),
    *("--html=page.html", "--self-contained-html", "--cov=ordinary", "--cov-report=term"),
)
ORDINARY = """
import random
import pytest
import ordinary

@pytest.mark.parametrize("n", range(6))
def test_some(n):
    random.seed(n)
    assert ordinary.same(n) == n

def test_bad():
    assert ordinary.same(1) == 2
"""


@pytest.fixture(autouse=True)
def alone(project: Project, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options that keep other plugins out of the project's tests; here they load, as at a user's."""
    options = os.environ["PYTEST_ADDOPTS"].split()
    assert "no:randomly" in options
    monkeypatch.delenv("PYTEST_ADDOPTS")
    return options


def run(project: Project, *arguments: str) -> pytest.RunResult:
    """A run in a fresh interpreter."""
    asked = ("--invari-suite=small.invari.toml", "--invari-json=report.json", "--junitxml=junit.xml")
    return project.pytester.runpytest_subprocess("-W", "error", *asked, *arguments)


def report(project: Project) -> Any:
    return json.loads((project.path / "report.json").read_text(encoding="utf-8"))


def without_time(found: Any) -> Any:
    """A report without what the clock says, and without what is told of other plugins."""
    if isinstance(found, dict):
        kept = {name: value for name, value in found.items() if name not in ("seconds", "reruns")}
        return {name: without_time(value) for name, value in kept.items()}
    return [without_time(each) for each in found] if isinstance(found, list) else found


def cases(project: Project) -> dict[str, tuple[set[str], dict[str, str]]]:
    """By id, how JUnit has a check end, and its properties without the time."""
    found = {}
    for case in ElementTree.parse(project.path / "junit.xml").getroot().iter("testcase"):
        properties = {each.get("name", ""): each.get("value", "") for each in case.iter("property")}
        ends = {each.tag for each in case} - {"properties", "system-out", "system-err"}
        if properties:
            found[f"{case.get('classname')}::{case.get('name')}"] = (ends, properties)
    return found


def test_all_at_once_change_no_figure(project: Project, alone: list[str]) -> None:
    project.write("ordinary.py", "def same(n):\n    return n\n")
    project.write("test_mine.py", ORDINARY)
    run(project, "test_mine.py", *THREE, *alone).assert_outcomes(passed=12, failed=5)
    expected, expected_cases = report(project), cases(project)
    assert len(expected["criteria"]) == len(expected_cases) == 11
    together = run(project, "test_mine.py", *THREE, *ALL)
    outcomes = together.parseoutcomes()
    assert {name: outcomes[name] for name in ("passed", "failed", "undecided", "rerun")} == {
        **{"passed": 12, "failed": 5, "undecided": 1, "rerun": 5}
    }
    together.stdout.fnmatch_lines(["Using --randomly-seed=11", "ordinary.py * 100%"])
    assert "warning" not in together.stdout.str().lower()
    assert without_time(report(project)) == without_time(expected)
    assert cases(project) == expected_cases
    # They failed again, so nothing is flaky; that they were run again is told all the same.
    assert {each["id"] for each in report(project)["reruns"]} == {
        each["id"] for each in expected["criteria"] if each["verdict"] == "fail"
    }
    together.stdout.no_fnmatch_line("RUN AGAIN*")


def test_the_page_has_the_section_and_escapes_it(project: Project) -> None:
    path = project.path / "small.invari.toml"
    path.write_text(path.read_text().replace("users notice", "<script>alert(1)</script> users notice"))
    chosen = ("-k", "loc and not baseline", "-p", "no:randomly")
    run(project, *chosen, "--reranker=input_order", "--html=page.html", "--self-contained-html")
    page = (project.path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    section = page[page.index("<h2>invari</h2>") :]
    section = section[: section.index("</pre>")]
    assert "why: &lt;script&gt;alert(1)&lt;/script&gt; users notice" in section
    assert "criteria: 0 passed, 1 failed, 0 undecided" in section


def test_the_page_has_what_was_not_judged(project: Project) -> None:
    project.write("test_mine.py", "def test_good(): pass\n")
    chosen = ("test_mine.py", "-m", "not invari", "--invari-strict", "-p", "no:randomly")
    run(project, *chosen, "--reranker=random", "--html=page.html", "--self-contained-html").assert_outcomes(
        passed=1, failed=1
    )
    page = (project.path / "page.html").read_text(encoding="utf-8")
    assert "UNJUDGED" in page
    assert "1 Failed" in page


LIMITS = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.timeout(1))
"""


@pytest.mark.parametrize(("option", "hook"), [("--timeout=1", ""), ("--timeout=0", LIMITS)])
def test_a_limit_of_time_applies_to_checks(project: Project, option: str, hook: str) -> None:
    project.write("conftest.py", hook)
    project.write("mine_slow.py", "import time\n\ndef rank(context, texts):\n    time.sleep(9)\n")
    chosen = ("-k", "gpi", "--reranker=mine_slow:rank", option, "-p", "no:randomly")
    run(project, *chosen).assert_outcomes(failed=1)
    [found] = report(project)["criteria"]
    assert found["reason"] == "nothing measured: Failed: Timeout (>1.0s) from pytest-timeout."


FLAKY = """
import pytest

seen = set()

def pytest_runtest_setup(item):
    if item.name not in seen:
        seen.add(item.name)
        raise RuntimeError("not yet")
"""


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_an_error_that_went_away_is_told(project: Project, workers: tuple[str, ...]) -> None:
    project.write("conftest.py", FLAKY)
    chosen = ("-k", "gpi", "--reranker=first_stage", "--reruns=2", "-p", "no:randomly", "--invari-strict")
    result = run(project, *chosen, *workers)
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["RUN AGAIN small::gpi*  at first: RuntimeError: not yet", "* 1 rerun *"])
    reason = "RuntimeError: not yet"
    assert report(project)["reruns"] == [{"id": "small::gpi[first_stage-tasks-K6]", "reason": reason}]


def test_trying_again_makes_no_pass_of_a_failure(project: Project) -> None:
    # By luck alone every second answer would be the order that was asked for.
    project.write(
        "mine_luck.py",
        """
        import pathlib

        def rank(context, texts):
            count = pathlib.Path("count")
            count.write_text((count.read_text() if count.exists() else "") + ".")
            if len(count.read_text()) == 1:
                raise RuntimeError("the first call fails")
            return [float(text.split()[-1]) for text in texts]
        """,
    )
    chosen = ("-k", "loc and not baseline", "--reranker=mine_luck:rank", "--reruns=2", "-p", "no:randomly")
    result = run(project, *chosen, "--invari-no-audit")
    result.assert_outcomes(failed=1)
    assert result.parseoutcomes()["rerun"] == 2
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len((project.path / "count").read_text()) == 160


def test_a_page_of_pytest_html_is_no_place_for_a_report(project: Project) -> None:
    result = run(project, "--reranker=random", "--html=./report.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --invari-json=report.json: --html names the same file; give *"])
