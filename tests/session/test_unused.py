"""A run that does not ask for a suite: no output, no files, no heavy imports, no time."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

# A run in this process would import it anew, and the package hold the function of an earlier one.
from pytest_invari.testing import invariance

if TYPE_CHECKING:
    from tests.session.conftest import Project


LOADED = (invariance,)
HEAVY = {"numpy", "torch", "transformers", "pandas", "scipy", "pyarrow", "tabulate", "tqdm"}
SHOW_MODULES = """
import sys

def pytest_unconfigure():
    print("loaded:", *sys.modules)
"""


def loaded(project: Project, *arguments: str) -> set[str]:
    """The modules that a pytest run in a fresh interpreter ends with."""
    project.write("conftest.py", SHOW_MODULES)
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments],
        cwd=project.path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    line = next(line for line in result.stdout.splitlines() if line.startswith("loaded:"))
    return set(line.split()[1:])


def test_nothing_heavy_is_loaded(project: Project) -> None:
    project.write("test_mine.py", "def test_it(): pass")
    modules = loaded(project, "test_mine.py")
    assert "pytest_invari.plugin" in modules
    assert not HEAVY & modules
    assert "pytest_invari.session.plugin" not in modules


def test_loading_the_plugin_takes_less_than_25_milliseconds() -> None:
    program = "import pytest, sys; import pytest_invari.plugin"
    taken = []
    # The least of three: a busy machine makes any single one slow.
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", program], capture_output=True, text=True, check=True
        )
        row = next(line for line in done.stderr.splitlines() if line.endswith(" pytest_invari.plugin"))
        taken.append(int(row.split("|")[1]))
    assert min(taken) < 25_000


def test_collecting_a_suite_loads_no_model_library(project: Project) -> None:
    modules = loaded(
        project, "--invari-suite=small.invari.toml", "--reranker=sgs:base=random", "--collect-only"
    )
    assert "pytest_invari.session.plugin" in modules
    assert not {"torch", "transformers", "pandas", "scipy"} & modules


def test_output_and_files_are_those_of_a_run_without_the_plugin(project: Project) -> None:
    project.write("test_mine.py", "def test_it(): pass\ndef test_other(tmp_path): pass")
    texts, files = [], []
    for options in ((), ("-p", "no:invari")):
        result = project.pytester.runpytest_subprocess("-rA", "-p", "no:cacheprovider", *options)
        texts.append([line for line in result.outlines if not line.startswith(("plugins:", "="))])
        files.append(sorted(path.name for path in project.path.iterdir() if path.is_file()))
    assert texts[0] == texts[1]
    assert files[0] == files[1] == ["small.invari.toml", "stderr", "stdout", "tasks.jsonl", "test_mine.py"]


def test_conftests_with_our_hooks_work_without_the_plugin(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        import pytest

        @pytest.hookimpl(optionalhook=True)
        def pytest_invari_rerankers(config):
            return {}
        """,
    )
    project.write("test_mine.py", "def test_it(): pass")
    project.pytester.runpytest_subprocess("-p", "no:invari").assert_outcomes(passed=1)


def test_the_plugin_loads_by_name_when_autoloading_is_off(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    project.pytester.runpytest_subprocess(
        "-p",
        "pytest_invari.plugin",
        "-W",
        "error",
        "--invari-suite=small.invari.toml",
        "--reranker=first_stage",
    ).assert_outcomes(passed=4)


def test_python_m_pytest_and_a_program_that_imports_it_first_work(project: Project) -> None:
    program = "import pytest_invari.plugin, pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
    asked = ("-W", "error", "--invari-suite=small.invari.toml", "--reranker=first_stage", "-q")
    for start in (("-m", "pytest"), ("-c", program)):
        done = subprocess.run(
            [sys.executable, *start, *asked], cwd=project.path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--reranker=sgs"], "--reranker"),
        (["--invari-reranker", "sgs"], "--invari-reranker"),
        (["--invari-k=3", "--invari-strict", "test_mine.py"], "--invari-k"),
        (
            ["--invari-json=a.json", "--invari-records=kept", "--invari-save=b.json"],
            "--invari-json and --invari-save",
        ),
        (["--invari-json="], "--invari-json"),
        (["-p", "no:terminal", "--invari-views=5"], "--invari-views"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(
    project: Project, arguments: list[str], named: str
) -> None:
    project.write("test_mine.py", "def test_it(): pass")
    result = project.pytest(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: without a suite, {named} would be ignored: add --invari-suite=NAME*"]
    )


def test_defaults_never_disturb_a_run_of_ordinary_tests(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = "invari_reranker = sgs\ninvari_k = none\ninvari_json = no/folder.json\ninvari_strict = true\n"
    project.write("pytest.ini", f"[pytest]\naddopts = --invari-queries=7 --reranker=sgs\n{keys}")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--invari-views=5")
    project.write("test_mine.py", "def test_it(): pass")
    project.pytest().assert_outcomes(passed=1)


def test_the_alias_of_somebody_else_needs_no_suite(project: Project) -> None:
    project.write("conftest.py", "def pytest_addoption(parser):\n    parser.addoption('--reranker')\n")
    project.write("test_mine.py", "def test_it(): pass")
    project.pytest("--reranker=theirs").assert_outcomes(passed=1)


HEEDED = [
    "--invari-strict",
    "--invari-records=kept",
    "--invari-replay",
    "--invari-model=none",
    "--invari-device=cpu",
    "--invari-dtype=float32",
    "--invari-batch-tokens=9",
    "--invari-trust-remote-code",
    "--invari-calibrate",
]


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
def test_what_only_the_fixture_heeds_is_told_at_the_end_where_no_test_uses_it(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.write("test_mine.py", "def test_it(): pass\ndef test_used(invari): pass\n")
    names = " and ".join(option.partition("=")[0] for option in HEEDED[1:])
    line = f"invari: {names} changed nothing: no suite was asked for, and no test that ran uses the fixture*"
    unused = project.pytest(*HEEDED[1:], *workers, "-k", "test_it")
    assert unused.ret == pytest.ExitCode.OK
    unused.stdout.fnmatch_lines([line])
    used = project.pytest(*HEEDED, *workers)
    used.assert_outcomes(passed=2)
    used.stdout.no_fnmatch_line("invari: *changed nothing*")
    project.pytest(*HEEDED, "--collect-only").stdout.no_fnmatch_line("invari: *changed nothing*")
    assert not (project.path / "kept").exists()


INVARIANT = """
from pytest_invari import Candidate, Context, Task, assert_permutation_invariant

def test_stays():
    films = (Candidate("a", "Alien"), Candidate("b", "Heat"))
    assert_permutation_invariant(lambda context, texts: [text == "Heat" for text in texts],
                                 [Task("q1", Context("space"), films)])
"""


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
def test_a_gate_in_which_nothing_was_measured_fails(project: Project, workers: tuple[str, ...]) -> None:
    project.write("test_mine.py", "def test_it(): pass\ndef test_used(invari): pass\n" + INVARIANT)
    result = project.pytest("--invari-strict", *workers, "-k", "test_it")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["invari: nothing was measured, which fails under --invari-strict: no suite*"]
    )
    result.stdout.no_fnmatch_line("*changed nothing*")
    for measured in ("test_used", "test_stays"):
        assert project.pytest("--invari-strict", *workers, "-k", measured).ret == 0


def test_a_gate_that_selects_no_test_at_all_fails(project: Project) -> None:
    project.write("test_mine.py", "def test_it(): pass\n")
    assert project.pytest("--invari-strict", "-k", "nothing").ret == pytest.ExitCode.TESTS_FAILED
    # As a default it is no attempt to pass the gate.
    project.write("pytest.ini", "[pytest]\ninvari_strict = true\naddopts = --invari-strict\n")
    assert project.pytest().ret == 0


def test_simulations_without_a_selfcheck_are_refused(project: Project) -> None:
    for arguments in (["--invari-suite=small.invari.toml", "--reranker=random"], []):
        result = project.pytest("--invari-simulations=20", *arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(
            ["ERROR: --invari-simulations would be ignored: *add that, or leave it out"]
        )
    project.write("pytest.ini", "[pytest]\ninvari_simulations = 20\n")
    project.run().assert_outcomes(passed=4)
