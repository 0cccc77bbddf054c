"""Limits that docs/limits.md names, where they can be shown: the run is refused, in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_invari.records.exchange import import_rankings
from tests.docs.test_documentation import ROOT
from tests.session.conftest import QUIET, write_tasks

SUITE = """
[suite]
name = "limits"
[profile.quick]
datasets = "tasks.jsonl"
k = 6
bank = ["canonical", 13]
repeats = 2
[[criterion]]
name = "loc"
metric = "loc"
at_least = 0
"""


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    write_tasks(pytester.path / "tasks.jsonl")
    (pytester.path / "limits.invari.toml").write_text(SUITE, encoding="utf-8")
    return pytester.path


def refusal(pytester: pytest.Pytester, *arguments: str) -> str:
    result = pytester.runpytest_inprocess(*QUIET, "--invari-suite=limits.invari.toml", *arguments)
    assert result.ret == 4, result.stdout.str()
    [line] = [line for line in result.errlines if line.startswith("ERROR: ")]
    return line


def limit(words: str) -> None:
    assert words in (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")


def test_one_short_list_makes_a_file_unusable_at_that_length(folder: Path, pytester: pytest.Pytester) -> None:
    limit("A data set that is shorter than the list length refuses the run")
    tasks = (folder / "tasks.jsonl").read_text(encoding="utf-8")
    short = json.loads(tasks.splitlines()[0])
    short |= {"query_id": "short", "candidates": short["candidates"][:5]}
    (folder / "tasks.jsonl").write_text(tasks + json.dumps(short) + "\n", encoding="utf-8")
    assert "query 'short' has 5 candidates, fewer than the 6" in refusal(pytester, "--reranker=random")


def test_rankings_made_elsewhere_have_no_repeats(folder: Path, pytester: pytest.Pytester) -> None:
    limit("a profile with `repeats` above 0 cannot be replayed from them")
    with (folder / "mine.jsonl").open("w", encoding="utf-8") as rankings:
        for task in map(json.loads, (folder / "tasks.jsonl").read_text(encoding="utf-8").splitlines()):
            ids = [candidate["id"] for candidate in task["candidates"]]
            for view, shown in (("canonical", ids), (13, ids[::-1])):
                line = {"query_id": task["query_id"], "view": view, "input": shown, "output": ids}
                print(json.dumps(line), file=rankings)
    import_rankings(Path("mine.jsonl"), Path("records"), tasks=Path("tasks.jsonl"))
    replay = ["--reranker=mine", "--invari-records=records", "--invari-replay"]
    assert "lacks 2 of 2 views, the first of query 'q0', view 'canonical.alone'" in refusal(pytester, *replay)


def test_the_files_of_movielens_1m_are_not_read(folder: Path, pytester: pytest.Pytester) -> None:
    limit("its `.dat` files are not read")
    (folder / "ml-1m").mkdir()
    (folder / "ml-1m" / "ratings.dat").write_text("1::1193::5::978300760\n", encoding="utf-8")
    assert "ratings.csv" in refusal(pytester, "--reranker=random", "--invari-dataset=ml-1m")


def test_the_exposure_of_short_lists_is_not_zero_for_who_ignores_positions(
    folder: Path, pytester: pytest.Pytester
) -> None:
    limit("has 0.133 at the top 1 of lists of 3 in all\n  five orders, not 0")
    suite = SUITE.replace('bank = ["canonical", 13]\nrepeats = 2', "views = 5")
    (folder / "limits.invari.toml").write_text(suite, encoding="utf-8")
    asked = ("--invari-suite=limits.invari.toml", "--reranker=first_stage", "--invari-k=3")
    pytester.runpytest_inprocess(*QUIET, *asked, "--invari-no-audit", "--invari-json=report.json")
    [subject] = json.loads((folder / "report.json").read_text(encoding="utf-8"))["subjects"]
    assert subject["metrics"]["exposure_deviation@1"]["estimate"] == pytest.approx(2 / 15)
