"""The file invari-baseline/1: readable, mergeable, and refused with a reason when it does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.baseline.file import Entry, read_baseline, write_text
from pytest_invari.baseline.outcomes import classify
from pytest_invari.errors import InvariError

if TYPE_CHECKING:
    from tests.baseline.conftest import Gated

LOC = "small::loc[mine:rank-tasks-K6]"

numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.tuples(st.lists(st.integers(0, 99), max_size=4).map(tuple), st.integers(0, 99))
entries = st.builds(
    Entry,
    st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | numbers | st.text(), max_size=4),
    st.dictionaries(st.text(), numbers | st.text() | counts, max_size=4),
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(), entries, max_size=3))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, stored: dict[str, Entry]) -> None:
    path = tmp_path_factory.mktemp("baseline") / "mine.json"
    path.write_text(write_text(stored), encoding="utf-8")
    assert read_baseline(path) == stored
    assert write_text(read_baseline(path)) == write_text(stored)
    # Whatever stands in it, no line of it is anything but printable.
    assert all(line.isprintable() for line in path.read_text(encoding="utf-8").split("\n"))


def test_it_says_what_made_it_and_has_a_query_a_line(gated: Gated) -> None:
    content = gated.save()
    assert content["format"] == "invari-baseline/1"
    assert list(content["entries"]) == sorted(content["entries"])
    made = content["entries"][LOC]["made"]
    assert {"plan.views": 5, "plan.view_seed": 0, "plan.k": 6, "plan.queries": 32}.items() <= made.items()
    assert {"plan.ties": "broken", "plan.labels": "item", "plan.blind_ids": False}.items() <= made.items()
    assert {"suite_sha256", "tasks_sha256", "reranker_sha256", "version.numpy", "plan.on_failure"} <= set(
        made
    )
    text = gated.path.read_text(encoding="utf-8")
    value = content["entries"][LOC]["queries"]["q7"]
    assert f'\n    "q7": {value!r},\n' in text
    assert '\n    "q7": [[' in text
    assert str(gated.project.path) not in text


@pytest.mark.parametrize(
    ("says", "has"),
    [
        ({}, False),
        ({"model": "large"}, True),
        ({"base": {"model": "large"}}, True),
        ({"url": "http://there", "model": "large"}, False),
    ],
)
def test_versions_of_model_libraries_are_stored_where_a_model_runs(
    gated: Gated, monkeypatch: pytest.MonkeyPatch, says: dict[str, Any], has: bool
) -> None:
    installed = gated.project.path / "installed" / "gguf-0.0.7.dist-info"
    gated.project.write(str(installed / "METADATA"), "Metadata-Version: 2.1\nName: gguf\nVersion: 0.0.7\n")
    monkeypatch.syspath_prepend(installed.parent)
    with (gated.project.path / "mine.py").open("a") as file:
        file.write(
            "\nclass Mine:\n"
            f"    def fingerprint(self): return {says}\n"
            "    def rank(self, request):\n"
            "        from pytest_invari import Ranking\n"
            "        return Ranking.from_order(request, request.ids)\n"
        )
    gated.project.run("--invari-save=mine.json", reranker="mine:Mine")
    entries = gated.content()["entries"]
    assert entries
    for entry in entries.values():
        assert {"version.python", "version.numpy", "version.pytest-invari"} <= set(entry["made"])
        assert entry["made"].get("version.gguf") == ("0.0.7" if has else None)


@pytest.mark.xdist
def test_the_file_is_the_same_wherever_it_is_made(gated: Gated) -> None:
    gated.save()
    alone = gated.path.read_bytes()
    gated.path.unlink()
    gated.save("-n1")
    assert gated.path.read_bytes() == alone


def test_entries_that_were_not_measured_are_kept(gated: Gated) -> None:
    before = gated.save()["entries"]
    gated.make_noise(0.8)
    after = gated.save("-k", "loc and not baseline")["entries"]
    changed = {name for name in before if before[name]["queries"] != after[name]["queries"]}
    # The suite's reported metrics are measured whatever is selected.
    assert LOC in changed
    assert before.keys() == after.keys()
    calls = "small::calls[mine:rank-tasks-K6]"
    assert before[calls] == after[calls]
    other = gated.project.run("--invari-save=mine.json", "-k", "loc", reranker="first_stage")
    other.stdout.fnmatch_lines(["saved: 4 metrics in mine.json"])
    assert gated.content()["entries"].items() > after.items()


def test_nothing_is_written_when_nothing_is_measured(gated: Gated) -> None:
    gated.run("--invari-save=mine.json", "--collect-only")
    assert not gated.path.exists()


CRASHES = """
import pytest

def broken(context, texts):
    raise ValueError("no index")

def stopped(context, texts):
    pytest.fail("out of time")
"""


@pytest.mark.parametrize(
    ("reranker", "told"),
    [
        ("broken", "5 of 5 metrics could not be measured, the first small::loc?*; nothing is saved"),
        ("stopped", "nothing was measured that a baseline stores; nothing is saved"),
    ],
)
def test_a_run_that_could_not_measure_ends_as_an_error_and_keeps_the_file(
    gated: Gated, reranker: str, told: str
) -> None:
    gated.save()
    before = gated.path.read_bytes()
    gated.project.write("crashes.py", CRASHES)
    result = gated.project.run("--invari-save=mine.json", reranker=f"crashes:{reranker}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["saved: nothing; mine.json is not written*"])
    assert result.errlines[-1].startswith("ERROR: --invari-save=mine.json: ")
    result.stderr.fnmatch_lines([f"ERROR: --invari-save=mine.json: {told}"])
    assert gated.path.read_bytes() == before


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
def test_what_one_of_two_rerankers_lacks_is_told_and_the_rest_saved(
    gated: Gated, workers: tuple[str, ...]
) -> None:
    gated.project.write("crashes.py", CRASHES)
    result = gated.run("--invari-save=mine.json", "--reranker=crashes:broken", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["saved: 5 metrics in mine.json; 5 could not be measured"])
    result.stderr.fnmatch_lines(["ERROR: *: 5 of 10 metrics could not be measured, *; the others are saved"])
    assert len(gated.content()["entries"]) == 5


def test_a_criterion_that_is_not_met_is_no_such_error(gated: Gated) -> None:
    gated.make_noise(1)
    assert gated.run("--invari-save=mine.json").ret == pytest.ExitCode.TESTS_FAILED
    assert len(gated.content()["entries"]) == 5


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--invari-views=4",), "plan.views recorded with 5, now 4"),
        (("--invari-seed=9",), "plan.view_seed recorded with 0, now 9"),
        (("--invari-queries=31",), "plan.queries recorded with 32, now 31; tasks_sha256 recorded with *"),
    ],
)
def test_a_baseline_of_another_plan_is_refused(gated: Gated, options: tuple[str, ...], told: str) -> None:
    gated.save()
    (gated.project.path / "noise.txt").unlink()
    result = gated.compare(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: mine.json: small::loc?* does not fit this run: {told}; run as it *"]
    )


@pytest.mark.parametrize("key", ["labels = 'position'", "blind_ids = true"])
def test_a_profile_that_shows_lists_otherwise_is_refused(gated: Gated, key: str) -> None:
    gated.save()
    suite = gated.project.path / "small.invari.toml"
    suite.write_text(suite.read_text().replace("views = 5", f"views = 5\n{key}"))
    result = gated.compare()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: mine.json: * plan.{key.split()[0]} recorded with *"])


def test_other_tasks_are_refused(gated: Gated) -> None:
    gated.save()
    tasks = gated.project.path / "tasks.jsonl"
    tasks.write_text(tasks.read_text().replace("Film 5", "Film 6"))
    result = gated.compare()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: mine.json: * does not fit this run: tasks_sha256 recorded with *"])


def broken(content: Any, how: str) -> Any:
    queries = content["entries"][LOC]["queries"]
    if how == "format":
        content["format"] = "invari-baseline/2"
    elif how == "entries":
        content["entries"] = []
    elif how == "made":
        del content["entries"][LOC]["made"]
    elif how == "value":
        queries["q3"] = [1, 2]
    elif how == "truth":
        queries["q3"] = True
    elif how == "range":
        queries["q3"] = 7
    elif how == "low":
        queries["q3"] = -1.001
    elif how == "lacks":
        del queries["q3"]
    elif how == "more":
        queries["a\x1b"] = 0.5
    return content


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("format", "mine.json: not a baseline of format invari-baseline/1; *"),
        ("entries", "mine.json: 'entries' is not an object; *"),
        ("made", "mine.json: small::loc?*: lacks 'made' or 'queries'; *"),
        ("value", "mine.json: small::loc?*: query 'q3' has no number, reason or counts; *"),
        ("truth", "mine.json: small::loc?*: query 'q3' has no number, reason or counts; *"),
        (
            "range",
            "mine.json: small::loc?* was changed after *: query 'q3' has the value 7, and loc lies *",
        ),
        (
            "low",
            "mine.json: small::loc?* was changed after *: query 'q3' has the value -1.001, and loc lies *",
        ),
        ("lacks", "mine.json: small::loc?* was changed after *: it has no value for query 'q3'; *"),
        ("more", "mine.json: small::loc?* was changed after *: it has a value for query 'a?x1b'; *"),
    ],
)
def test_a_broken_baseline_is_refused(gated: Gated, how: str, told: str) -> None:
    gated.write(broken(gated.save(), how))
    result = gated.compare()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {told}"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<<<<<<< HEAD\n{}", ":1: not JSON (Expecting value)"),
        ('{"format": 1,\n"format": 2}', ": cannot be read as a baseline ('format' is there twice)"),
        ('{"format": NaN}', ": cannot be read as a baseline (NaN is no value)"),
        ("[" * 100_000, ": cannot be read as a baseline (*recursion*)"),
        ("[]", ": not a baseline of format invari-baseline/1"),
    ],
)
@pytest.mark.parametrize("option", ["compare", "save"])
def test_a_file_that_is_no_baseline_is_refused(gated: Gated, option: str, text: str, told: str) -> None:
    gated.path.write_text(text)
    result = gated.run(f"--invari-{option}=mine.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: mine.json{told}; restore it, or *"])
    assert gated.path.read_text() == text


def test_a_file_that_is_not_there_is_told_with_the_remedy(gated: Gated) -> None:
    result = gated.compare()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: mine.json: there is no such file; make it with --invari-save=mine.json"]
    )


def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(gated: Gated) -> None:
    result = gated.run("--invari-save=no/where.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --invari-save=no/where.json: there is no folder no"])


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvariError, match="cannot be read as a baseline"):
        read_baseline(path)


ends = st.floats(-2, 2).map(lambda value: round(value, 6))


@settings(max_examples=200, deadline=None)
@given(ends, ends, st.floats(0, 1).map(lambda value: round(value, 6)))
def test_an_outcome_is_what_the_whole_interval_says(first: float, second: float, margin: float) -> None:
    low, high = sorted((first, second))
    found = classify(low, high, margin, "lower")
    # Higher is better: the same change with the signs turned.
    assert classify(-high, -low, margin, "higher") == found
    if low > margin:
        assert found == "regressed"
    elif high < 0:
        assert found == "improved"
    elif -margin <= low and high <= margin:
        assert found == "same"
    else:
        assert found == "undecided"


def test_an_interval_without_ends_decides_nothing() -> None:
    assert classify(float("nan"), 0.0, 1.0, "lower") == "undecided"


def test_the_json_report_has_no_changes_without_a_baseline(gated: Gated) -> None:
    gated.run("--invari-json=report.json")
    assert json.loads((gated.project.path / "report.json").read_text())["changes"] == []
