"""--invari-json: the report invari-report/1."""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project


def report(project: Project, *arguments: str, reranker: str = "first_stage") -> Any:
    project.run("--invari-json=report.json", *arguments, reranker=reranker)
    return json.loads((project.path / "report.json").read_text(encoding="utf-8"))


def test_it_says_what_was_judged_and_on_what(project: Project) -> None:
    found = report(project, reranker="random")
    text = (project.path / "small.invari.toml").read_bytes()
    assert found["format"] == "invari-report/1"
    assert found["suite"] == {
        "name": "small",
        "title": "A small suite",
        "sha256": hashlib.sha256(text).hexdigest(),
        "profile": "quick",
    }
    assert found["environment"]["packages"]["pytest"] == pytest.__version__
    assert found["verdicts"] == {"pass": 1, "fail": 2, "undecided": 0}
    assert [each["criterion"] for each in found["left_out"]] == ["loc_vs_baseline"]


def test_a_criterion_has_its_figures_and_its_verdict(project: Project) -> None:
    found = report(project, reranker="random")
    loc = found["criteria"][0]
    assert loc["id"] == "small::loc[random-tasks-K6]"
    assert loc["low"] < loc["estimate"] < loc["high"] < loc["bound"] == 0.75
    assert (loc["verdict"], loc["n"], loc["n_needed"], loc["reason"]) == ("fail", 32, None, None)
    assert loc["why"] == "users notice when a page is reordered"
    assert loc["text"].startswith(f"{loc['estimate']:.4f} [")


def test_subjects_are_the_reranker_and_its_baseline(project: Project) -> None:
    found = report(project)
    assert [each["reranker"] for each in found["subjects"]] == ["first_stage", "random"]
    first = found["subjects"][0]
    assert (first["k"], first["views"], first["queries"], first["failures"]) == (6, 5, 32, 0)
    # That 32 queries of 32 keep their order does not show that every query would.
    low = found["criteria"][0]["low"]
    assert 0.7 < low < 1.0
    assert first["metrics"]["loc"] == {
        "estimate": 1.0, "low": low, "high": 1.0, "n": 32, "undefined": 0, "reason": None
    }  # fmt: skip
    assert (first["rankings"], first["rankings_from_records"]) == (160, 0)
    assert (first["cost"]["calls"], first["total_cost"]["calls"]) == (1.0, 160.0)
    names = {"ppi", "gpi", "loc", "exposure_deviation@5", "hr@5", "ndcg@5", "calls", "depth", "seconds"}
    assert names <= set(first["metrics"])
    costs = {name: first["metrics"].pop(name) for name in ("tokens_in", "tokens_cached", "tokens_out")}
    assert all(math.isfinite(each["estimate"]) for each in first["metrics"].values())
    # What the table shows as "-".
    for name, cost in costs.items():
        assert (first["cost"][name], first["total_cost"][name]) == (None, None)
        assert cost == {
            "estimate": None, "low": None, "high": None, "n": 0, "undefined": 32,
            "reason": "not_reported",
        }  # fmt: skip


@pytest.mark.parametrize(
    "options", [("-p", "no:terminal"), ("-q",), pytest.param(("-n1",), marks=pytest.mark.xdist)]
)
def test_it_is_written_however_the_run_goes(project: Project, options: tuple[str, ...]) -> None:
    assert len(report(project, *options)["criteria"]) == 4


def test_what_was_not_run_is_not_in_it(project: Project) -> None:
    found = report(project, "-x", reranker="input_order")
    assert [each["criterion"] for each in found["criteria"]] == ["loc"]


def test_a_fault_is_null_and_a_reason(project: Project) -> None:
    project.write("mine_bad.py", "def rank(context, texts):\n    raise RuntimeError('no answer')\n")
    loc = report(project, reranker="mine_bad:rank")["criteria"][0]
    assert (loc["verdict"], loc["estimate"], loc["low"]) == ("fail", None, None)
    assert "no answer" in loc["reason"]


def test_an_older_report_is_replaced_whole(project: Project) -> None:
    (project.path / "report.json").write_text('{\n  "format": "invari-report/1"' + "x" * 100_000)
    report(project)
    assert [path.name for path in project.path.glob("*report*")] == ["report.json"]


def test_a_hook_may_add_to_it(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        import pytest

        @pytest.hookimpl(optionalhook=True)
        def pytest_invari_update_report(config, report):
            report["environment"]["commit"] = "abc"
        """,
    )
    assert report(project)["environment"]["commit"] == "abc"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no/where.json", "there is no folder no"),
        (".", "that is a folder"),
        ("/dev/null", "that is no ordinary file"),
        ("/proc/report.json", "the folder cannot be written to (*)"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(
    project: Project, path: str, message: str
) -> None:
    result = project.run(f"--invari-json={path}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --invari-json={path}: {message}"])


FOLDER_GONE = """
import pathlib, shutil

def rank(context, texts):
    if pathlib.Path("out").is_dir():
        shutil.rmtree("out")
        pathlib.Path("out").write_text("not a folder any more")
    return [float(text[-1]) for text in texts]
"""


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
def test_a_write_that_fails_at_the_end_leaves_the_summary_and_is_told_after_it(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.write("mine_gone.py", FOLDER_GONE)
    (project.path / "out").mkdir()
    result = project.run("--invari-json=out/report.json", "-k", "gpi", *workers, reranker="mine_gone:rank")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*= invari =*", "PASS *gpi*", "*= 1 passed*"])
    assert [line for line in result.errlines if line.startswith("ERROR")] == [
        "ERROR: out/report.json: cannot be written (File exists)"
    ]
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (project.path / "out").unlink()
    (project.path / "out").mkdir()
    result = project.run(
        "--invari-json=out/report.json", "-k", "gpi", "--reranker=random", reranker="mine_gone:rank"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "report['no'] = config",
            "--invari-json=report.json: writing it raised TypeError: *not JSON serializable",
        ),
        (
            "report['no'] = float('nan')",
            "--invari-json=report.json: writing it raised ValueError: Out of range*",
        ),
        (
            "report['suite']['nam']",
            "hook pytest_invari_update_report raised KeyError: 'nam' (*conftest.py, line 5)",
        ),
    ],
)
def test_a_hook_that_breaks_the_report_leaves_the_summary(
    project: Project, statement: str, message: str
) -> None:
    project.write(
        "conftest.py",
        f"""\
        import pytest

        @pytest.hookimpl(optionalhook=True)
        def pytest_invari_update_report(config, report):
            {statement}
        """,
    )
    result = project.run("--invari-json=report.json", "-k", "gpi")
    result.stdout.fnmatch_lines(["*= invari =*", "*= 1 passed*"])
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not (project.path / "report.json").exists()
