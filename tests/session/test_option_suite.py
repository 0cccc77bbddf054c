"""--invari-suite: by name, by path, as an argument, from the ini file, several, and none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_invari.suitefile.reader import find_suite, packaged_suites

if TYPE_CHECKING:
    from tests.session.conftest import Project


BASE = ("--reranker=first_stage", "--invari-dataset=tasks.jsonl", "--invari-k=6")


def test_a_packaged_suite_is_chosen_by_name(project: Project) -> None:
    names = project.ids("--invari-suite=recsys26", *BASE, "--invari-baseline=random")
    assert names[0] == "recsys26::loc[first_stage-tasks-K6]"


@pytest.mark.parametrize("name", list(packaged_suites()))
def test_packaged_suites_are_valid_and_named_like_their_file(name: str) -> None:
    suite = find_suite(name)
    assert suite.name == name
    assert suite.title
    assert all(criterion.why for criterion in suite.criteria)


def test_a_suite_file_may_stand_among_the_arguments(project: Project) -> None:
    project.pytest("small.invari.toml", "--reranker=first_stage").assert_outcomes(passed=4)


def test_several_suites_run_one_after_the_other(project: Project) -> None:
    project.write_suite("other", "other.toml", depth="at_most = 1")
    names = project.ids("--invari-suite=./other.toml", "--invari-suite=small.invari.toml", *BASE)
    assert names[0] == "other::depth[first_stage-tasks-K6]"
    assert len(names) == 5


def test_the_same_suite_twice_runs_once(project: Project) -> None:
    assert len(project.ids("--invari-suite=small.invari.toml", "small.invari.toml", *BASE)) == 4


def test_two_suites_of_one_name_are_refused(project: Project) -> None:
    project.write_suite("small", "other.toml", depth="at_most = 1")
    result = project.run("--invari-suite=other.toml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: small.invari.toml and other.toml are both named 'small'; rename one"]
    )


def test_the_ini_key_is_the_default(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\ninvari_suite = small.invari.toml\ninvari_reranker = first_stage\n")
    project.pytest().assert_outcomes(passed=4)


def test_the_command_line_wins_over_the_ini_key(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\ninvari_suite = recsys26\ninvari_reranker = random\n")
    assert project.ids("--invari-suite=small.invari.toml", *BASE)[0].startswith("small::loc[first_stage")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("recsys", "unknown suite 'recsys'. Did you mean 'recsys26'? Known: *recsys26*"),
        ("nowhere/mine.toml", "suite 'nowhere/mine.toml': there is no such file"),
        ("", "--invari-suite: the value is empty"),
        (".", "unknown suite '.'*"),
    ],
)
def test_an_unknown_suite_is_one_line(project: Project, name: str, message: str) -> None:
    result = project.pytest(f"--invari-suite={name}", "--reranker=random")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert [line for line in result.errlines if line.strip()] == result.errlines[:1]


def test_a_suite_without_a_reranker_says_so_and_lists_them(project: Project) -> None:
    result = project.run(reranker=None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: suite 'small' needs a reranker to test: --reranker=NAME; known: answerdotai, biased, *sgs*"]
    )


@pytest.mark.xdist
def test_the_error_comes_from_the_controller_before_workers_start(project: Project) -> None:
    result = project.run("-n1", reranker="sg")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.no_fnmatch_line("*workers*")


def test_help_teaches_the_options(project: Project) -> None:
    result = project.pytest("--help")
    result.stdout.fnmatch_lines(["invari: *", "*--invari-suite=NAME|PATH", "*--reranker=NAME*"])
    assert result.ret == 0


def test_help_does_not_run_a_suite_from_the_ini_file(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\ninvari_suite = unknown\n")
    for option in ("--help", "--version", "--markers"):
        assert project.pytest(option).ret == 0
