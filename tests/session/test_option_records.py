"""--invari-records and --invari-replay: what was ranked once is judged again without the reranker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project

COUNTED = """
from pathlib import Path

def rank(context, texts):
    with Path("calls.txt").open("a") as file:
        file.write("x")
    return [float(len(text)) + float(text[-1]) for text in texts]
"""


def calls(project: Project) -> int:
    path = project.path / "calls.txt"
    return len(path.read_text()) if path.exists() else 0


def criteria(project: Project, *arguments: str) -> Any:
    project.run("--invari-json=report.json", *arguments, reranker="mine_counted:rank")
    return json.loads((project.path / "report.json").read_text())["criteria"]


def test_a_run_with_records_is_judged_again_from_them(project: Project) -> None:
    project.write("mine_counted.py", COUNTED)
    first = criteria(project, "--invari-records=kept")
    assert calls(project) == 160
    assert criteria(project, "--invari-records=kept") == first
    assert criteria(project, "--invari-records=kept", "--invari-replay") == first
    assert calls(project) == 160


def test_without_records_nothing_is_kept(project: Project) -> None:
    before = {path.name for path in project.path.iterdir()}
    project.run("-p", "no:cacheprovider")
    assert {path.name for path in project.path.iterdir()} == before


def test_the_ini_key_names_the_folder(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\ninvari_records = kept\n")
    project.run().assert_outcomes(passed=4)
    assert (project.path / "kept").is_dir()


def test_replay_needs_the_folder(project: Project) -> None:
    result = project.run("--invari-replay")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --invari-replay needs --invari-records=DIR*"])


def test_replay_of_a_reranker_that_was_never_recorded_is_refused(project: Project) -> None:
    project.run("--invari-records=kept", "-k", "calls")
    for arguments in (("--invari-views=6",), ("--invari-seed=5",), ("--reranker=random:seed=3",)):
        result = project.run("--invari-records=kept", "--invari-replay", "-k", "calls", *arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert "Traceback" not in result.stdout.str() + result.stderr.str()
        assert result.stderr.str().startswith("ERROR: kept")


def test_replay_needs_no_baseline_where_no_item_does(project: Project) -> None:
    arguments = ("--invari-records=kept", "-k", "calls or gpi")
    project.run(*arguments).assert_outcomes(passed=2)
    project.run(*arguments, "--invari-replay").assert_outcomes(passed=2)
    chosen = "small::calls[first_stage-tasks-K6]"
    project.run("--invari-records=kept", "--invari-replay", chosen).assert_outcomes(passed=1)


def test_replay_without_the_baseline_fails_the_items_that_need_it(project: Project) -> None:
    project.run("--invari-records=kept", "-k", "calls")
    result = project.run("--invari-records=kept", "--invari-replay")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "no figure: loc minus random's must be above 0; baseline random: nothing measured: kept: no "
            "records fit random-tasks-K6; there are none of reranker 'random', only of 'first_stage'; run "
            "once without --invari-replay to rank them"
        ]
    )


def test_a_run_whose_subject_failed_and_left_no_baseline_is_replayed(project: Project) -> None:
    project.write("mine_bad.py", "def rank(context, texts):\n    raise RuntimeError('no answer')\n")
    first = project.run("--invari-records=kept", reranker="mine_bad:rank")
    assert [path.name.partition("-tasks")[0] for path in (project.path / "kept").iterdir()] == [
        "mine_bad_rank"
    ]
    again = project.run("--invari-records=kept", "--invari-replay", reranker="mine_bad:rank")
    assert again.ret == first.ret == pytest.ExitCode.TESTS_FAILED
    assert again.parseoutcomes() == first.parseoutcomes() == {"failed": 4}
    failures = [line for line in first.outlines if line.startswith("no figure: ")]
    assert [line for line in again.outlines if line.startswith("no figure: ")] == failures


def test_a_run_says_how_many_rankings_came_from_records(project: Project) -> None:
    run = ("--invari-records=kept", "--invari-json=report.json")

    def told(*arguments: str) -> tuple[list[int], list[str]]:
        result = project.run(*run, *arguments)
        subjects = json.loads((project.path / "report.json").read_text())["subjects"]
        result.stdout.fnmatch_lines(["records: * of * rankings came from records in kept"])
        rows = [
            line.split("  ", 1)[1].split("  ") for line in result.outlines if line.startswith("from records")
        ]
        return (
            [subject["rankings_from_records"] for subject in subjects],
            [cell.strip() for row in rows for cell in row if cell.strip()],
        )

    # A row of zeros tells no more than the closing line.
    assert told("--invari-views=3") == ([0, 0], [])
    assert told() == ([96, 96], ["96 of 160", "96 of 160"])
    assert told("--invari-baseline=constant") == ([160, 0], ["160 of 160", "0 of 160"])
    assert told("--invari-replay") == ([160, 160], ["160 of 160", "160 of 160"])


def test_more_queries_rank_the_new_ones_only(project: Project) -> None:
    project.write("mine_counted.py", COUNTED)
    run = ("--invari-records=kept", "--invari-baseline=mine_counted:rank")
    project.run("--invari-queries=22", *run, reranker="mine_counted:rank")
    assert calls(project) == 22 * 5
    more = project.run("--invari-queries=32", *run, reranker="mine_counted:rank")
    assert calls(project) == 32 * 5
    more.stdout.fnmatch_lines(["records: 110 of 160 rankings came from records in kept"])
    fewer = project.run("--invari-queries=25", *run, reranker="mine_counted:rank")
    assert calls(project) == 32 * 5
    fewer.stdout.fnmatch_lines(["records: 125 of 125 rankings came from records in kept"])


def test_a_query_whose_task_was_changed_is_ranked_anew(project: Project) -> None:
    project.write("mine_counted.py", COUNTED)
    first = criteria(project, "--invari-records=kept", "-k", "calls")
    tasks = project.path / "tasks.jsonl"
    tasks.write_text(tasks.read_text().replace("Film 3", "Movie 3", 2))
    assert criteria(project, "--invari-records=kept", "-k", "calls") == first
    assert calls(project) == 32 * 5 + 2 * 5


@pytest.mark.parametrize("damaged", ["views/part-*.parquet", "manifest.json"])
@pytest.mark.parametrize("queries", [32, 30], ids=["same", "sibling"])
def test_damaged_records_are_refused_before_anything_is_ranked(
    project: Project, damaged: str, queries: int
) -> None:
    project.write("mine_counted.py", COUNTED)
    criteria(project, "--invari-records=kept", "-k", "calls")
    [path] = (project.path / "kept").glob(f"*/{damaged}")
    path.write_bytes(path.read_bytes()[:100])
    before = calls(project)
    result = project.run("--invari-records=kept", f"--invari-queries={queries}", reranker="mine_counted:rank")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    [told] = [line for line in result.errlines if line.strip()]
    assert told.startswith(f"ERROR: {path.relative_to(project.path)}: ")
    assert calls(project) == before


def test_damaged_tasks_of_a_sibling_are_refused(project: Project) -> None:
    project.run("--invari-records=kept", "-k", "calls")
    [path] = (project.path / "kept").glob("*/tasks.parquet")
    path.write_bytes(path.read_bytes()[:100])
    assert project.run("--invari-records=kept", "-k", "calls").ret == pytest.ExitCode.OK
    result = project.run("--invari-records=kept", "-k", "calls", "--invari-queries=30")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0].startswith(f"ERROR: {path.relative_to(project.path)}")


def test_without_the_option_nothing_is_said_of_records(project: Project) -> None:
    text = project.run().stdout.str()
    assert "from records" not in text
    assert "records:" not in text


@pytest.mark.xdist
def test_workers_share_the_folder(project: Project) -> None:
    run = ("--reranker=biased", "--reranker=input_order", "--invari-records=kept")
    first = project.run(*run, "-n2")
    # They share a baseline; what one worker takes from the other's records was ranked in this run.
    first.stdout.fnmatch_lines(["records: 0 of 640 rankings came from records in kept"])
    again = project.run(*run, "--invari-replay", "-n2")
    assert first.parseoutcomes() == again.parseoutcomes()
    again.stdout.fnmatch_lines(["records: 640 of 640 rankings came from records in kept"])


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("tasks.jsonl", "tasks.jsonl: is a file; records need a folder"),
        ("tasks.jsonl/kept", "tasks.jsonl/kept: */tasks.jsonl is a file; records need a folder"),
        ("/proc/kept", "/proc/kept: the folder /proc cannot be written to (*)"),
    ],
)
def test_a_folder_that_cannot_hold_records_is_refused_before_anything_runs(
    project: Project, folder: str, message: str
) -> None:
    result = project.run(f"--invari-records={folder}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert not [line for line in result.errlines[1:] if line.strip()]


FLAKY = """
import pathlib

def rank(context, texts):
    if pathlib.Path("down").exists():
        raise {error}
    return [float(text[-1]) for text in texts]
"""


def flaky(project: Project, *arguments: str) -> tuple[str, int, int, bool]:
    """What a run says of it: why gpi failed, how many rankings did, how many in records, and the hint."""
    run = ("--invari-records=kept", "--invari-json=report.json", "-k", "gpi")
    result = project.run(*run, *arguments, reranker="mine_flaky:rank")
    report = json.loads((project.path / "report.json").read_text())
    [subject] = report["subjects"]
    hint = "to rank again what failed, add --invari-retry-failed" in " ".join(result.stdout.str().split())
    failures = subject["failures"], subject["failures_from_records"]
    return report["criteria"][0]["reason"] or "", *failures, hint


def test_a_connection_that_failed_is_asked_again_by_the_same_command(project: Project) -> None:
    project.write("mine_flaky.py", FLAKY.format(error="TimeoutError('slow')"))
    (project.path / "down").touch()
    reason, *counts = flaky(project)
    assert "the service was away (with --invari-records, the same command asks again)" in reason
    assert counts == [160, 0, False]
    (project.path / "down").unlink()
    assert flaky(project) == ("", 0, 0, False)


def test_other_failures_stay_and_are_ranked_again_when_that_is_asked(project: Project) -> None:
    project.write("mine_flaky.py", FLAKY.format(error="LookupError('no index yet')"))
    (project.path / "down").touch()
    assert flaky(project)[1:] == (160, 0, False)
    (project.path / "down").unlink()
    assert flaky(project)[1:] == (160, 160, True)
    assert flaky(project, "--invari-retry-failed") == ("", 0, 0, False)
    assert flaky(project) == ("", 0, 0, False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "--invari-retry-failed needs --invari-records=DIR, the folder that holds what failed"),
        (
            ("--invari-records=kept", "--invari-replay"),
            "--invari-retry-failed ranks again, and --invari-replay ranks nothing: leave one of them out",
        ),
    ],
)
def test_what_cannot_be_ranked_again_is_refused(
    project: Project, given: tuple[str, ...], message: str
) -> None:
    result = project.run("--invari-retry-failed", *given)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
