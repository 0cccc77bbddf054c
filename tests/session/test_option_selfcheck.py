"""``--invari-selfcheck``: the harness judges itself, with no reranker, data or model of the user's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project

SMALL = ("--invari-selfcheck", "--invari-simulations=20", "--invari-suite=small.invari.toml")


def trials(project: Project, *arguments: str) -> Any:
    result = project.pytest(*SMALL, "--invari-json=selfcheck.json", *arguments)
    assert result.ret == pytest.ExitCode.OK, result.outlines
    report = json.loads((project.path / "selfcheck.json").read_text())
    assert report["format"] == "invari-selfcheck/1"
    return report["trials"]


def test_a_users_suite_is_checked_and_each_criterion_gets_a_table(project: Project) -> None:
    (project.path / "tasks.jsonl").unlink()
    result = project.pytest(*SMALL)
    assert result.ret == pytest.ExitCode.OK, result.outlines
    result.stdout.fnmatch_lines(
        [
            "invari: self-check of 28 promises on 20 simulated data sets each",
            "*invari self-check*",
            "small: loc at least 0.75; lists of 6, 5 views of 32 queries",
            "reranker*truth*wrong verdict*right verdict*misses, %",
            "invariant*1.000*0.0% ?0.0, 16.8?*pass 100.0% ?83.2, 100.0?*0.0 / 0.0",
            "*28 passed*",
        ]
    )
    begins = next(place for place, line in enumerate(result.outlines) if " invari self-check " in line)
    section = result.outlines[begins:]
    assert max(map(len, section)) <= 80


def test_the_report_holds_every_trial_whole(project: Project) -> None:
    found = trials(project, "-k", "loc and noise and not baseline")
    assert [each["id"] for each in found] == ["selfcheck::small.loc[noise-K6]"]
    (trial,) = found
    assert trial["right"] == "fail"
    assert sum(trial[each]["count"] for each in ("passed", "failed", "undecided")) == 20
    assert trial["broken"] == []


@pytest.mark.xdist
def test_workers_come_to_the_same_trials(project: Project) -> None:
    alone = trials(project)
    spread = trials(project, "-n1")
    assert sorted(spread, key=lambda each: each["id"]) == sorted(alone, key=lambda each: each["id"])


def test_mistakes_are_one_line(project: Project) -> None:
    for arguments, message in (
        (["--invari-suite=smal.invari.toml"], "there is no such file"),
        (["--invari-simulations=5", "--invari-suite=small.invari.toml"], "at least 20"),
    ):
        result = project.pytest("--invari-selfcheck", *arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert message in result.stderr.str()
        assert "Traceback" not in result.stderr.str()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--reranker=random"], "--reranker"),
        (["--invari-save=a.json", "--invari-compare=b.json"], "--invari-save and --invari-compare"),
        (
            ["--invari-dataset=tasks.jsonl", "--invari-baseline=random"],
            "--invari-dataset and --invari-baseline",
        ),
        (["--invari-model=m", "--invari-records=kept"], "--invari-model and --invari-records"),
        (["--invari-strict", "--invari-markdown=r.md"], "--invari-strict and --invari-markdown"),
        (["--invari-model=m", "--invari-baseline=random", "test_mine.py"], "--invari-baseline"),
    ],
)
def test_what_it_would_ignore_is_refused(project: Project, arguments: list[str], named: str) -> None:
    project.write("test_mine.py", "def test_it(): pass")
    result = project.pytest(*SMALL, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: --invari-selfcheck judges * would ignore {named}: leave that out, *"]
    )


def test_defaults_do_not_disturb_it_and_what_it_heeds_is_taken(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\naddopts = --reranker=sgs\ninvari_save = a.json\n")
    heeded = (
        "--invari-profile=quick",
        "--invari-k=5",
        "--invari-views=4",
        "--invari-queries=31",
        "--invari-seed=2",
    )
    found = trials(project, *heeded, "-k", "loc and noise and not baseline")
    assert [(each["k"], each["views"], each["queries"]) for each in found] == [(5, 4, 31)]
    assert not (project.path / "a.json").exists()
