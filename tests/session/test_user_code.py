"""Rerankers and hooks that break: one line that names what broke, and no traceback of ours."""

# ruff: noqa: E501  # a table reads better with a case a line

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project

BASE = """
from pytest_invari.protocol import Ranking

class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")

class Mine:
    def rank(self, request):
        return Ranking.from_scores(request, {c.id: float(c.text[-1]) for c in request.candidates})
"""


def run_with(project: Project, member: str, *arguments: str, name: str = "mine_broken") -> pytest.RunResult:
    """Run the small suite for a reranker that has this member too; it stands in line 11 of its file."""
    project.write(f"{name}.py", BASE.lstrip("\n") + f"\n    {member}\n")
    return project.run("-k", "gpi", *arguments, reranker=f"{name}:Mine")


def assert_refused(result: pytest.RunResult, message: str) -> None:
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert not [line for line in result.errlines[1:] if line.strip()]


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (
            "def check(self): raise RuntimeError('no\\nindex')",
            "Mine.check() raised RuntimeError: no index ({})",
        ),
        ("def check(self): raise SystemExit(3)", "Mine.check() raised SystemExit: 3 ({})"),
        (
            "def check(self): raise Unspeakable",
            "Mine.check() raised Unspeakable: a message that cannot be*({})",
        ),
        (
            "def check(self): return len(3)",
            "Mine.check() raised TypeError: object of type 'int' has no len() ({})",
        ),
        ("check = True", "Mine.check() raised TypeError: 'bool' object is not callable"),
        ("def __init__(self): raise KeyError('shop')", "making it raised KeyError: 'shop' ({})"),
        ("def __init__(self): raise SystemExit", "making it raised SystemExit: no message ({})"),
        (
            "def __init__(self): raise Unspeakable",
            "making it raised Unspeakable: a message that cannot be* ({})",
        ),
    ],
)
def test_what_breaks_before_the_run_is_one_line_with_the_place(
    project: Project, member: str, message: str
) -> None:
    place = f"{project.path}/mine_broken.py, line 11"
    assert_refused(run_with(project, member), f"reranker 'mine_broken:Mine': {message.format(place)}")


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("def prepare(self): raise OSError('gone')", "Mine.prepare() raised OSError: gone ({})"),
        ("def prepare(self): raise SystemExit(1)", "Mine.prepare() raised SystemExit: 1 ({})"),
        ("def fingerprint(self): raise OSError('gone')", "Mine.fingerprint() raised OSError: gone ({})"),
        ("def fingerprint(self): return 'v1'", "Mine.fingerprint() returned 'v1'; it must return a mapping*"),
        ("def fingerprint(self): return None", "Mine.fingerprint() returned None; it must return a mapping*"),
        ("fingerprint = 'v1'", "Mine.fingerprint() raised TypeError: 'str' object is not callable"),
        (
            "def prepare(self): import pytest; pytest.skip('no model')",
            "Mine.prepare() raised Skipped: no model ({})",
        ),
        ("def expected_calls(self, k): return k / 0", "Mine.expected_calls(6) raised ZeroDivisionError*({})"),
        ("def expected_calls(self, k): return 'k'", "Mine.expected_calls(6) must be a whole number, not 'k'"),
        ("batch_requests = 'many'", "Mine.batch_requests must be a whole number, not 'many'"),
        ("batch_requests = property(lambda self: self[0])", "Mine.batch_requests raised TypeError: *({})"),
        ("def rank(self, request): raise SystemExit(3)", "*160 rankings failed*: raised SystemExit: 3"),
        (
            "def rank(self, request): raise Unspeakable",
            "*160 rankings failed*: raised Unspeakable: a message*",
        ),
        (
            "def rank(self, request): return Ranking([[]])",
            "*returned a Ranking whose order is [[][[]*, not ids",
        ),
    ],
)
def test_what_breaks_in_the_run_fails_the_items_with_one_line(
    project: Project, member: str, message: str
) -> None:
    result = run_with(project, member, "--invari-records=kept", "--reranker=first_stage")
    result.assert_outcomes(passed=1, failed=1)
    place = f"{project.path}/mine_broken.py, line 11"
    result.stdout.fnmatch_lines([f"no figure: gpi must be at most 0.2; *{message.format(place)}"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line(">*")


def test_a_broken_base_is_named_within_the_method(project: Project) -> None:
    project.write("mine_broken.py", BASE.lstrip("\n") + "\n    def check(self): raise OSError('gone')\n")
    assert_refused(
        project.run(reranker="sgs:base=mine_broken:Mine"),
        f"reranker 'sgs:base=mine_broken:Mine': Mine.check() raised OSError: gone ({project.path}/*, line 11)",
    )


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("raise SystemExit(5)", "SystemExit: 5 ({})"),
        ("import sys; sys.exit('no licence')", "SystemExit: no licence ({})"),
        ("raise RuntimeError('no\\ntable')", "RuntimeError: no table ({})"),
        ("import pytest; pytest.importorskip('not_there_at_all')", "Skipped: could not import*({})"),
        ("import not_there_at_all", "ModuleNotFoundError: No module named 'not_there_at_all' ({})"),
        ("import json; json.loads('[')", "JSONDecodeError: Expecting value*({})"),
    ],
)
def test_a_module_that_breaks_when_it_is_imported_is_one_line(
    project: Project, statement: str, message: str
) -> None:
    project.write("mine_import.py", f"\n{statement}\n")
    place = f"{project.path}/mine_import.py, line 2"
    assert_refused(
        project.run(reranker="mine_import:rank"),
        f"reranker 'mine_import:rank': importing 'mine_import' raised {message.format(place)}",
    )


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            "def rank(texts): return []",
            "needs a value for option 'texts'; a function that ranks takes (context, texts)*",
        ),
        (
            "def rank(a, b, c): return []",
            "needs a value for options 'a', 'b', 'c'; a function that ranks takes*",
        ),
        ("def rank(*given): return given[1]", "making it raised IndexError: *; a function that ranks takes*"),
        (
            "def rank(context, texts, *, top): return []",
            "needs a value for options 'context', 'texts', 'top'; *",
        ),
        ("def rank(): return 3", "made an object of type int, which has no method rank(request)"),
    ],
)
def test_a_function_with_other_parameters_is_told_which_it_needs(
    project: Project, function: str, message: str
) -> None:
    project.write("mine_shaped.py", function + "\n")
    assert_refused(project.run(reranker="mine_shaped:rank"), f"reranker 'mine_shaped:rank': {message}")


HOOK = """
import pytest

@pytest.hookimpl(optionalhook=True)
def pytest_invari_rerankers(config):
    raise LookupError("no shop")
"""


@pytest.mark.parametrize(
    "asked", [("--invari-suite=small.invari.toml", "--reranker=first_stage"), ("--invari-list",)]
)
def test_a_broken_hook_is_one_line(project: Project, asked: tuple[str, ...]) -> None:
    project.write("conftest.py", HOOK)
    assert_refused(
        project.pytest(*asked),
        f"hook pytest_invari_rerankers raised LookupError: no shop ({project.path}/conftest.py, line 6)",
    )


INTERRUPTED = """
import pathlib

def rank(context, texts):
    mark = pathlib.Path("calls.txt")
    calls = int(mark.read_text()) if mark.exists() else 0
    mark.write_text(str(calls + 1))
    if calls == 50:
        raise KeyboardInterrupt
    return [float(text[-1]) for text in texts]
"""


@pytest.mark.parametrize(
    ("records", "last_words"),
    [
        (
            ("--invari-records=kept",),
            "interrupted: 50 of 160 rankings by mine_stopped:rank on tasks, K=6 are kept in kept; the same "
            "command goes on from there\n",
        ),
        ((), ""),
    ],
)
def test_an_interrupted_run_says_what_is_kept(
    project: Project, capsys: pytest.CaptureFixture[str], records: tuple[str, ...], last_words: str
) -> None:
    project.write("mine_stopped.py", INTERRUPTED)
    asked = ("--invari-suite=small.invari.toml", "--reranker=mine_stopped:rank", "-k", "gpi")
    assert project.stopped(*asked, *records) == pytest.ExitCode.INTERRUPTED
    shown = capsys.readouterr()
    assert re.search(r"^!+ KeyboardInterrupt !+$", shown.out, re.MULTILINE)
    assert shown.err.endswith(last_words)
    assert ("interrupted:" in shown.err) == bool(last_words)
    project.pytest(*asked, *records).assert_outcomes(passed=1)
    # The one that was interrupted is asked for again.
    assert (project.path / "calls.txt").read_text() == ("161" if records else "211")


def test_numbers_of_numpy_in_costs_and_grades_are_reported_as_any(project: Project) -> None:
    project.write(
        "mine_numpy.py",
        "import numpy as np\nfrom pytest_invari import Cost, Ranking\n\nclass Mine:\n"
        "    def rank(self, request):\n"
        "        cost = Cost(calls=np.int64(2), depth=np.int64(1), tokens_in=np.int64(5), seconds=np.float64(1))\n"
        "        return Ranking.from_order(request, sorted(request.ids), cost=cost)\n",
    )
    project.audits = True
    result = project.run("--invari-json=report.json", "--invari-html=page.html", reranker="mine_numpy:Mine")
    assert result.ret in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    result.stdout.fnmatch_lines(["calls * 2 [[]2, 2[]]*", "measured: *"])
    assert (project.path / "report.json").exists()
