"""A task set says its stratum, keeps it in files and records, and never holds two."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.observation.plan import SubjectName
from pytest_invari.protocol import Candidate, Context
from pytest_invari.records.folder import RecordFolder
from pytest_invari.records.manifest import Manifest
from pytest_invari.tasks.task import Stratum, Task, TaskSet, content_hash
from pytest_invari.tasks.taskfile import read_tasks, write_tasks

STRATA: tuple[Stratum, ...] = ("", "controlled", "untouched")
ENDINGS = (".parquet", ".jsonl")


def task(query_id: str, stratum: Stratum) -> Task:
    candidates = tuple(Candidate(item, item.upper()) for item in "abcd")
    groups = {"a": "head", "b": "head", "c": "tail", "d": "tail"}
    return Task(query_id, Context("crime"), candidates, {"b": 1.0, "c": 1.0}, 5, groups, stratum)


def task_set(stratum: Stratum) -> TaskSet:
    return TaskSet.of("films", [task(query_id, stratum) for query_id in ("q1", "q2")])


def write_rows(path: Path, *changes: dict[str, object]) -> Path:
    rows = []
    for number, change in enumerate(changes, start=1):
        candidates = [
            {"id": "a", "text": "Fargo", "relevance": 1, "group": "head"},
            {"id": "b", "text": "Ronin", "relevance": 1, "group": "tail"},
        ]
        rows.append(json.dumps({"query_id": f"q{number}", "candidates": candidates} | change))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("stratum", STRATA)
@pytest.mark.parametrize("ending", ENDINGS)
def test_stratum_is_kept_in_task_files(stratum: Stratum, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"films{ending}"
    write_tasks(path, task_set(stratum))
    found = read_tasks(path)
    assert found == task_set(stratum)
    assert found.stratum == stratum


@pytest.mark.parametrize("stratum", STRATA)
def test_stratum_is_kept_in_records_and_by_taking_fewer_queries(stratum: Stratum, tmp_path: Path) -> None:
    tasks = task_set(stratum)
    manifest = Manifest({"reranker": "sgs", "tasks_sha256": tasks.sha256})
    folder = RecordFolder(tmp_path)
    folder.open(SubjectName("sgs", "films", 4), manifest, tasks)
    found = folder.find(SubjectName("sgs", "films", 4), {"reranker": "sgs"}).tasks()
    assert (found, found.stratum) == (tasks, stratum)
    assert found.head(1).stratum == stratum


def test_every_stratum_has_a_hash_of_its_own() -> None:
    assert len({content_hash([task("q1", stratum)]) for stratum in STRATA}) == 3


def test_two_strata_are_never_in_one_task_set(tmp_path: Path) -> None:
    with pytest.raises(
        InvariError,
        match=r"^data set 'both': the stratum of query 'q2' is untouched, that of query 'q1' controlled; ",
    ):
        TaskSet.of("both", [task("q1", "controlled"), task("q2", "untouched")])
    with pytest.raises(InvariError, match="query 'q3' is controlled, that of query 'q1' none"):
        TaskSet("both", (task("q1", ""), task("q2", ""), task("q3", "controlled")), "")
    path = write_rows(tmp_path / "t.jsonl", {"stratum": "untouched"}, {"stratum": None})
    with pytest.raises(InvariError, match=r"t\.jsonl: .*query 'q2' is none, that of query 'q1' untouched"):
        read_tasks(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stratum": "controled"}, "unknown stratum 'controled'. Did you mean 'controlled'?"),
        ({"stratum": ""}, "unknown stratum ''. Known: controlled, untouched."),
        ({"stratum": 1}, "stratum must be text, not a number (1)"),
        (
            {
                "stratum": "controlled",
                "candidates": [{"id": "a", "text": "A", "relevance": 1, "group": "head"}],
            },
            "list has relevant candidates of the groups head and tail; this one has none of tail",
        ),
        (
            {
                "stratum": "controlled",
                "candidates": [{"id": "a", "text": "A", "group": "tail"}, {"id": "b", "text": "B"}],
            },
            "this one has none of head and none of tail",
        ),
    ],
)
def test_bad_stratum_is_refused_with_its_line(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    path = write_rows(tmp_path / "t.jsonl", {"stratum": "controlled"}, change)
    with pytest.raises(InvariError) as caught:
        read_tasks(path)
    assert str(caught.value).startswith(f"{path}: line 2, query 'q2': ")
    assert message in str(caught.value)


def test_only_a_controlled_list_cannot_be_cut() -> None:
    with pytest.raises(
        InvariError,
        match=r"^data set 'films': query 'q1' has a controlled list of 4, which .* ask for k = 4$",
    ):
        task_set("controlled").at_k(3)
    assert task_set("controlled").at_k(4) == task_set("controlled")
    cut = task_set("untouched").at_k(2)
    assert (cut.stratum, [len(each.candidates) for each in cut.tasks]) == ("untouched", [2, 2])
    assert replace(task("q1", "untouched"), stratum="").at_k(2).stratum == ""
