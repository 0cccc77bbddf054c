"""A gate that cannot be missed: under --invari-strict nothing that is selected goes without a verdict."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project

FAILED = pytest.ExitCode.TESTS_FAILED
SUBJECT = "small::[[]first_stage-tasks-K6[]]"


def gate(project: Project, *arguments: str, reranker: str = "first_stage") -> pytest.RunResult:
    return project.run("--invari-strict", "--invari-json=r.json", *arguments, reranker=reranker)


def report(project: Project) -> Any:
    return json.loads((project.path / "r.json").read_text(encoding="utf-8"))


def unjudged(project: Project) -> dict[str, str]:
    return {each["id"]: each["reason"] for each in report(project)["unjudged"]}


def test_everything_judged_is_a_success(project: Project) -> None:
    assert gate(project).ret == 0
    assert report(project)["unjudged"] == report(project)["reruns"] == []


@pytest.mark.parametrize(
    "selection",
    [
        ("-k", "test_good"),
        ("-m", "not invari"),
        pytest.param(("-m", "not invari", "-n1"), marks=pytest.mark.xdist),
        ("--deselect", "small::"),
    ],
    ids=["k", "m", "workers", "deselect"],
)
def test_a_subject_without_a_selected_item_fails(project: Project, selection: tuple[str, ...]) -> None:
    project.write("test_mine.py", "def test_good(): pass\n")
    result = gate(project, "test_mine.py", "--junitxml=junit.xml", *selection)
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == FAILED
    reason = "none of its 4 items was selected (-k, -m, --deselect, --lf or a hook)"
    result.stdout.fnmatch_lines([f"UNJUDGED  {SUBJECT}*", f"FAILED {SUBJECT} - *"])
    assert unjudged(project) == {"small::[first_stage-tasks-K6]": reason}
    assert f"not judged: {reason}" in (project.path / "junit.xml").read_text()


def test_nothing_selected_at_all_fails_as_tests_do(project: Project) -> None:
    # Exit status 5, "no tests were collected", is often taken for a success.
    assert project.run("-k", "nothing_matches").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert gate(project, "-k", "nothing_matches").ret == FAILED


def test_lf_that_leaves_a_subject_out_fails(project: Project) -> None:
    project.write("test_mine.py", "def test_bad(): assert 0\n")
    gate(project, "test_mine.py").assert_outcomes(passed=4, failed=1)
    project.write("test_mine.py", "def test_bad(): pass\n")
    result = gate(project, "test_mine.py", "--lf")
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == FAILED
    # What is told of a subject is no item, and is not remembered as one.
    assert json.loads((project.path / ".pytest_cache/v/cache/lastfailed").read_text()) == {}


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
def test_some_criteria_of_each_subject_are_a_selection(project: Project, workers: tuple[str, ...]) -> None:
    assert gate(project, "--reranker=oracle", "-k", "loc and not baseline", *workers).ret == 0


def test_an_id_is_a_selection(project: Project) -> None:
    assert gate(project, "--reranker=oracle", "small::loc[first_stage-tasks-K6]").ret == 0


def test_each_subject_is_looked_at(project: Project) -> None:
    assert gate(project, "--reranker=oracle", "-k", "oracle").ret == FAILED
    assert list(unjudged(project)) == ["small::[first_stage-tasks-K6]"]


def test_without_the_gate_a_selection_is_the_users_business(project: Project) -> None:
    project.write("test_mine.py", "def test_good(): pass\n")
    result = project.run("test_mine.py", "-m", "not invari", "--invari-json=r.json")
    assert result.ret == 0
    assert list(unjudged(project)) == ["small::[first_stage-tasks-K6]"]
    result.stdout.no_fnmatch_line("*UNJUDGED*")


@pytest.fixture
def desk(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose ini file has the suite and the gate, and that is no CI's."""
    for name in ("CI", "BUILD_NUMBER", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    project.write("pytest.ini", INI)
    project.write("test_mine.py", "def test_good(): pass\n\ndef test_other(): pass\n")
    return project


LEFT = "invari: this selection leaves out 1 subject*"


@pytest.mark.parametrize(
    "options",
    [
        ("-k", "test_good"),
        ("-ktest_good",),
        ("-m", "not invari", "--deselect=test_mine.py::test_other"),
        pytest.param(("-n1", "-k", "test_good"), marks=pytest.mark.xdist),
    ],
    ids=" ".join,
)
def test_a_selection_at_a_desk_is_no_attempt_to_pass_the_gate(
    desk: Project, options: tuple[str, ...]
) -> None:
    result = desk.pytest("test_mine.py", *options)
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines([LEFT])
    result.stdout.no_fnmatch_line("*UNJUDGED*")
    assert list(unjudged(desk)) == ["small::[first_stage-tasks-K6]"]


@pytest.mark.parametrize("variable", ["CI", "BUILD_NUMBER"])
def test_in_ci_it_fails(desk: Project, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "1")
    result = desk.pytest("test_mine.py", "-k", "test_good")
    assert result.ret == FAILED
    result.stdout.fnmatch_lines([f"UNJUDGED  {SUBJECT}*"])
    result.stdout.no_fnmatch_line(LEFT)


@pytest.mark.parametrize(
    ("options", "ini", "hook"),
    [
        (("-k", "test_good", "--invari-strict"), "", ""),
        ((), "addopts = -k test_good", ""),
        ((), "", "def pytest_collection_modifyitems(items):\n    del items[2:]\n"),
    ],
    ids=["typed", "addopts", "hook"],
)  # fmt: skip
def test_what_nobody_has_typed_at_a_desk_fails(
    desk: Project, options: tuple[str, ...], ini: str, hook: str
) -> None:
    desk.write("pytest.ini", INI + ini + "\n")
    desk.write("conftest.py", hook)
    result = desk.pytest("test_mine.py", *options)
    assert result.ret == FAILED
    result.stdout.fnmatch_lines([f"UNJUDGED  {SUBJECT}*"])


def test_what_is_selected_at_a_desk_is_judged_strictly(desk: Project) -> None:
    result = desk.pytest("-k", "gpi or test_good", "--reranker=input_order")
    assert result.ret == FAILED
    result = desk.pytest("-k", "gpi", "--invari-queries=8")
    result.stdout.fnmatch_lines(["*undecided fails under --invari-strict*"])
    assert result.ret == FAILED


MARKS = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name.startswith("gpi"):
            item.add_marker(pytest.mark.{mark})
"""
SKIPS = """
import pytest

def pytest_runtest_{phase}(item):
    if item.name.startswith("gpi"):
        pytest.{outcome}("too slow")
"""


@pytest.mark.parametrize(
    ("hook", "workers"),
    [
        (MARKS.format(mark="skip(reason='too slow')"), ()),
        (MARKS.format(mark="xfail(run=False, reason='too slow')"), ()),
        (SKIPS.format(phase="setup", outcome="skip"), ()),
        pytest.param(SKIPS.format(phase="setup", outcome="skip"), ("-n1",), marks=pytest.mark.xdist),
        (SKIPS.format(phase="call", outcome="xfail"), ()),
    ],
    ids=["skip", "notrun", "setup", "workers", "call"],
)
def test_what_a_conftest_skips_fails(project: Project, hook: str, workers: tuple[str, ...]) -> None:
    project.write("conftest.py", hook)
    assert project.run().ret == 0
    result = gate(project, *workers)
    assert result.ret == FAILED
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes.get("failed", 0) + outcomes.get("errors", 0)) == (3, 1)
    [found] = [each for each in report(project)["criteria"] if each["criterion"] == "gpi"]
    assert found["verdict"] == "fail"
    assert "too slow; what is skipped fails under --invari-strict" in found["reason"]


def test_an_expected_failure_fails_under_the_gate_alone(project: Project) -> None:
    project.write("conftest.py", MARKS.format(mark="xfail(reason='known')"))
    plain = project.run("-k", "gpi or calls", reranker="input_order")
    plain.assert_outcomes(passed=1, xfailed=1)
    assert plain.ret == 0
    result = gate(project, "-k", "gpi or calls", reranker="input_order")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["FAILED small::gpi* - 0.3*"])


@pytest.mark.parametrize(
    ("change", "workers"),
    [("del items[1:]", ()), pytest.param("items.clear()", ("-n1",), marks=pytest.mark.xdist)],
)
def test_items_that_a_conftest_drops_are_a_selection_while_one_is_left(
    project: Project, change: str, workers: tuple[str, ...]
) -> None:
    project.write("conftest.py", f"def pytest_collection_modifyitems(items):\n    {change}\n")
    assert gate(project, *workers).ret == ("clear" in change)


REWRITES = """
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call":
        {change}
    return report
"""


@pytest.mark.parametrize(
    "options", [(), ("--invari-strict",), pytest.param(("-n1",), marks=pytest.mark.xdist)]
)
@pytest.mark.parametrize(
    "change",
    ["report.outcome = 'passed'", "report.outcome, report.longrepr = 'skipped', ('here', 1, 'flaky')"],
    ids=["passed", "skipped"],
)
def test_a_failing_verdict_stays_a_failure_whatever_a_hook_says(
    project: Project, change: str, options: tuple[str, ...]
) -> None:
    project.write("conftest.py", REWRITES.format(change=change))
    result = project.run("-k", "gpi", *options, reranker="input_order")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["FAILED small::gpi* - 0.3*"])
    assert result.ret == FAILED


@pytest.mark.parametrize(
    "options", [(), ("--invari-strict",), pytest.param(("-n1",), marks=pytest.mark.xdist)]
)
def test_nor_can_it_be_changed_on_its_way(project: Project, options: tuple[str, ...]) -> None:
    project.write(
        "conftest.py",
        """
        import pytest

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_logreport(report):
            report.outcome = "passed"
        """,
    )
    result = project.run("-k", "gpi", "--invari-json=r.json", *options, reranker="input_order")
    assert result.ret == FAILED
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["UNJUDGED  small::gpi*a failing verdict*"])
    assert "a failing verdict" in unjudged(project)["small::gpi[input_order-tasks-K6]"]


TAKES_OVER = "def pytest_runtest_protocol(item):\n    return item.name.startswith('gpi') or None\n"
EMPTIES = "def pytest_runtest_protocol(item):\n    if 'gpi' in item.name: item.runtest = lambda: None\n"


@pytest.mark.parametrize(
    ("hook", "workers"),
    [(TAKES_OVER, ()), pytest.param(TAKES_OVER, ("-n1",), marks=pytest.mark.xdist), (EMPTIES, ())],
    ids=["a", "b", "c"],
)
def test_an_item_that_judged_nothing_fails(project: Project, hook: str, workers: tuple[str, ...]) -> None:
    project.write("conftest.py", f"import pytest\n@pytest.hookimpl(tryfirst=True)\n{hook}")
    result = gate(project, *workers)
    assert result.ret == FAILED
    result.stdout.fnmatch_lines(["UNJUDGED  small::gpi*", "FAILED small::gpi*"])
    assert list(unjudged(project)) == ["small::gpi[first_stage-tasks-K6]"]


def test_a_run_that_only_sets_up_has_judged_nothing(project: Project) -> None:
    assert gate(project, "--setup-only").ret == FAILED


def test_a_run_that_cannot_begin_keeps_its_own_status_and_says_so(project: Project) -> None:
    assert gate(project, "no_such_test.py").ret == pytest.ExitCode.USAGE_ERROR
    assert unjudged(project) == {"small::[first_stage-tasks-K6]": "the run broke off before any of its items"}


INI = """
[pytest]
invari_suite = small.invari.toml
invari_reranker = first_stage
invari_strict = true
invari_json = r.json
"""


@pytest.mark.parametrize(
    "options",
    [
        *[
            ("--fixtures",),
            ("--fixtures-per-test",),
            ("--cache-show",),
            ("--setup-plan",),
            ("--collect-only",),
        ],
        ("--fixtures", "small.invari.toml", "--invari-strict"),
        ("--fixtures-per-test", "small::loc[first_stage-tasks-K6]", "--invari-json=r.json"),
        ("--setup-plan", "small.invari.toml", "--invari-strict"),
        ("--cache-show", "small*", "--invari-suite=small.invari.toml"),
    ],
    ids=" ".join,
)
def test_a_command_that_shows_something_judges_nothing(project: Project, options: tuple[str, ...]) -> None:
    project.write("pytest.ini", INI + "testpaths = tests\n")
    loud = (
        "class Loud:\n    def prepare(self): open('loaded', 'w').close()\n    def rank(self, request): pass\n"
    )
    project.write("mine_loud.py", loud)
    fixtures = "import pytest\n\n@pytest.fixture\ndef films():\n    'A list of films.'\n"
    project.write("tests/test_mine.py", fixtures + "def test_mine(films): pass\n")
    earlier = '{\n  "format": "invari-report/1"\n}\n'
    project.write("r.json", earlier)
    result = project.pytest(*options, "--invari-reranker=mine_loud:Loud")
    assert result.ret == 0
    for word in ("*= invari =*", "*UNJUDGED*", "*FAILED*", "*failed*", "*ERROR*"):
        result.stdout.no_fnmatch_line(word)
    assert (project.path / "r.json").read_text() == earlier
    assert not (project.path / "loaded").exists()
    if options[0].startswith("--fixtures") and len(options) == 1:
        result.stdout.fnmatch_lines(["*A list of films.*"])


def test_a_hook_cannot_declare_success(project: Project) -> None:
    project.write("conftest.py", "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n")
    assert gate(project, reranker="input_order").ret == FAILED
    assert gate(project, "-m", "not invari").ret == FAILED


def test_leaving_early_is_no_success(project: Project) -> None:
    leaves = "import pytest\n\ndef pytest_runtest_teardown():\n    pytest.exit('done', returncode=0)\n"
    project.write("conftest.py", leaves)
    assert gate(project).ret == FAILED
    assert set(unjudged(project).values()) == {"it did not run to its end"}


BASELINE_ONLY = """
[suite]
name = "small"
baseline = "random"
[profile.quick]
datasets = ["tasks.jsonl"]
k = 6
views = 5
[[criterion]]
name = "loc_vs_baseline"
metric = "loc"
better_than = "baseline"
"""


def test_a_subject_whose_criteria_are_all_left_out_fails(project: Project) -> None:
    project.write("small.invari.toml", BASELINE_ONLY)
    assert project.run("--reranker=random").ret == 0
    assert gate(project, "--reranker=random").ret == FAILED
    reason = "every criterion is left out: loc_vs_baseline: random is itself the baseline"
    assert unjudged(project) == {"small::[random-tasks-K6]": reason}
    # With nothing else to check, it is refused before anything runs.
    assert gate(project, reranker="random").ret == pytest.ExitCode.USAGE_ERROR


def test_a_suite_without_criteria_is_refused(project: Project) -> None:
    project.write_suite("empty")
    result = project.pytest("empty.invari.toml", "--reranker=first_stage", "--invari-strict")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *empty.invari.toml*criterion*"])


@pytest.mark.parametrize(
    "options", [("-x",), ("--maxfail=1",), pytest.param(("-x", "-n1"), marks=pytest.mark.xdist)]
)
def test_what_a_stop_leaves_is_told_in_one_entry(project: Project, options: tuple[str, ...]) -> None:
    result = gate(project, *options, reranker="input_order")
    assert result.ret != 0
    assert len(unjudged(project)) == 3
    assert result.stdout.str().count("UNJUDGED") == 1


def test_an_interruption_is_no_success_and_says_what_is_left(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write("mine_stop.py", "def rank(context, texts):\n    raise KeyboardInterrupt\n")
    asked = ("--invari-suite=small.invari.toml", "--reranker=mine_stop:rank", "--invari-json=r.json")
    assert project.stopped(*asked, "--invari-strict") == pytest.ExitCode.INTERRUPTED
    assert len(unjudged(project)) == 4
    assert capsys.readouterr().out.count("UNJUDGED") == 1


CRASHES = """
import os, pathlib

def rank(context, texts):
    if {when}:
        os._exit(0)
    return [float(text.split()[-1]) for text in texts]
"""


@pytest.mark.xdist
def test_a_comparison_whose_worker_crashed_stays_missing(project: Project) -> None:
    when = "pathlib.Path('armed').exists() and not (pathlib.Path('armed').unlink())"
    project.write("mine_once.py", CRASHES.format(when=when))
    chosen = ("-k", "calls", "--reranker=mine_once:rank")
    assert project.run("--invari-save=base.json", *chosen, reranker=None).ret == 0
    project.write("armed", "")
    asked = ("--invari-compare=base.json", "-k", "calls and baseline", "--reranker=mine_once:rank")
    result = project.run("-n1", "--invari-strict", "--invari-json=r.json", *asked, reranker=None)
    assert result.ret == FAILED
    [found] = report(project)["changes"]
    assert found["outcome"] == "missing"
    assert "crashed" in found["reason"]


@pytest.mark.xdist
def test_what_no_worker_is_left_for_is_not_judged(project: Project) -> None:
    project.write("mine_dead.py", CRASHES.format(when="True"))
    asked = ("--reranker=mine_dead:rank", "--reranker=oracle")
    result = project.run(
        "--invari-strict", "--invari-json=r.json", "-n1", "--max-worker-restart=0", *asked, reranker=None
    )
    assert result.ret != 0
    found = report(project)["criteria"]
    assert [each["verdict"] for each in found] == ["fail"] * 4
    assert all("crashed" in each["reason"] for each in found)
    assert len(unjudged(project)) == 4
