"""Task files keep every character of a task set, and refuse a bad row with its place."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_invari.errors import InvariError
from pytest_invari.protocol import Candidate, Context, HistoryEntry
from pytest_invari.registry.registry import Registry
from pytest_invari.tasks.task import Task, TaskSet, content_hash
from pytest_invari.tasks.taskfile import read_tasks, write_tasks
from tests.tasks.conftest import sample_task

ENDINGS = (".parquet", ".jsonl")

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
ratings = st.none() | st.floats(allow_nan=False, allow_infinity=False)
grades = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def tasks(draw: st.DrawFn, query_id: str) -> Task:
    ids = draw(st.lists(texts, min_size=1, max_size=4, unique=True))
    relevance = draw(st.dictionaries(st.sampled_from(ids), grades))
    return Task(
        query_id,
        Context(
            draw(st.just("") | texts),
            tuple(draw(st.lists(st.builds(HistoryEntry, texts, ratings), max_size=3))),
        ),
        tuple(
            Candidate(item, draw(texts), draw(st.dictionaries(texts, json_values, max_size=2)))
            for item in ids
        ),
        relevance,
        len(relevance) + draw(st.integers(0, 5)),
        draw(st.dictionaries(st.sampled_from(ids), texts)),
    )


@st.composite
def task_sets(draw: st.DrawFn) -> TaskSet:
    query_ids = draw(st.lists(texts, min_size=1, max_size=3, unique=True))
    return TaskSet.of("drawn", [draw(tasks(query_id)) for query_id in query_ids])


@given(task_set=task_sets())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_round_trip_keeps_tasks_and_hash_in_both_formats(task_set: TaskSet, tmp_path: Path) -> None:
    for ending in ENDINGS:
        path = tmp_path / f"tasks{ending}"
        write_tasks(path, task_set)
        assert read_tasks(path, "drawn") == task_set


ODD = [
    "a\u2028b\u2029c\x85d",  # line ends to str.splitlines, ordinary characters to JSON Lines
    "\x00 and \x1f",
    "e\u0301 is not \u00e9",
    "\ufeffmark",
    "\U0001f3ac \u202eright to left\u202c",
    '"quoted", \\ and \t tab \r\n line',
]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("text", ODD)
def test_round_trip_keeps_odd_unicode(text: str, ending: str, tmp_path: Path) -> None:
    task = Task(
        text,
        Context(text, (HistoryEntry(text, 0.5),)),
        (Candidate(text, text, {text: text}),),
        {text: 1.0},
        1,
    )
    write_tasks(tmp_path / f"odd{ending}", TaskSet.of("odd", [task]))
    assert read_tasks(tmp_path / f"odd{ending}").tasks == (task,)


def row(**changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "query_id": "q1",
        "text": None,
        "history": [{"text": "Heat (1995)", "rating": 4.5}],
        "candidates": [candidate(), candidate(id="c2", text="Ronin (1998)", relevance=None, group="tail")],
        "relevant_total": 3,
    }
    return {key: value for key, value in (whole | changes).items() if value != "absent"}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def candidate(**changes: Any) -> dict[str, Any]:
    whole = {"id": "c1", "text": "Fargo (1996)", "relevance": 1.0, "group": "head", "meta": None}
    return {key: value for key, value in (whole | changes).items() if value != "absent"}


def write_lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(InvariError) as caught:
        read_tasks(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_optional_keys_may_be_absent_and_default(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "small.jsonl", {"query_id": "q", "candidates": [{"id": "a", "text": "A"}]})
    assert read_tasks(path) == TaskSet.of("small", [Task("q", Context(), (Candidate("a", "A"),))])


def test_grade_zero_is_no_grade_and_total_defaults_to_those_in_the_list(tmp_path: Path) -> None:
    rows = [candidate(relevance=2), candidate(id="c2", relevance=0)]
    task = read_tasks(
        write_lines(tmp_path / "t.jsonl", row(candidates=rows, relevant_total=None, history="absent"))
    ).tasks[0]
    assert (dict(task.relevance), task.relevant_total) == ({"c1": 2.0}, 1)


def test_query_without_relevant_items_is_kept_and_counted(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "t.jsonl", row(), row(query_id="q2", candidates=[candidate(relevance=0)], relevant_total=0)
    )
    task_set = read_tasks(path)
    assert len(task_set.tasks) == 2
    assert task_set.without_relevant == 1


def test_a_file_as_windows_editors_write_it_holds_the_same_tasks(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "t.jsonl", row(), row(query_id="q2", candidates=[candidate(meta=nested(51))])
    )
    plain = read_tasks(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_tasks(path) == plain


def test_blank_lines_and_a_byte_order_mark_are_ignored_and_lines_still_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(row()).encode() + b"\r\n\n" + b'{"query_id": 7}\n')
    assert refusal(path) == "line 3: query_id must be text, not a number (7)"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [row(), row()],
            "line 2: query id 'q1' was used before (line 1); every query needs an id of its own",
        ),
        ([row(candidates=[candidate(), candidate()])], "line 1, query 'q1', candidate 'c1': stands twice"),
        ([row(candidates=[candidate(text="absent")])], "line 1, query 'q1', candidate 'c1': has no text"),
        ([row(candidates=[candidate(text=" \t")])], "line 1, query 'q1', candidate 'c1': text is blank"),
        ([row(candidates=[candidate(id=3)])], "candidate 1: id must be text, not a number (3)"),
        ([row(candidates=[candidate(relevance=-1)])], "candidate 'c1': relevance is -1; a grade is 0"),
        (
            [row(candidates=[candidate(relevance=True)])],
            "relevance must be a number or null, not true",
        ),
        (
            [row(candidates=[candidate(relevance="high")])],
            "relevance must be a number or null, not text ('high')",
        ),
        ([row(candidates=[candidate(relevance=10**400)])], "relevance is too large; it must be finite"),
        (
            [row(candidates=[candidate(relevance=[1])])],
            "relevance must be a number or null, not a list ([1])",
        ),
        ([row(candidates=[candidate(meta=nested(52))])], "meta is nested deeper than 50 levels"),
        ([row(relevant_total=2**63)], "relevant_total is larger than any count can be"),
        ([row(relevant_total=-1)], "relevant_total is -1, but 1 candidate is relevant"),
        ([row(relevant_total=True)], "relevant_total must be an integer or null, not true"),
        (
            [row(query_id="q" * 99, text=5)],
            f"line 1, query 'q{'q' * 35}...: text must be text, not a number (5)",
        ),
        ([row(candidates=[candidate(group=1)])], "group must be text, not a number (1)"),
        ([row(candidates=[candidate(meta=[1])])], "meta must be a JSON object or null, not a list ([1])"),
        ([row(candidates=[candidate(meta="{")])], "candidate 'c1': meta is not JSON"),
        ([row(candidates=[candidate(text="\ud800")])], "text holds half a surrogate pair (U+D800)"),
        ([row(candidates=[candidate(meta={"a": "\udfff"})])], "meta cannot be written as JSON"),
        ([row(candidates=[candidate(url="x")])], "unknown key 'url'. Known: group, id, meta"),
        ([row(candidates=[candidate(relevence=1)])], "unknown key 'relevence'. Did you mean 'relevance'?"),
        ([row(candidates=["c1"])], "candidate 1: a candidate must be an object with the keys"),
        ([row(candidates={"c1": "x"})], "candidates must be a list, not an object"),
        ([row(candidates=[])], "line 1, query 'q1': candidates is empty; there is nothing to rank"),
        ([row(candidates="absent")], "line 1, query 'q1': has no candidates"),
        ([row(query_id="absent")], "line 1: has no query_id"),
        ([row(query_id="")], "line 1: query_id is blank"),
        ([row(querry_id="q")], "line 1: unknown key 'querry_id'. Did you mean 'query_id'?"),
        ([row(history=[{"text": None}])], "line 1, query 'q1', history entry 1: has no text"),
        (
            [row(history=[{"text": "Heat", "rating": "5"}])],
            "history entry 1: rating must be a number or null",
        ),
        ([row(relevant_total=0)], "relevant_total is 0, but 1 candidate is relevant"),
        ([row(relevant_total=1.5)], "relevant_total must be an integer or null, not a number (1.5)"),
        ([["q1"]], "line 1: a task must be an object with the keys query_id, text, history"),
    ],
)
def test_bad_row_is_refused_with_its_place(rows: list[Any], message: str, tmp_path: Path) -> None:
    assert message in refusal(write_lines(tmp_path / "bad.jsonl", *rows))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"query_id": "q"', "line 2: is not JSON (Expecting ',' delimiter, column 17); each line is one"),
        (b"[", "line 2: is not JSON (Expecting value, column 2); each line is one whole query"),
        (
            b'{"relevant_total": ' + b"9" * 5000 + b"}",
            "line 2: a number of 5,000 digits is too long to be read",
        ),
        (b'{"relevant_total": -Infinity}', "line 2: -Infinity is not a JSON number"),
        (b'{"query_id": "q", "query_id": "r"}', "line 2: key 'query_id' stands twice in one object"),
        (b'{"relevant_total": NaN}', "line 2: NaN is not a JSON number"),
        (b'{"query_id": "\xff"}', "line 2: is not UTF-8 text (byte 15); save the file as UTF-8"),
        (b"[" * 100_000, "line 2: is nested too deeply to be a task"),
    ],
)
def test_broken_line_is_refused_with_its_number(line: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_bytes(json.dumps(row()).encode() + b"\n" + line + b"\n")
    assert refusal(path).startswith(message)


def test_parquet_errors_name_the_row_query_and_candidate(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    rows = [row(), row(query_id="q2", candidates=[candidate(text=None)])]
    pq.write_table(pa.Table.from_pylist(rows), path)
    assert refusal(path) == "row 2, query 'q2', candidate 'c1': has no text"


def test_parquet_written_by_others_with_other_types_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    one = {"query_id": "q", "candidates": [{"id": "a", "text": "A", "relevance": 2, "meta": {"year": 1995}}]}
    pq.write_table(pa.Table.from_pylist([one]), path)
    task = read_tasks(path).tasks[0]
    assert (task.relevance, task.candidates[0].meta) == ({"a": 2.0}, {"year": 1995})


def parquet_with(**columns: pa.Array) -> pa.Table:
    candidates = pa.array([[{"id": "a", "text": "A"}]] * 2)
    return pa.table({"query_id": pa.array(["q", "r"]), "candidates": candidates} | columns)


def raw_text(*values: bytes) -> pa.Array:
    """Text of any bytes, as a careless writer may leave it."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def candidates_of(*fields: tuple[str, pa.Array]) -> pa.Table:
    """Two queries with one candidate each."""
    names, values = zip(*fields, strict=True)
    return parquet_with(
        candidates=pa.ListArray.from_arrays([0, 1, 2], pa.StructArray.from_arrays(values, names))
    )


PLAIN = pa.array(["a", "b"])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (parquet_with(text=raw_text(b"fine", b"caf\xe9")), "row 2: is not UTF-8 text"),
        (candidates_of(("id", PLAIN), ("text", raw_text(b"a", b"\xff"))), "row 2: is not UTF-8 text"),
        (candidates_of(("id", PLAIN), ("text", PLAIN), ("text", PLAIN)), "row 1: cannot be read ("),
        (
            candidates_of(("id", PLAIN), ("text", PLAIN), ("relevance", pa.array([1.0, math.nan]))),
            "row 2, query 'r', candidate 'b': relevance is nan; it must be finite",
        ),
        (
            parquet_with(text=pa.array([None, 0], pa.date32())),
            "row 2, query 'r': text must be text, not date",
        ),
        (parquet_with(text=pa.array([None, 2**30], pa.date32())), "row 2: cannot be read ("),
        (parquet_with(query_id=pa.array([1, 2])), "row 1: query_id must be text, not a number (1)"),
        (
            parquet_with(relevant_total=pa.array([1, 2**63], pa.uint64())),
            "row 2, query 'r': relevant_total is larger than any count can be",
        ),
        (parquet_with().append_column("query_id", PLAIN), "column 'query_id' stands twice"),
    ],
)
def test_parquet_of_careless_writers_is_refused_in_one_line(
    table: pa.Table, message: str, tmp_path: Path
) -> None:
    pq.write_table(table, tmp_path / "odd.parquet")
    assert refusal(tmp_path / "odd.parquet").startswith(message)


def test_parquet_with_an_unknown_column_is_refused_with_a_guess(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(pa.Table.from_pylist([{"query": "q", "candidate": []}]), path)
    assert refusal(path).startswith("unknown column 'query'. Did you mean 'query_id'?")


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:-9], lambda data: data[:200] + data[210:]]
)
def test_damaged_parquet_is_refused(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_tasks(path, TaskSet.of("t", [Task("q", Context("x"), (Candidate("a", "A" * 500),))]))
    path.write_bytes(damage(path.read_bytes()))
    assert refusal(path).startswith("is not a Parquet file that can be read (")


def test_single_damaged_byte_in_the_data_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_tasks(path, TaskSet.of("t", [sample_task()]))
    data = bytearray(path.read_bytes())
    end = int(pq.ParquetFile(path).metadata.row_group(0).column(0).total_compressed_size)
    data[4 + end - 2] ^= 1
    path.write_bytes(data)
    assert refusal(path).startswith("is not a Parquet file that can be read (")


def test_empty_files_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([row()]).slice(0, 0), tmp_path / "none.parquet")
    (tmp_path / "none.jsonl").write_text("\n")
    for ending in ENDINGS:
        assert refusal(tmp_path / f"none{ending}") == "holds no tasks; a task file needs at least one row"


def test_missing_file_folder_and_other_ending_are_refused(tmp_path: Path) -> None:
    for ending in ENDINGS:
        (tmp_path / f"folder{ending}").mkdir()
        assert refusal(tmp_path / f"absent{ending}") == "there is no such file"
        assert refusal(tmp_path / f"folder{ending}") == "is a folder; a task file is one file"
    assert refusal(tmp_path / "tasks.csv").startswith(
        "a task file ends in .jsonl (one query a line) or .parquet, not in '.csv'; MovieLens data is a folder"
    )


def test_what_the_system_cannot_read_is_told(tmp_path: Path) -> None:
    for ending, message in {
        ".jsonl": "cannot be read (",
        ".parquet": "is not a Parquet file that can be",
    }.items():
        # Reading this file is an error of the system, also for the superuser.
        (tmp_path / f"locked{ending}").symlink_to("/proc/self/mem")
        assert refusal(tmp_path / f"locked{ending}").startswith(message)


@pytest.mark.parametrize("name", ["tasks.json", "tasks.txt", "tasks"])
def test_a_task_file_of_another_ending_is_not_taken_for_films(name: str, tmp_path: Path) -> None:
    write_lines(tmp_path / name, row())
    with pytest.raises(InvariError) as caught:
        Registry(tmp_path).load_tasks(name, k=2)
    ending = repr(Path(name).suffix)
    assert f"{name}: a task file ends in .jsonl (one query a line) or .parquet, not in {ending}" in str(
        caught.value
    )


def test_a_folder_or_zip_without_films_is_told_what_belongs_in_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    write_lines(tmp_path / "folder" / "tasks.jsonl", row())
    write_lines(tmp_path / "broken.zip", row())
    for name in ("folder", "broken.zip"):
        with pytest.raises(
            InvariError, match=r"ratings\.csv .* movies\.csv .*, or a task file, which ends in"
        ):
            Registry(tmp_path).load_tasks(name, k=2)


@pytest.mark.parametrize(
    "name", ["absent.json", "absent.zip", "./absent", "~nobody-of-this-name/x", "a" * 5000 + ".jsonl"]
)
def test_a_path_that_leads_nowhere_is_told(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvariError, match="there is no such file or folder"):
        Registry(tmp_path).load_tasks(name, k=2)


def test_description_travels_in_parquet_and_the_name_is_the_files(tmp_path: Path) -> None:
    write_tasks(tmp_path / "kept.parquet", TaskSet.of("other", [sample_task()], "sämtliche Filme"))
    task_set = read_tasks(tmp_path / "kept.parquet")
    assert (task_set.name, task_set.description) == ("kept", "sämtliche Filme")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"relevance": {"z": 1.0}}, "a relevance grade for 'z', which is not among its candidates"),
        ({"groups": {"z": "head"}}, "a group for 'z', which is not among its candidates"),
        ({"relevance": {"a": -1.0}}, "relevance is -1"),
        ({"relevant_total": 1}, "relevant_total is 1, but 2 candidates are relevant"),
        ({"candidates": (Candidate("a", ""), Candidate("d", "D"))}, "candidate 'a': text is blank"),
    ],
)
@pytest.mark.parametrize("ending", ENDINGS)
def test_tasks_from_code_are_checked_before_writing(
    changes: dict[str, Any], message: str, ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"t{ending}"
    task_set = TaskSet("t", (sample_task(**changes),), "no hash is needed here")
    with pytest.raises(InvariError, match=message):
        write_tasks(path, task_set)
    assert not path.exists()


def test_meta_that_json_cannot_hold_is_refused(tmp_path: Path) -> None:
    task = Task("q", Context(), (Candidate("a", "A", {"year": float("nan")}),))
    with pytest.raises(InvariError, match="query 'q' cannot be written as JSON"):
        content_hash([task])
    with pytest.raises(InvariError, match="candidate 'a': meta cannot be written as JSON"):
        write_tasks(tmp_path / "t.jsonl", TaskSet("t", (task,), ""))


def test_same_query_id_twice_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvariError, match="query id 'q' is used by two tasks"):
        write_tasks(tmp_path / "t.jsonl", TaskSet.of("t", [sample_task(), sample_task()]))


@pytest.mark.parametrize("ending", ENDINGS)
def test_failed_write_leaves_the_old_file_and_nothing_beside_it(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"t{ending}"
    write_tasks(path, TaskSet.of("t", [sample_task()]))
    before = path.read_bytes()

    def fail(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InvariError, match=r"cannot be written \(disk full\)"):
        write_tasks(path, TaskSet.of("t", [sample_task(query_id="other")]))
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
