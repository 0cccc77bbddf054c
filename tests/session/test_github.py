"""In a workflow of GitHub Actions: the summary of the job, and annotations at the criteria."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pytest_invari.reports.github import SUMMARY_BYTES, Annotation, workflow_command
from tests.baseline.conftest import Gated, gated
from tests.session.test_option_json import FOLDER_GONE
from tests.session.test_option_markdown import WITNESS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.session.conftest import Project

__all__ = ["gated"]

COMMAND = re.compile(r"::(error|warning) (?:file=([^,]*),line=(\d+),)?title=([^:,]*)::(.*)")


@pytest.fixture
def summary(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the step's summary, in an environment as a workflow has it."""
    path = project.path / "summaries" / "step.md"
    path.parent.mkdir()
    path.touch()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path))
    return path


def annotated(result: pytest.RunResult) -> list[tuple[str, ...]]:
    """Level, file, line, title and message of each, as GitHub reads them."""
    found = [COMMAND.fullmatch(line) for line in result.outlines if line.startswith("::")]
    assert all(found)
    return [tuple(map(read, match.groups(""))) for match in found if match]


def read(text: str) -> str:
    for code, character in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, character)
    return text


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
def test_report_and_annotations_come_once(project: Project, summary: Path, workers: Sequence[str]) -> None:
    summary.write_text("What an earlier command said.\n", encoding="utf-8")
    result = project.run("--invari-markdown=report.md", *workers, reranker="input_order")
    report = (project.path / "report.md").read_text(encoding="utf-8")
    assert summary.read_text(encoding="utf-8") == f"What an earlier command said.\n\n\n{report}"
    found = annotated(result)
    lines = (project.path / "small.invari.toml").read_text().splitlines()
    assert [(level, file, lines[int(line)], title) for level, file, line, title, _ in found] == [
        ("error", "small.invari.toml", 'name = "loc"', "invari failed: loc[input_order-tasks-K6]"),
        ("error", "small.invari.toml", 'name = "gpi"', "invari failed: gpi[input_order-tasks-K6]"),
        (
            "warning", "small.invari.toml", 'name = "loc_vs_baseline"',
            "invari undecided: loc_vs_baseline[input_order-tasks-K6]",
        ),
    ]  # fmt: skip
    figure, why = found[0][-1].split("\n")
    assert re.fullmatch(r"-?0\.\d{4} \[.*\] n=32: loc must be at least 0\.75", figure)
    assert why == "why: users notice when a page is reordered"


def test_undecided_is_an_error_where_it_fails(project: Project, summary: Path) -> None:
    found = annotated(project.run("--invari-strict", reranker="input_order"))
    assert [level for level, *_ in found] == ["error"] * 3


def test_files_are_named_from_the_workspace(
    project: Project, summary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path.parent))
    [found] = annotated(project.run("-k", "gpi", reranker="random"))
    assert found[1] == f"{project.path.name}/small.invari.toml"
    # Whatever is elsewhere is not in the repository, and nor is it for a run without a workspace.
    monkeypatch.setenv("GITHUB_WORKSPACE", str(summary.parent))
    [found] = annotated(project.run("-k", "gpi", reranker="random"))
    assert (found[1], found[2]) == ("", "")
    assert found[-1].startswith("small: 0.")
    monkeypatch.delenv("GITHUB_WORKSPACE")
    [found] = annotated(project.run("-k", "gpi", reranker="random"))
    assert found[1] == "small.invari.toml"


def test_a_packaged_suite_is_no_file_of_the_repository(
    project: Project, summary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", "/")
    arguments = ("--invari-dataset=tasks.jsonl", "--invari-k=6", "--invari-baseline=random")
    result = project.pytest("--invari-suite=recsys26", "--reranker=input_order", *arguments)
    found = annotated(result)
    assert found
    assert {(file, line) for _, file, line, *_ in found} == {("", "")}
    assert all(message.startswith("recsys26: ") for *_, message in found)


def test_comparisons_are_annotated(gated: Gated, summary: Path) -> None:
    gated.save()
    gated.make_noise(0.9)
    found = annotated(gated.compare())
    assert ("error", "small.invari.toml", "invari regressed: loc@baseline[mine:rank-tasks-K6]") in [
        (level, file, title) for level, file, _, title, _ in found
    ]


def test_the_tenth_of_more_than_ten_says_how_many_there_are(project: Project, summary: Path) -> None:
    criteria = "".join(
        f'[[criterion]]\nname = "loc_{number}"\nmetric = "loc"\nat_least = 0.75\n' for number in range(12)
    )
    head = '[suite]\nname = "many"\n[profile.quick]\ndatasets = ["tasks.jsonl"]\nk = 6\nviews = 5\n'
    project.write("many.invari.toml", head + criteria)
    found = annotated(project.pytest("--invari-suite=many.invari.toml", "--reranker=input_order"))
    assert [level for level, *_ in found] == ["error"] * 10
    assert found[-1][3] == "invari: more than GitHub shows"
    assert found[-1][-1] == "3 more are in the section invari of the log and in the summary of the job"
    assert summary.read_text().count("**FAIL**") == 12


@pytest.mark.parametrize("where", ["elsewhere", "no terminal", "no suite"])
def test_nothing_is_said_where_nobody_would_read_it(
    project: Project, summary: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    if where == "elsewhere":
        monkeypatch.delenv("GITHUB_ACTIONS")
        result = project.run(reranker="input_order")
        assert not summary.read_text()
    elif where == "no terminal":
        result = project.run("-p", "no:terminal", reranker="input_order")
        assert summary.read_text().startswith("## invari: 1 passed, 2 failed, 1 undecided\n")
    else:
        project.write("test_mine.py", "def test_it():\n    assert False\n")
        result = project.pytest("test_mine.py")
        assert not summary.read_text()
    assert not annotated(result)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_run_that_has_judged_nothing_adds_nothing(project: Project, summary: Path) -> None:
    project.run("--collect-only")
    assert not summary.read_text()


def test_a_full_summary_is_shortened_or_left_alone(project: Project, summary: Path) -> None:
    project.run(reranker="random")
    whole = summary.stat().st_size
    for room in (whole // 2, 50):
        summary.write_bytes(b"x" * (SUMMARY_BYTES - room))
        project.run(reranker="random")
        assert summary.stat().st_size <= SUMMARY_BYTES
    assert summary.stat().st_size == SUMMARY_BYTES - 50
    summary.write_bytes(b"x" * (SUMMARY_BYTES - whole // 2))
    project.run(reranker="random")
    text = summary.read_text().lstrip("x")
    assert text.startswith("\n\n## invari: ")
    assert text.rstrip().endswith("`--invari-markdown=FILE` writes the whole.")


def test_a_summary_that_cannot_be_written_fails_nothing(
    project: Project, summary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary.parent / "no" / "step.md"))
    result = project.run("-k", "calls")
    assert result.ret == pytest.ExitCode.OK
    result.stderr.fnmatch_lines(
        ["invari: GITHUB_STEP_SUMMARY=*no/step.md: cannot be written (No such file or directory)"]
    )


def test_where_another_plugin_annotates_failures_each_is_annotated_once(
    project: Project, summary: Path
) -> None:
    result = project.run("-p", "pytest_github_actions_annotate_failures", reranker="input_order")
    assert [level for level, *_ in annotated(result)] == ["warning"]
    theirs = [line for line in result.errlines if line.startswith("::error ")]
    assert len(theirs) == 2
    assert theirs[0].startswith("::error file=small.invari.toml,line=")
    assert "loc must be at least 0.75" in theirs[0]


def test_what_a_command_must_not_hold_is_escaped() -> None:
    hostile = "a%b\r\nc::error title=x,line=2::d"
    written = workflow_command(Annotation("error", hostile, hostile, "a,b:c%.toml", 7))
    assert "\n" not in written
    match = COMMAND.fullmatch(written)
    assert match is not None
    assert tuple(map(read, match.groups())) == ("error", "a,b:c%.toml", "7", hostile, hostile)


def test_hostile_names_and_reasons_make_no_command_of_their_own(project: Project, summary: Path) -> None:
    project.write(
        "mine_evil.py",
        "def rank(context, texts):\n    raise RuntimeError('x\\n::error::owned\\n::add-mask::a%0A::')\n",
    )
    result = project.run("-k", "calls", reranker="mine_evil:rank")
    [found] = annotated(result)
    assert found[3] == "invari failed: calls[mine_evil:rank-tasks-K6]"
    assert "owned" in found[-1]


def test_what_was_not_judged_is_told_where_it_fails_the_run(project: Project, summary: Path) -> None:
    result = project.run("--invari-strict", "--reranker=random", "-k", "first_stage and calls")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    [found] = annotated(result)
    assert found[0] == "error"
    assert found[3] == "invari not judged: small::[random-tasks-K6]"
    assert found[-1] == "none of its 3 items was selected (-k, -m, --deselect, --lf or a hook)"
    text = summary.read_text()
    assert text.startswith("## invari: 1 passed, 0 failed, 0 undecided, 1 not judged\n")
    assert "\n### Not judged\n\n- `small::[random-tasks-K6]`: none of its 3 items was selected" in text


def test_a_witness_goes_with_the_annotation(project: Project, summary: Path) -> None:
    project.write("seen.invari.toml", WITNESS)
    [found] = annotated(project.pytest("--invari-suite=seen.invari.toml", "--reranker=input_order"))
    first, second, *others = found[-1].split("\n")
    assert first.startswith("32 of 32 queries are ranked differently in another order")
    assert second.startswith("query 'q")
    assert sum(" is ranked [" in line for line in others) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--invari-profile=no, such: one%",), "no, such: one%"),
        (("--invari-replay",), "--invari-replay"),
        (("--invari-json=nowhere/report.json",), "there is no folder nowhere"),
    ],
)
def test_what_cannot_be_done_is_annotated_at_the_run(
    project: Project, summary: Path, arguments: Sequence[str], told: str
) -> None:
    result = project.run(*arguments, reranker="input_order")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    [error] = [line.removeprefix("ERROR: ") for line in result.errlines if line.startswith("ERROR: ")]
    [command] = [line for line in result.errlines if line.startswith("::")]
    match = COMMAND.fullmatch(command)
    assert match
    assert told in error
    assert [*map(read, match.groups(""))] == ["error", "", "", "invari cannot do this", error]
    quiet = project.run(*arguments, "-p", "no:terminal", reranker="input_order")
    assert not [line for line in quiet.errlines if line.startswith("::")]


def test_a_report_that_cannot_be_written_is_annotated(project: Project, summary: Path) -> None:
    project.write("mine_gone.py", FOLDER_GONE)
    (project.path / "out").mkdir()
    result = project.run("--invari-json=out/report.json", "-k", "gpi", reranker="mine_gone:rank")
    [error] = [line.removeprefix("ERROR: ") for line in result.errlines if line.startswith("ERROR: ")]
    [command] = [line for line in result.errlines if line.startswith("::")]
    assert read(command) == f"::error title=invari cannot do this::{error}"
