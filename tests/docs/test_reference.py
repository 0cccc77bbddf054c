"""The pages of docs/reference: made of what the code declares, or checked against it."""

from __future__ import annotations

import dataclasses
import json
import re
import runpy
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import pytest

from pytest_invari import hookspecs, protocol
from pytest_invari.baseline.file import FORMAT as BASELINE
from pytest_invari.baseline.outcomes import Outcome
from pytest_invari.records import jsonl, rows
from pytest_invari.reports.models import Rerun, Unjudged
from pytest_invari.tasks import taskfile
from tests.docs.test_documentation import ROOT, blocks
from tests.session.conftest import QUIET, write_tasks

FOLDER = ROOT / "docs" / "reference"
GENERATOR = runpy.run_path(str(ROOT / "docs" / "generate.py"))
SUITE = """
[suite]
name = "every_key"
baseline = "random"
report = "gpi"

[profile.quick]
datasets = "tasks.jsonl"
k = 6
views = 5

[[criterion]]
name = "loc"
metric = "loc"
better_than = "baseline"

[[criterion]]
name = "left_out"
metric = "loc"
at_least = 0
needs_views = 6
"""


def table(page: str, head: str) -> dict[str, list[str]]:
    """The rows of the table whose first column is called *head*, by the names in that column."""
    [body] = re.findall(rf"^\| {re.escape(head)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text(page), re.MULTILINE)
    found: dict[str, list[str]] = {}
    for line in body.splitlines():
        first, *others = [cell.strip() for cell in line.strip("|").split(" | ")]
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", first), others)
    return found


def text(page: str) -> str:
    return (FOLDER / page).read_text(encoding="utf-8")


# Made of declarations


def test_the_pages_are_what_the_code_declares() -> None:
    made = GENERATOR["pages"]()
    stale = [name for name, page in made.items() if text(name) != page]
    assert not stale, f"{', '.join(stale)} no longer say what the code declares: {GENERATOR['COMMAND']}"


def test_the_page_of_options_has_what_help_shows(pytester: pytest.Pytester) -> None:
    shown = pytester.runpytest_inprocess(*QUIET, "--help").stdout.str()
    options = set(re.findall(r"--invari-[a-z][a-z-]*", shown))
    keys = set(re.findall(r"^  (invari_[a-z_]+) \(", shown, re.MULTILINE))
    listed = table("command-line.md", "option")
    assert set(listed) == options
    assert {name for row in listed.values() for name in re.findall(r"`(invari_\w+)`", row[1])} == keys


@pytest.mark.parametrize(
    ("status", "arguments"),
    [
        (0, ["--invari-suite=every.invari.toml", "--reranker=first_stage"]),
        (1, ["--invari-suite=every.invari.toml", "--reranker=reverse_input_order"]),
        (4, ["--invari-suite=every.invari.toml", "--reranker=nobody"]),
        (5, ["--invari-suite=every.invari.toml", "--reranker=first_stage", "-k", "nothing"]),
    ],
)
def test_exit_statuses_mean_what_the_page_says(
    pytester: pytest.Pytester, status: int, arguments: list[str]
) -> None:
    assert f"| {status} |" in text("command-line.md")
    prepare(pytester.path)
    assert pytester.runpytest_inprocess(*QUIET, *arguments).ret == status


def prepare(folder: Path) -> None:
    write_tasks(folder / "tasks.jsonl")
    (folder / "every.invari.toml").write_text(SUITE, encoding="utf-8")


def test_a_table_keeps_its_columns_whatever_its_cells_hold() -> None:
    made = GENERATOR["table"](["a", "b"], [["x|y", "two\nlines"]])
    assert made == "| a | b |\n|---|---|\n| x\\|y | two lines |\n"


def test_kinds_of_values_are_said_in_words() -> None:
    words = GENERATOR["words_of"]
    assert words({"enum": ["a", "b"]}) == '`"a"`, `"b"`'
    assert (
        words({"type": "array", "items": {"type": "integer", "minimum": 0}}) == "list of whole number from 0"
    )
    assert words({"anyOf": [{"type": "number"}, {"const": "k"}]}) == 'number or `"k"`'
    with pytest.raises(ValueError, match="no words"):
        words({"type": "null"})


def test_the_examples_of_hooks_work(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_SHA", "5f00c")
    prepare(pytester.path)
    suite = pytester.path / "every.invari.toml"
    kind = '[[criterion]]\nname = "head"\nkind = "stable_head"\noptions = {at_least = 0.7}\n'
    suite.write_text(SUITE.replace("gpi", "top_moves") + kind, encoding="utf-8")
    examples = blocks(FOLDER / "hooks.md", "python")
    assert re.findall(r"^def (pytest_invari_\w+)", "".join(examples), re.MULTILINE) == sorted(
        name for name in vars(hookspecs) if name.startswith("pytest_invari_")
    )
    for number, body in enumerate(examples):
        (pytester.path / f"hook_{number}.py").write_text(body, encoding="utf-8")
    plugins = [word for number in range(len(examples)) for word in ("-p", f"hook_{number}")]
    pytester.syspathinsert()
    run = ["--invari-suite=every.invari.toml", "--reranker=longest_first", "--invari-json=report.json"]
    assert pytester.runpytest_inprocess(*QUIET, *plugins, *run).ret == 0
    report = json.loads((pytester.path / "report.json").read_text(encoding="utf-8"))
    assert report["environment"]["commit"] == "5f00c"
    assert report["subjects"][0]["reranker"] == "longest_first"
    assert report["subjects"][0]["metrics"]["top_moves"]["estimate"] == 0.0


# Written by hand


@pytest.mark.parametrize(
    ("kind", "head"), [(protocol.Request, "field"), (protocol.Ranking, "field"), (protocol.Cost, "field")]
)
def test_every_field_of_the_protocol_is_on_its_page(kind: Any, head: str) -> None:
    section = text("protocol.md").partition(f"## `{kind.__name__}`")[2].partition("\n## ")[0]
    listed = re.findall(
        r"^\| `(\w+)` \|", section.partition(f"| {head} |")[2].partition("\n\n")[0], re.MULTILINE
    )
    assert listed == [field.name for field in dataclasses.fields(kind)]


def test_every_member_of_a_reranker_is_on_its_page() -> None:
    members = table("protocol.md", "member")
    declared = re.findall(r"``(\w+)(?:\(\w*\))?``", protocol.Reranker.__doc__ or "")
    assert {name.partition("(")[0] for name in members} == {*declared, "knows_ids"}
    for value in get_args(protocol.LabelBinding):
        assert f'`"{value}"`' in members["label_binding"][0]


def test_the_examples_of_the_protocol_run() -> None:
    namespace: dict[str, object] = {}
    for body in blocks(FOLDER / "protocol.md", "python"):
        exec(compile(body, "protocol.md example", "exec"), namespace)


def test_the_columns_of_parquet_files_are_on_their_page() -> None:
    tasks, records = taskfile._schema(), rows.schema()
    history, candidates = (tasks.field(name).type.value_type for name in ("history", "candidates"))
    for head, fields in (
        ("column", tasks),
        ("entry of `history`", history),
        ("entry of `candidates`", candidates),
    ):
        listed = table_of("Task files", head)
        assert {name: row[0] for name, row in listed.items()} == types(fields)
    assert {name: row[0] for name, row in table_of("Records", "column").items()} == types(records)


def table_of(section: str, head: str) -> dict[str, list[str]]:
    part = text("files.md").partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows_of = part.partition(f"| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = ([cell.strip() for cell in row.strip("|").split(" | ")] for row in rows_of)
    return {first.strip("`"): others for first, *others in cells}


def types(fields: Iterable[Any]) -> dict[str, str]:
    return {
        field.name: re.sub(r"<(?:element|item): (struct|\w+).*", r"<\1>", str(field.type)) for field in fields
    }


def test_the_keys_of_exchanged_rankings_are_on_their_page() -> None:
    listed = table_of("Rankings to exchange", "key")
    assert tuple(listed) == jsonl.KEYS
    assert re.findall(r"`(\w+)`", listed["cost"][2]) == list(jsonl.COST)


def test_every_key_of_a_report_is_on_its_page(pytester: pytest.Pytester) -> None:
    prepare(pytester.path)
    run = ["--invari-suite=every.invari.toml", "--reranker=first_stage"]
    assert pytester.runpytest_inprocess(*QUIET, *run, "--invari-save=base.json").ret == 0
    compared = pytester.runpytest_inprocess(
        *QUIET, *run, "--invari-compare=base.json", "--invari-json=report.json"
    )
    assert compared.ret == 0
    report = json.loads((pytester.path / "report.json").read_text(encoding="utf-8"))
    listed = {
        name: table("files.md", f"key of {name}") for name in ("the report", "a subject", "a criterion")
    }
    assert set(listed["the report"]) == set(report)
    for group, name in (("subjects", "a subject"), ("criteria", "a criterion"), ("changes", "a change")):
        assert report[group]
        assert set(table("files.md", f"key of {name}")) == {key for each in report[group] for key in each}
    assert report["left_out"]
    for key in ("suites", "left_out"):
        assert_named(listed["the report"][key][-1], report[key][0])
    for key, made_of in (("unjudged", Unjudged), ("reruns", Rerun)):
        assert_named(listed["the report"][key][-1], made_of.__struct_fields__)
    assert_named(listed["a subject"]["cost"][-1], report["subjects"][0]["cost"])
    assert_named(listed["a subject"]["regions"][-1], report["subjects"][0]["regions"])
    assert_named(listed["a subject"]["metrics"][-1], report["subjects"][0]["metrics"]["loc"])
    for outcome in get_args(Outcome):
        assert f"`{outcome}`" in table("files.md", "key of a change")["outcome"][-1]
    baseline = json.loads((pytester.path / "base.json").read_text(encoding="utf-8"))
    assert set(table_of("Baselines", "key")) == set(baseline)
    assert set(table("files.md", "key of an entry")) == set(
        baseline["entries"]["every_key::loc[first_stage-tasks-K6]"]
    )
    assert f"`{BASELINE}`" in text("files.md")


def assert_named(words: str, keys: Iterable[str]) -> None:
    """The keys, and no others, stand in the words as code."""
    assert set(re.findall(r"`(\w+)`", words)) == set(keys)
