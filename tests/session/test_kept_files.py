"""Reports replace reports and nothing else: a user's own file is refused before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.session.conftest import Project

RANKER = "def rank(context, texts):\n    return [float(text[-1]) for text in texts]\n"
BASELINE = '{\n "format": "invari-baseline/1",\n "entries": {\n }\n}\n'
OPTIONS = ("--invari-json", "--invari-markdown", "--invari-html")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize(
    "name", ["small.invari.toml", "tasks.jsonl", "mine_kept.py", "main.json", "page.html"]
)
def test_a_file_that_is_no_such_report_is_kept(project: Project, option: str, name: str) -> None:
    project.write("mine_kept.py", RANKER)
    project.write("main.json", BASELINE)
    project.write("page.html", '<!DOCTYPE html>\n<html lang="en">\n<head>\n<title>Ours</title>\n')
    before = contents(project.path)
    result = project.run(f"{option}={name}", reranker="mine_kept:rank")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line.startswith("ERROR")] == [
        f"ERROR: {option}={name}: that file is no report which this option has written, and it would be "
        "replaced; name another file, or remove this one"
    ]
    assert contents(project.path) == before


def test_an_option_with_its_value_apart_does_not_swallow_the_suite(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\ninvari_suite = small.invari.toml\ninvari_reranker = first_stage\n")
    before = contents(project.path)
    result = project.pytest("-q", "--invari-json", "small.invari.toml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert contents(project.path) == before


def test_a_second_run_replaces_the_reports_of_the_first_and_empty_files(project: Project) -> None:
    reports = [f"{option}=report{option.removeprefix('--invari')}" for option in OPTIONS]
    for given in reports:
        (project.path / given.partition("=")[2]).touch()
    for reranker in ("first_stage", "random"):
        project.run(*reports, reranker=reranker)
        assert (project.path / "report-json").read_text().count(f'"{reranker}"')
        assert f"small::gpi[{reranker}" in (project.path / "report-markdown").read_text()
        assert "<h1" in (project.path / "report-html").read_text()


def test_the_report_of_a_selfcheck_is_one_of_the_same_option(project: Project) -> None:
    check = ("--invari-selfcheck", "--invari-simulations=20", "--invari-json=r.json", "-k", "no_such")
    project.run("--invari-json=r.json")
    for _ in range(2):
        assert project.pytest(*check).ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert '"invari-selfcheck/1"' in (project.path / "r.json").read_text()


def test_a_file_that_appears_during_the_run_is_kept_too(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        from pathlib import Path

        def pytest_sessionstart():
            Path("notes.md").write_text("mine")
        """,
    )
    result = project.run("--invari-markdown=notes.md", "-k", "gpi")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --invari-markdown=notes.md: that file is no report *"])
    assert (project.path / "notes.md").read_text() == "mine"


@pytest.mark.parametrize(
    ("other", "switch"),
    [("--junitxml=./x.out", "--junitxml"), ("--log-file=x.out", "--log-file")],
)
def test_a_file_that_another_plugin_writes_is_refused(project: Project, other: str, switch: str) -> None:
    for option in (*OPTIONS, "--invari-save"):
        result = project.run(f"{option}=x.out", other)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(
            [f"ERROR: {option}=x.out: {switch} names the same file; give each one of its own"]
        )


def test_records_and_a_report_cannot_have_one_path(project: Project) -> None:
    result = project.run("--invari-records=kept", "--invari-json=kept")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --invari-json=kept: --invari-records names the same file; *"])
