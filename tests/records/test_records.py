"""Records: what is written is what is read, in whole files only, and never mixed."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.errors import InvariError
from pytest_invari.measure.subject import Subject
from pytest_invari.observation.observation import Observation
from pytest_invari.observation.plan import SubjectName
from pytest_invari.protocol import Cost, Ranking
from pytest_invari.records import record as module
from pytest_invari.records.folder import RecordFolder
from pytest_invari.records.manifest import Manifest
from pytest_invari.records.record import Record
from pytest_invari.records.rows import read_observations, schema, write_observations
from pytest_invari.tasks.task import TaskSet

if TYPE_CHECKING:
    from tests.measure.conftest import Project

SUBJECT = SubjectName("sgs:select=2", "films", 3)
# Any text that UTF-8 can hold: also control characters, "\0" and U+2028.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
COUNT = st.integers(0, 2**40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | FINITE
    | st.text(max_size=8),  # surrogates too: a fault may quote anything
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    shown = tuple(draw(st.lists(TEXT, min_size=1, max_size=5, unique=True)))
    tokens = draw(COUNT)
    cached = draw(st.integers(0, tokens))
    cost = Cost(draw(COUNT), draw(COUNT), tokens, cached, draw(COUNT), draw(st.floats(0, 1e6)))
    diagnostics = draw(st.dictionaries(TEXT, JSON, max_size=3))
    if draw(st.booleans()):
        ranking = Ranking((), None, cost, "failed", {"fault": draw(st.text()), **diagnostics})
    else:
        scores = st.lists(FINITE, min_size=len(shown), max_size=len(shown))
        ranking = Ranking(
            tuple(draw(st.permutations(shown))),
            draw(st.none() | scores.map(lambda each: tuple(sorted(each, reverse=True)))),
            cost,
            draw(st.sampled_from(["ok", "repaired", "partial"])),
            diagnostics,
        )
    return Observation(draw(TEXT), draw(TEXT), shown, ranking)


def seen(query: int = 0, view: int = 0, status: str = "ok") -> Observation:
    ids = ("a", "b", "c")
    ranking = Ranking.failed("asleep") if status == "failed" else Ranking(ids[::-1], (3.0, 2.0, 1.0))
    return Observation(f"q{query}", f"seed0.{view}", ids, ranking)


@pytest.fixture
def folder(tmp_path: Path) -> RecordFolder:
    return RecordFolder(tmp_path / "records")


@pytest.fixture
def record(folder: RecordFolder, tasks: TaskSet) -> Record:
    return folder.open(SUBJECT, Manifest({"reranker": "sgs"}, {"prompt": "p1"}, {"torch": "2.13.0"}), tasks)


def parts(record: Record) -> list[Path]:
    return sorted((record.path / "views").glob("*.parquet"))


@settings(max_examples=60, deadline=None)
@given(st.lists(observations(), max_size=4))
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Observation]
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    write_observations(path, rows, SUBJECT, "f" * 64)
    assert read_observations(path, "f" * 64) == rows


def test_the_columns_are_those_that_others_read(record: Record) -> None:
    record.append([seen()])
    table = pyarrow.parquet.ParquetFile(parts(record)[0]).read()
    assert table.to_pylist() == [
        {
            "dataset": "films", "query_id": "q0", "view": "seed0.0", "reranker": "sgs:select=2",
            "fingerprint": record.manifest.fingerprint, "input": ["a", "b", "c"], "output": ["c", "b", "a"],
            "scores": [3.0, 2.0, 1.0], "status": "ok", "calls": 1, "depth": 1, "tokens_in": 0,
            "tokens_cached": 0, "tokens_out": 0, "seconds": 0.0, "diagnostics": "{}",
        }
    ]  # fmt: skip


def test_ids_that_are_not_unicode_are_refused(record: Record) -> None:
    broken = Observation("q\ud800", "seed0.0", ("a",), Ranking(("a",)))
    with pytest.raises(InvariError, match=r"records cannot hold 'q\\ud800': it is not valid Unicode"):
        record.append([broken])
    assert parts(record) == []
    assert record.read() == {}


def test_the_manifest_is_readable_and_names_the_folder(record: Record) -> None:
    content = json.loads((record.path / "manifest.json").read_text())
    assert content == {
        "format": "invari-records/1",
        "fingerprint": record.manifest.fingerprint,
        "asked.reranker": "sgs",
        "reranker.prompt": "p1",
        "environment.torch": "2.13.0",
    }
    assert record.path.name == f"sgs_select=2-films-K3-{record.manifest.fingerprint[:16]}"
    assert Manifest.read(record.path / "manifest.json") == record.manifest


def test_other_settings_lie_in_another_folder(folder: RecordFolder, record: Record, tasks: TaskSet) -> None:
    record.append([seen()])
    for changed in (
        Manifest({"reranker": "sgs", "option.select": 1}, {"prompt": "p1"}, {"torch": "2.13.0"}),
        Manifest({"reranker": "sgs"}, {"prompt": "p2"}, {"torch": "2.13.0"}),
        Manifest({"reranker": "sgs"}, {"prompt": "p1"}, {"torch": "2.14.0"}),
    ):
        other = folder.open(SUBJECT, changed, tasks)
        assert other.path != record.path
        assert other.read() == {}
    assert len(folder.open(SUBJECT, record.manifest, tasks).read()) == 1


@pytest.mark.parametrize("label", ["../../etc", "a/b\\c", "x" * 300, "é😀", "", "..", "a\nb"])
def test_any_label_makes_a_plain_folder_name(folder: RecordFolder, tasks: TaskSet, label: str) -> None:
    record = folder.open(SubjectName(label, "films", 3), Manifest({"reranker": label}), tasks)
    assert record.path.parent == folder.path
    assert record.path.name.isascii()
    assert len(record.path.name) < 120
    assert folder.find(record.subject, {"reranker": label}).path == record.path


def test_the_tasks_lie_beside_the_observations(record: Record, tasks: TaskSet, folder: RecordFolder) -> None:
    kept = folder.open(
        SubjectName("sgs", "films", 5), Manifest({"tasks_sha256": tasks.sha256}), tasks
    )  # fmt: skip
    assert kept.tasks() == tasks
    with pytest.raises(InvariError, match=r"tasks\.parquet: not the tasks that were ranked"):
        record.tasks()


def test_merging_keeps_all_and_leaves_one_file(record: Record) -> None:
    for query in range(5):
        record.append([seen(query, view) for view in range(3)])
    before = record.read()
    assert (len(parts(record)), len(before)) == (5, 15)
    record.compact()
    assert len(parts(record)) == 1
    assert record.read() == before
    record.compact()
    assert len(parts(record)) == 1


def test_many_small_files_are_merged_on_the_way(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PARTS", 4)
    for query in range(11):
        record.append([seen(query)])
    assert len(parts(record)) == 2 + 3
    assert len(record.read()) == 11


def test_a_crash_while_merging_leaves_every_view_once(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    for query in range(3):
        record.append([seen(query)])
    before = record.read()

    def crash(self: Path, missing_ok: bool = False) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", crash)
        with pytest.raises(SystemExit):
            record.compact()
    assert len(parts(record)) > 3
    assert record.read() == before
    record.compact()
    assert len(parts(record)) == 1
    assert record.read() == before


def test_a_view_that_was_ranked_twice_counts_once_and_success_wins(record: Record) -> None:
    record.append([seen(0, status="failed"), seen(1)])
    record.append([seen(0), seen(1, status="failed")])
    for _ in range(2):
        assert [each.ranking.status for each in record.read().values()] == ["ok", "ok"]
        record.compact()


def test_two_processes_that_merge_at_once_lose_nothing(
    folder: RecordFolder, record: Record, tasks: TaskSet
) -> None:
    other = folder.open(SUBJECT, record.manifest, tasks)
    record.append([seen(0)])
    other.append([seen(1)])
    listed = record._parts()
    other.append([seen(2)])
    other.compact()
    record._merge(listed)
    assert sorted(key for key, _ in record.read()) == ["q0", "q1", "q2"]


def test_files_that_vanish_while_reading_are_looked_for_again(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    record.append([seen(0)])
    stale = record._parts()
    record.append([seen(1)])
    record.compact()
    listings = [stale]
    real = record._parts
    monkeypatch.setattr(record, "_parts", lambda: listings.pop() if listings else real())
    assert len(record.read()) == 2


def test_left_over_temporary_files_are_ignored_and_in_time_removed(record: Record) -> None:
    record.append([seen()])
    fresh, old = (record.path / "views" / f".part-{name}.parquet" for name in ("fresh", "old"))
    for path in (fresh, old):
        path.write_bytes(b"PAR1 torn")
    os.utime(old, (time.time() - 2 * 86_400,) * 2)
    assert len(record.read()) == 1
    record.compact()
    assert (fresh.exists(), old.exists()) == (True, False)


def table_of(record: Record, **changed: Any) -> pa.Table:
    row = {
        "dataset": "films", "query_id": "q0", "view": "seed0.0", "reranker": "sgs",
        "fingerprint": record.manifest.fingerprint, "input": ["a", "b"], "output": ["b", "a"], "scores": None,
        "status": "ok", "calls": 1, "depth": 1, "tokens_in": 0, "tokens_cached": 0, "tokens_out": 0,
        "seconds": 0.0, "diagnostics": "{}",
    }  # fmt: skip
    return pa.Table.from_pylist([row | changed], schema())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"fingerprint": "0" * 64}, "another fingerprint than its folder's manifest"),
        ({"status": "excellent"}, "unknown status 'excellent'"),
        ({"output": ["a", "a"]}, "the output is not an order of the input"),
        ({"diagnostics": "{"}, "diagnostics are not JSON"),
        ({"calls": -1}, "calls cannot be -1"),
        ({"tokens_in": 5, "tokens_cached": 6}, "tokens_cached (6) cannot exceed tokens_in (5)"),
        ({"seconds": float("nan")}, "seconds cannot be nan"),
        ({"seconds": -0.5}, "seconds cannot be -0.5"),
    ],
)
def test_rows_that_cannot_be_are_named(record: Record, changed: dict[str, Any], message: str) -> None:
    record.append([seen(7)])
    strange = record.path / "views" / "part-strange.parquet"
    pyarrow.parquet.write_table(table_of(record, **changed), strange)
    with pytest.raises(InvariError) as caught:
        record.read()
    assert str(caught.value).startswith(f"{strange}: query 'q0', view 'seed0.0' (draw 0 of seed 0): ")
    assert message in str(caught.value)


AT_ONCE = (
    ", as when several runs have ranked at once; a run with these records and no --invari-replay keeps the "
    "first and says so"
)
CONTRADICTIONS: dict[str, dict[str, Any]] = {
    "input": {"input": ["b", "a"]},
    "output": {"output": ["a", "b"]},
    "scores": {"scores": [2.0, 1.0]},
    "status": {"status": "repaired"},
    "output and scores": {"output": ["a", "b"], "scores": [2.0, 1.0]},
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
@pytest.mark.parametrize("together", [True, False], ids=["in one file", "in two"])
def test_two_answers_for_one_view_are_named_where_they_must_agree(
    record: Record, what: str, together: bool
) -> None:
    views = record.path / "views"
    views.mkdir(exist_ok=True)
    one, other = table_of(record), table_of(record, **CONTRADICTIONS[what])
    if together:
        pyarrow.parquet.write_table(pa.concat_tables([one, other]), views / "part-b.parquet")
        between, remedy = "is there twice", "; remove the file"
    else:
        pyarrow.parquet.write_table(one, views / "part-a.parquet")
        pyarrow.parquet.write_table(other, views / "part-b.parquet")
        between, remedy = "is also in part-a.parquet", AT_ONCE
    with pytest.raises(InvariError) as caught:
        record.read(strict=True)
    assert str(caught.value) == (
        f"{views / 'part-b.parquet'}: query 'q0', view 'seed0.0' (draw 0 of seed 0) {between}, with another "
        f"{what}{remedy}"
    )
    # A run that goes on takes the first, as where two processes have ranked a view at once.
    assert len(record.read()) == 1


def test_two_equal_answers_for_one_view_are_one(record: Record) -> None:
    (record.path / "views").mkdir(exist_ok=True)
    for name, seconds in (("a", 0.1), ("b", 0.2)):
        table = table_of(record, seconds=seconds)
        pyarrow.parquet.write_table(table, record.path / "views" / f"part-{name}.parquet")
    [seen] = record.read(strict=True).values()
    assert seen.ranking.cost.seconds == 0.1


@pytest.mark.parametrize("first", ["ok", "failed"])
def test_a_failure_that_was_tried_again_contradicts_nothing(record: Record, first: str) -> None:
    record.append([seen(0, status=first)])
    record.append([seen(0, status="ok" if first == "failed" else "failed")])
    assert [each.ranking.status for each in record.read(strict=True).values()] == ["ok"]


def test_torn_and_foreign_files_are_named(record: Record) -> None:
    record.append([seen()])
    whole = parts(record)[0].read_bytes()
    strange = record.path / "views" / "part-strange.parquet"
    for content in (whole[: len(whole) // 2], whole[:-8] + bytes(8), b"", b"no parquet at all"):
        strange.write_bytes(content)
        with pytest.raises(InvariError) as caught:
            record.read()
        assert str(caught.value).startswith(f"{strange}: torn, or not a file of records (")
        assert "\n" not in str(caught.value)
    pyarrow.parquet.write_table(pa.table({"query_id": ["q0"], "x": [1]}), strange)
    with pytest.raises(
        InvariError, match=r"part-strange\.parquet: not a file of records, it lacks dataset, view"
    ):
        record.read()


def test_a_damaged_page_is_no_silent_data(record: Record) -> None:
    record.append([seen(query) for query in range(50)])
    path = parts(record)[0]
    whole = path.read_bytes()
    before = record.read()
    refused = 0
    for place in range(4, len(whole) - 8, 61):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        found = outcome(record)
        # The rest are bytes that nothing depends on: padding, or the name of the writer.
        assert found == before or str(path) in str(found)
        refused += found != before
    assert refused > 20


def outcome(record: Record) -> object:
    try:
        return record.read()
    except InvariError as error:
        return error


@pytest.mark.parametrize("content", ["{", "[]", "null", '{"format": "other/1"}', "\x00"])
def test_a_manifest_of_something_else_is_named(folder: RecordFolder, record: Record, content: str) -> None:
    (record.path / "manifest.json").write_text(content)
    with pytest.raises(InvariError, match=r"manifest\.json: (cannot be read as|not a manifest of)"):
        folder.find(SUBJECT, {"reranker": "sgs"})


def test_an_edited_manifest_is_refused(folder: RecordFolder, record: Record) -> None:
    path = record.path / "manifest.json"
    path.write_text(path.read_text().replace("2.13.0", "2.12.0"))
    with pytest.raises(InvariError, match=r"manifest\.json: was changed after it was written"):
        folder.find(SUBJECT, {"reranker": "sgs"})


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("")
    with pytest.raises(InvariError, match="records: is a file; records need a folder"):
        RecordFolder(tmp_path / "records").check()


def test_no_secret_is_stored(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "sk-from-environment")
    project.write_tasks("few.jsonl", queries=2, k=3)
    (project.path / "secret_shop.py").write_text(
        "import os\n"
        "def make(api_key: str = '', depth: int = 1):\n"
        "    def rank(context, texts):\n"
        "        raise OSError('refused ' + os.environ['SHOP_API_KEY'] + ' api_key=' + api_key)\n"
        "    return rank\n"
    )
    from pytest_invari.registry.spec import RerankerSpec

    spec = RerankerSpec.parse("secret_shop:make:api_key=sk-from-option,depth=3")
    plan = project.plan(str(project.path / "few.jsonl"), k=3, views=2)
    measured = project.runner().measure(Subject(spec, plan))
    assert measured.failure_count == 4
    for path in project.records.rglob("*"):
        text = path.name.encode() + (path.read_bytes() if path.is_file() else b"")
        if path.suffix == ".parquet" and path.name.startswith("part-"):
            text += str(pyarrow.parquet.ParquetFile(path).read().to_pylist()).encode()
        assert b"sk-from-" not in text
    manifest = json.loads(next(project.records.glob("*/manifest.json")).read_text())
    assert (manifest["asked.option.api_key"], manifest["asked.option.depth"]) == ("(hidden)", "3")


def test_what_others_hold_of_equal_tasks_is_taken_over(folder: RecordFolder) -> None:
    from tests.measure.conftest import make_tasks

    def opened(queries: int, **more: str) -> Record:
        tasks = make_tasks(queries)
        manifest = Manifest(
            {"reranker": "sgs", "queries": queries, "tasks_sha256": tasks.sha256}, {"prompt": "p1"} | more
        )
        return folder.open(SUBJECT, manifest, tasks)

    def of(number: int, status: str = "ok") -> Observation:
        return replace(seen(number, status=status), query_id=f"query{number}")

    few, some, other = opened(2), opened(3), opened(4, prompt="p2")
    few.append([of(0, "failed"), of(1)])
    some.append([of(0), of(2)])
    other.append([of(3)])
    many = opened(5)
    assert {each.path for each in folder.siblings(many)} == {few.path, some.path}
    many.append([of(1, "failed")])
    wanted = {(f"query{number}", f"seed0.{number}") for number in (0, 1, 3)}
    many.take_over(folder.siblings(many), make_tasks(5), wanted)
    found = {seen.query_id: seen.ranking.status for seen in many.read().values()}
    assert found == {"query0": "ok", "query1": "failed"}
    assert all(seen.from_records for seen in many.read().values())
    # Where nothing is missing, others are not read.
    (few.path / "tasks.parquet").unlink()
    before = parts(many)
    many.take_over([few], make_tasks(5), {("query0", "seed0.0")})
    assert parts(many) == before
