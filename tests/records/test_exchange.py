"""Rankings as JSON Lines: what is exported is imported, judged alike, and exported again byte for byte."""

# ruff: noqa: E501  # a table reads better with a case a line

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.errors import InvariError
from pytest_invari.measure.subject import Subject
from pytest_invari.observation.observation import Observation
from pytest_invari.protocol import Cost, Ranking
from pytest_invari.records.__main__ import main
from pytest_invari.records.exchange import export_rankings, import_rankings
from pytest_invari.records.jsonl import read_rankings, write_rankings
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import TaskSet
from pytest_invari.tasks.taskfile import read_tasks

if TYPE_CHECKING:
    from tests.measure.conftest import ById, Project

BIASED = RerankerSpec.parse("biased:beta=0.8,noise=0.3")
BANK = ("canonical", "13", "17", "19")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(str.strip)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
COUNT = st.integers(0, 2**40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | FINITE | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
VIEW = (
    st.just("canonical")
    | st.integers(0, 99).map(str)
    | st.builds("seed{}.{}".format, st.integers(0, 9), st.integers(0, 99))
    | st.just("seed0.0.alone")
)


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    shown = tuple(draw(st.lists(TEXT, min_size=1, max_size=5, unique=True)))
    tokens = draw(COUNT)
    cost = Cost(
        draw(COUNT), draw(COUNT), tokens, draw(st.integers(0, tokens)), draw(COUNT), draw(st.floats(0, 1e6))
    )
    diagnostics = draw(st.dictionaries(TEXT.filter(lambda key: key != "labels"), JSON, max_size=3))
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
    return Observation(draw(TEXT), draw(VIEW), shown, ranking)


@settings(max_examples=60, deadline=None)
@given(st.lists(observations(), min_size=1, max_size=4, unique_by=lambda seen: seen.key))
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, seen: list[Observation]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "mine.jsonl"
    write_rankings(path, seen)
    lines = read_rankings(path)
    assert [line.seen for line in lines] == seen
    assert [line.place for line in lines] == [f"{path}: line {n}" for n in range(1, len(seen) + 1)]
    again = path.with_name("again.jsonl")
    write_rankings(again, (line.seen for line in lines))
    assert again.read_bytes() == path.read_bytes()


def test_a_line_says_one_view(tmp_path: Path) -> None:
    ranking = Ranking(("b", "a"), (2.0, 1.0), Cost(1, 1, 50, 20, 2, 0.5), diagnostics={"entropy": 0.5})
    write_rankings(tmp_path / "mine.jsonl", [Observation("q1", "13", ("a", "b"), ranking)])
    assert json.loads((tmp_path / "mine.jsonl").read_text()) == {
        "query_id": "q1", "view": "13", "input": ["a", "b"], "output": ["b", "a"], "scores": [2.0, 1.0],
        "status": "ok",
        "cost": {"calls": 1, "depth": 1, "tokens_in": 50, "tokens_cached": 20, "tokens_out": 2, "seconds": 0.5},
        "diagnostics": {"entropy": 0.5},
    }  # fmt: skip


def test_what_a_line_leaves_out_is_that_of_a_ranking_that_says_no_more(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [
        {"query_id": "q", "view": 13, "input": ["a", "b"], "output": ["b", "a"]},
        {"query_id": "q", "view": "17", "input": ["b", "a"], "output": ["b", "a"], "cost": {"tokens_in": 7, "seconds": 2}},
        {"query_id": "q", "view": "canonical", "input": ["a", "b"], "status": "failed"},
    ]  # fmt: skip
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n\r\n".join(map(json.dumps, rows)).encode())
    assert [line.seen for line in read_rankings(path)] == [
        Observation("q", "13", ("a", "b"), Ranking(("b", "a"))),
        Observation("q", "17", ("b", "a"), Ranking(("b", "a"), cost=Cost(1, 1, tokens_in=7, seconds=2.0))),
        Observation("q", "canonical", ("a", "b"), Ranking((), None, Cost(), "failed")),
    ]
    assert [line.number for line in read_rankings(path)] == [1, 3, 5]


GOOD: dict[str, Any] = {"query_id": "q", "view": "canonical", "input": ["a", "b"], "output": ["b", "a"]}
SEEN = "query 'q', view 'canonical' (the data set's own order): "
WRONG: list[tuple[Any, str]] = [
    ([], "must be an object with the keys query_id, view, input, output, scores, status, cost, diagnostics"),
    ({"views": 1}, "unknown key 'views'. Did you mean 'view'?"),
    ({"query_id": None}, "query_id must be a text that is not blank, not null"),
    ({"query_id": 17}, "query_id must be a text that is not blank, not 17"),
    ({"query_id": " "}, 'query_id must be a text that is not blank, not " "'),
    ({"query_id": "\ud800"}, "query_id holds half a surrogate pair ('\\ud800')"),
    ({"view": None}, 'view must be "canonical" (the data set\'s own order) or a seed that names another, such as 13, not null'),
    ({"view": "first"}, "view must be \"canonical\" (the data set's own order) or a seed that names another, such as 13, not \"first\""),
    ({"view": True}, "view must be"),
    ({"view": -1}, "view must be"),
    ({"view": 1.0}, "view must be"),
    ({"view": "013"}, "view must be"),
    ({"input": None}, SEEN + "input must be a list of ids, not null"),
    ({"input": "ab"}, SEEN + 'input must be a list of ids, not "ab"'),
    ({"input": []}, SEEN + "input is empty; there was nothing to rank"),
    ({"input": ["a", 1]}, SEEN + "each id of input must be a text that is not blank, not 1"),
    ({"input": ["a", "b", "a"]}, SEEN + "input shows 'a' twice"),
    ({"output": None}, SEEN + 'has no output; for a ranking that failed say "status": "failed"'),
    ({"output": ["a"]}, SEEN + "output of 1 id for 2 candidates lacks 'b'"),
    ({"output": ["a", "a"]}, SEEN + "output of 1 id for 2 candidates repeats 'a', lacks 'b'"),
    ({"output": ["a", "c"]}, SEEN + "output of 2 ids for 2 candidates has unknown 'c', lacks 'b'"),
    ({"output": {"a": 1}}, SEEN + "output must be a list of ids, not"),
    ({"scores": [1]}, SEEN + "scores must be a list of 2 finite numbers, one an id of output"),
    ({"scores": [2, "1"]}, SEEN + "scores must be a list of 2 finite numbers"),
    ({"scores": [True, False]}, SEEN + "scores must be a list of 2 finite numbers"),
    ({"scores": [10**400, 1]}, SEEN + "scores must be a list of 2 finite numbers"),
    ({"scores": [1, 2]}, SEEN + "scores do not fall; they are aligned with output, which is best first"),
    ({"status": "excellent"}, SEEN + "status must be one of ok, partial, repaired, failed, not 'excellent'"),
    ({"status": ["ok"]}, SEEN + "status must be one of ok, partial, repaired, failed, not ['ok']"),
    ({"cost": 3}, SEEN + "cost must be an object with the keys calls, depth, tokens_in, tokens_cached, tokens_out, seconds"),
    ({"cost": {"call": 3}}, SEEN + "cost: unknown key 'call'. Did you mean 'calls'?"),
    ({"cost": {"calls": -1}}, SEEN + "cost: calls cannot be -1"),
    ({"cost": {"calls": 1.5}}, SEEN + "cost: calls cannot be 1.5"),
    ({"cost": {"calls": "1"}}, SEEN + 'cost: calls cannot be "1"'),
    ({"cost": {"calls": True}}, SEEN + "cost: calls cannot be true"),
    ({"cost": {"calls": 10**30}}, SEEN + "cost: calls cannot be 1000000000"),
    ({"cost": {"calls": 1e30}}, SEEN + "cost: calls cannot be 1e+30"),
    ({"cost": {"tokens_in": 5, "tokens_cached": 6}}, SEEN + "cost: tokens_cached (6) cannot exceed tokens_in (5)"),
    ({"diagnostics": [1]}, SEEN + "diagnostics must be an object, not [1]"),
    ({"diagnostics": {"labels": ["A", "B"]}}, SEEN + 'diagnostics: labels says how labels were bound (item, position, redrawn), and cannot be ["A", "B"]; call it something else'),
    ({}, "query 'q', view 'canonical' (the data set's own order) is there already, at line 1; a view is ranked once"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "message"), WRONG)
def test_a_mistake_in_a_line_is_told_with_file_and_line(tmp_path: Path, changed: Any, message: str) -> None:
    path = tmp_path / "mine.jsonl"
    row = GOOD | changed if isinstance(changed, dict) else changed
    path.write_text(f"{json.dumps(GOOD)}\n\n{json.dumps(row)}\n")
    with pytest.raises(InvariError) as caught:
        read_rankings(path)
    assert str(caught.value).startswith(f"{path}: line 3: {message}")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ": holds no rankings; each line is one view of one query"),
        (b"\n \n", ": holds no rankings"),
        (b'{"query_id": "q",', ": line 1: is not JSON ("),
        (b'{"query_id": NaN}', ": line 1: is not JSON (NaN is not a JSON number)"),
        (b'{"view": 1, "view": 2}', ": line 1: is not JSON (key 'view' stands twice in one object)"),
        (b'{"query_id": "\xff"}', ": line 1: is not UTF-8 text; save the file as UTF-8"),
        (b'{"diagnostics": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", ": line 1: is nested too deeply"),
    ],
    ids=["empty", "blank", "torn", "NaN", "twice", "bytes", "deep"],
)
def test_what_is_no_file_of_rankings_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(content)
    with pytest.raises(InvariError) as caught:
        read_rankings(path)
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


def test_scores_that_json_cannot_hold_are_named(tmp_path: Path) -> None:
    seen = Observation("q1", "13", ("a", "b"), Ranking(("b", "a"), (float("inf"), 1.0)))
    with pytest.raises(
        InvariError, match=r"^query 'q1', view '13' \(the order of seed 13\): JSON cannot hold"
    ):
        write_rankings(tmp_path / "mine.jsonl", [seen])
    assert not (tmp_path / "mine.jsonl").exists()


# Folders


def test_records_go_out_and_come_back_and_are_judged_alike(project: Project) -> None:
    project.write_tasks(k=6)
    plan = project.plan(k=6, views=0, bank=BANK)
    measured = project.runner().measure(Subject(BIASED, plan))
    out, back = project.path / "out.jsonl", project.path / "back"
    export_rankings(project.records, out)
    record = import_rankings(out, back, reranker=BIASED.label, tasks=project.path / "films.jsonl")
    assert record.path.name.startswith("biased_beta=0.8_noise=0.3-films-K6-")
    project.records = back
    again = project.runner(replay=True).measure(Subject(BIASED, plan))
    assert again.observations == measured.observations
    assert again.tasks == measured.tasks
    assert again.interval("loc") == measured.interval("loc")
    assert again.interval("ndcg@2") == measured.interval("ndcg@2")
    for folder in (back, record.path):
        export_rankings(folder, project.path / "again.jsonl")
        assert (project.path / "again.jsonl").read_bytes() == out.read_bytes()


def test_an_export_replaces_rankings_and_nothing_else(project: Project) -> None:
    project.runner().measure(Subject(BIASED, project.plan()))
    out = project.path / "out.jsonl"
    for there in (b"", b"\n"):
        out.write_bytes(there)
        export_rankings(project.records, out)
    export_rankings(project.records, out)
    [tasks] = project.records.glob("*/tasks.parquet")
    mine = project.path / "mine.jsonl"
    mine.write_text('{"query_id": "q", "candidates": [{"id": "a", "text": "A"}]}\n')
    for file in (tasks, mine):
        before = file.read_bytes()
        with pytest.raises(InvariError, match="holds something else than rankings, and would be replaced"):
            export_rankings(project.records, file)
        assert file.read_bytes() == before


def test_an_export_does_not_depend_on_how_the_records_came_about(project: Project, by_id: type[ById]) -> None:
    project.write_tasks(k=6)
    grown, whole = project.path / "grown", project.path / "whole"
    written = []
    for records, banks in ((grown, (BANK[2:], BANK[:1], BANK)), (whole, (BANK,))):
        project.records = records
        for bank in banks:
            plan = project.plan(k=6, views=0, bank=bank)
            project.runner({"mine": by_id()}).measure(Subject(RerankerSpec("mine"), plan))
        export_rankings(records, project.path / "out.jsonl")
        written.append(timeless((project.path / "out.jsonl").read_text()))
    assert written[0] == written[1]
    assert [row["view"] for row in written[0][:5]] == ["canonical", "13", "17", "19", "canonical"]


def timeless(text: str) -> list[Any]:
    rows = [json.loads(line) for line in text.splitlines()]
    for row in rows:
        row["cost"].pop("seconds")
    return rows


def elsewhere(tasks: TaskSet, bank: Iterable[str] = BANK, seed: int = 7) -> list[dict[str, Any]]:
    """Rankings as somebody else would write them: by their own shuffles, in no particular order."""
    draw = random.Random(seed)
    rows = []
    for task in tasks.tasks:
        for view in bank:
            shown = list(task.ids)
            if view != "canonical":
                draw.shuffle(shown)
            output = draw.sample(shown, len(shown))
            name = int(view) if view.isdecimal() else view
            rows.append({"query_id": task.query_id, "view": name, "input": shown, "output": output})
    return rows


def write(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_rankings_made_elsewhere_are_judged_in_their_own_orders(project: Project, tasks: TaskSet) -> None:
    rows = elsewhere(tasks)
    random.Random(1).shuffle(rows)
    file = write(project.path / "qwen.jsonl", rows)
    import_rankings(file, project.records, tasks=project.path / "films.jsonl")
    plan = project.plan(views=0, bank=("19", *BANK[:3]), labels="redrawn", blind_ids=True)
    settings = ModelSettings(model="qwen2.5-7b", dtype="bfloat16")
    runner = project.runner(replay=True, settings=settings)
    runner.check(Subject(RerankerSpec("qwen"), plan))
    measured = runner.measure(Subject(RerankerSpec("qwen"), plan))
    expected = {(row["query_id"], str(row["view"])): (row["input"], row["output"]) for row in rows}
    found = {each.key: ([*each.shown], [*each.ranking.order]) for each in measured.observations}
    assert found == expected
    assert [each.view for each in measured.observations[:4]] == ["19", "canonical", "13", "17"]
    assert measured.failure_count == 0
    assert measured.interval("ndcg@2").undefined == 2


def test_without_a_task_file_the_lists_are_known_by_their_ids(project: Project, tasks: TaskSet) -> None:
    file = write(project.path / "qwen.jsonl", elsewhere(tasks))
    import_rankings(file, project.records, dataset="shop")
    plan = project.plan("shop", views=0, bank=BANK)
    measured = project.runner(replay=True).measure(Subject(RerankerSpec("qwen"), plan))
    assert [task.ids for task in measured.tasks.tasks] == [task.ids for task in tasks.tasks]
    assert measured.interval("loc").n == 8
    assert measured.interval("ndcg@2").n == 0
    with pytest.raises(InvariError, match="recorded with 'shop', now 'qwen'"):
        project.runner(replay=True).measure(Subject(RerankerSpec("qwen"), replace(plan, dataset="qwen")))


def test_a_task_file_that_the_rankings_were_imported_without_is_told(
    project: Project, tasks: TaskSet
) -> None:
    file = write(project.path / "qwen.jsonl", elsewhere(tasks))
    import_rankings(file, project.records, dataset="films")
    with pytest.raises(InvariError) as caught:
        project.runner(replay=True).measure(Subject(RerankerSpec("qwen"), project.plan(views=0, bank=BANK)))
    assert "data set 'films' was not there, or another, when they were imported; " in str(caught.value)


def test_a_view_that_the_file_lacks_is_named_in_a_replay(project: Project, tasks: TaskSet) -> None:
    file = write(project.path / "qwen.jsonl", elsewhere(tasks)[:-1])
    import_rankings(file, project.records, tasks=project.path / "films.jsonl")
    with pytest.raises(InvariError) as caught:
        project.runner(replay=True).measure(Subject(RerankerSpec("qwen"), project.plan(views=0, bank=BANK)))
    assert "lacks 1 of 32 views, the first of query 'query7', view '19' (the order of seed 19)" in str(
        caught.value
    )


def test_the_first_lists_of_a_task_file_are_enough(project: Project, tasks: TaskSet) -> None:
    file = write(project.path / "qwen.jsonl", elsewhere(tasks.head(3).at_k(4)))
    import_rankings(file, project.records, tasks=project.path / "films.jsonl")
    plan = project.plan(k=4, queries=3, views=0, bank=BANK)
    assert len(project.runner(replay=True).measure(Subject(RerankerSpec("qwen"), plan)).observations) == 12


def test_importing_a_file_again_changes_nothing_and_another_one_lies_beside_it(
    project: Project, tasks: TaskSet
) -> None:
    file = write(project.path / "qwen.jsonl", elsewhere(tasks))
    for _ in range(2):
        record = import_rankings(file, project.records, tasks=project.path / "films.jsonl")
    assert len(list((record.path / "views").iterdir())) == 1
    write(file, elsewhere(tasks, seed=8))
    import_rankings(file, project.records, tasks=project.path / "films.jsonl")
    with pytest.raises(
        InvariError, match=r"2 records fit qwen-films-K5 and differ in environment\.imported_sha256"
    ):
        project.runner(replay=True).measure(Subject(RerankerSpec("qwen"), project.plan(views=0, bank=BANK)))
    with pytest.raises(
        InvariError, match="records: holds 2 records; name one of these folders: qwen-films-K5"
    ):
        export_rankings(project.records, project.path / "out.jsonl")


def test_a_run_does_not_take_imported_rankings_for_its_own(
    project: Project, tasks: TaskSet, by_id: type[ById]
) -> None:
    project.write_tasks(k=6)
    file = write(project.path / "mine.jsonl", elsewhere(read_tasks(project.path / "films.jsonl")))
    import_rankings(file, project.records, tasks=project.path / "films.jsonl")
    reranker = by_id()
    project.runner({"mine": reranker}).measure(
        Subject(RerankerSpec("mine"), project.plan(k=6, views=0, bank=BANK))
    )
    assert len(reranker.shown) == 32


MISFITS: list[tuple[dict[str, Any], str]] = [
    ({"query_id": "query9"}, "line 6: query 'query9' is not in "),
    ({"input": [*"abcde"], "output": [*"abcde"]}, "line 6: query 'query1' is shown 'a', which it is not at line 5"),
    ({"input": ["item1.0"], "output": ["item1.0"]}, "line 6: query 'query1' is shown 1 candidate, but line 1 shows 5; lists of another length need a file of their own"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "message"), MISFITS)
def test_rankings_that_do_not_fit_are_told_by_file_and_line(
    project: Project, tasks: TaskSet, changed: dict[str, Any], message: str
) -> None:
    rows = elsewhere(tasks)
    rows[5] |= changed
    file = write(project.path / "qwen.jsonl", rows)
    with pytest.raises(InvariError) as caught:
        import_rankings(file, project.records, tasks=project.path / "films.jsonl")
    assert str(caught.value).startswith(f"{file}: {message}")
    assert not project.records.exists()


def test_other_items_or_another_canonical_order_than_the_task_files_are_told(
    project: Project, tasks: TaskSet
) -> None:
    path, file = project.path / "films.jsonl", project.path / "qwen.jsonl"
    rows = elsewhere(tasks)
    turned = [row | {"input": row["input"][::-1]} if row["view"] == "canonical" else row for row in rows]
    with pytest.raises(InvariError) as caught:
        import_rankings(write(file, turned), project.records, tasks=path)
    assert str(caught.value) == (
        f"{file}: line 1: query 'query0', view 'canonical' is not in the order of {path}; give the order of that "
        "file, or another name to the view"
    )
    renamed = [
        row | {side: [item.replace("item2.4", "new") for item in row[side]] for side in ("input", "output")}
        for row in rows
    ]
    with pytest.raises(InvariError) as caught:
        import_rankings(write(file, renamed), project.records, tasks=path)
    assert str(caught.value) == (
        f"{file}: line 9: query 'query2' is shown 'new', which is not among its first 5 candidates in {path}"
    )
    with pytest.raises(
        InvariError, match=r"has no ranking of query 'query0' of .*; rank it, or leave it out"
    ):
        import_rankings(write(file, rows[4:]), project.records, tasks=path)


def test_folders_without_one_record_are_told(project: Project) -> None:
    with pytest.raises(InvariError, match="records: holds no records; run once with --invari-records="):
        export_rankings(project.records, project.path / "out.jsonl")
    with pytest.raises(InvariError, match=r"absent\.jsonl: cannot be read"):
        import_rankings(project.path / "absent.jsonl", project.records)
    file = write(project.path / "qwen.jsonl", [GOOD])
    with pytest.raises(InvariError, match=r"films\.jsonl: is a file; records need a folder"):
        import_rankings(file, project.path / "films.jsonl")


# Commands


def test_commands_say_what_they_did_and_how_to_judge(
    project: Project, tasks: TaskSet, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.path)
    write(project.path / "qwen.jsonl", elsewhere(tasks))
    assert main(["import", "qwen.jsonl", "kept", "--tasks=films.jsonl", "--reranker=qwen:size=7b"]) == 0
    done, judge = capsys.readouterr().out.splitlines()
    assert done.startswith(
        "imported 32 rankings of 8 queries by qwen:size=7b on films, K=5, to kept/qwen_size=7b-films-K5-"
    )
    assert judge == (
        "judge them: pytest --invari-suite=SUITE --invari-reranker=qwen:size=7b --invari-dataset=films.jsonl "
        "--invari-k=5 --invari-records=kept --invari-replay"
    )
    assert main(["export", "kept", "out.jsonl"]) == 0
    assert capsys.readouterr().out == (
        "exported 32 rankings of 8 queries by qwen:size=7b on films, K=5, to out.jsonl\n"
    )
    assert main(["export", "kept", "absent/../films.jsonl/x"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: ")
    assert len(told.err.splitlines()) == 1
