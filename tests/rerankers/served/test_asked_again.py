"""Requests that a service did not answer at once, and texts that were cut: in records and in every report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jinja2
import matplotlib.backends.backend_svg
import matplotlib.figure
import pyarrow.parquet
import pytest

from pytest_invari.protocol import Candidate, Context, Ranking, Request, rank_all
from pytest_invari.protocol.capabilities import prepare_reranker
from pytest_invari.registry.memo import Memo
from tests.session.conftest import QUIET

from .conftest import ChatServer
from .test_rerank import built

# pytester forgets what a run imported, and these may be loaded only once.
LOADED = (jinja2, matplotlib.backends.backend_svg, matplotlib.figure)

SUITE = """
[suite]
name = "small"
[profile.quick]
datasets = ["tasks.jsonl"]
k = 4
views = 3
[[criterion]]
name = "loc"
metric = "loc"
at_least = 0.5
"""
WRITTEN = ("report.md", "report.html")
REQUEST = Request("q", Context("films"), tuple(Candidate(f"i{n}", f"film {n}") for n in range(4)))


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    with (pytester.path / "tasks.jsonl").open("w", encoding="utf-8") as tasks:
        for number in range(4):
            candidates = [{"id": f"i{item}", "text": f"film {item}"} for item in range(4)]
            task = {"query_id": f"q{number}", "text": "films", "candidates": candidates}
            print(json.dumps(task), file=tasks)
    (pytester.path / "small.invari.toml").write_text(SUITE, encoding="utf-8")
    return pytester.path


def run(pytester: pytest.Pytester, reranker: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(
        *(*QUIET, "--invari-suite=small.invari.toml", "--invari-no-audit", f"--reranker={reranker}"),
        *("--invari-records=records", "--invari-json=report.json", "--invari-markdown=report.md"),
        "--invari-html=report.html",
    )


def subject(folder: Path) -> dict[str, Any]:
    [found] = json.loads((folder / "report.json").read_text())["subjects"]
    assert isinstance(found, dict)
    return found


def recorded(folder: Path, name: str) -> list[int]:
    """What stands under *name* in the diagnostics of the rankings that have it."""
    rows = [
        row
        for path in folder.glob("records/*/views/*.parquet")
        for row in pyarrow.parquet.read_table(path).to_pylist()
    ]
    found = [json.loads(row["diagnostics"] or "{}").get(name) for row in rows]
    return [each for each in found if each is not None]


def test_every_report_says_how_much_was_asked_again(
    pytester: pytest.Pytester, folder: Path, chat_server: ChatServer
) -> None:
    url = chat_server.url("fitful")
    result = run(pytester, f"sgs:base=(chat{url.removeprefix('http')}?model=m&concurrency=2)")
    found = subject(folder)
    refused = sum(request["body"]["refused"] for request in chat_server.seen(url))
    again, further = found["rankings_asked_again"], found["further_requests"]
    assert 0 < again <= further <= refused
    assert found["total_cost"]["calls"] == 12 * 3
    attempts = recorded(folder, "attempts")
    assert (len(attempts), sum(attempts)) == (again, 3 * again + further)
    told = rf"{again} of 12 rankings w\w+ asked again \({further} further requests?\)"
    line = rf"requests of sgs:[^:]+:[^ ]+ on tasks, K=4: {told}"
    for shown in (" ".join(result.outlines), *((folder / name).read_text() for name in WRITTEN)):
        assert len(re.findall(line, re.sub(r"\s+", " ", shown.replace("\\", "")))) == 1


def test_cut_texts_are_told_and_a_run_without_either_says_nothing(
    pytester: pytest.Pytester, folder: Path, chat_server: ChatServer
) -> None:
    spec = f"chat{chat_server.url().removeprefix('http')}?model=m"
    cut = run(pytester, f"{spec}&text_characters=5")
    assert " on tasks, K=4: texts of 12 of 12 rankings were cut" in re.sub(r"\s+", " ", cut.stdout.str())
    assert subject(folder)["rankings_with_cut_texts"] == 12
    assert recorded(folder, "truncated") == [4] * 12
    whole = run(pytester, f"{spec}&text_characters=6")
    whole.stdout.no_fnmatch_line("*asked again*")
    whole.stdout.no_fnmatch_line("*were cut*")
    found = subject(folder)
    assert [found[name] for name in ("rankings_asked_again", "further_requests")] == [0, 0]
    assert found["rankings_with_cut_texts"] == 0


def test_a_failed_list_says_how_often_it_was_tried(chat_server: ChatServer) -> None:
    url = chat_server.url("hurried").removeprefix("http")
    (ranking,) = rank_all(built(f"chat{url}?model=m&attempts=3"), [REQUEST])
    assert (ranking.status, ranking.is_transient, ranking.diagnostics["attempts"]) == ("failed", True, 3)
    (ranking,) = rank_all(built(f"sgs:base=(chat{url}?model=m&attempts=3)"), [REQUEST])
    assert (ranking.status, ranking.cost.calls, ranking.diagnostics["attempts"]) == ("failed", 1, 3)


def test_an_answer_from_memory_was_asked_for_once(chat_server: ChatServer) -> None:
    base = built(f"chat{chat_server.url('fitful').removeprefix('http')}?model=m")
    prepare_reranker(base)
    memo = Memo(base)
    asked = [Request(f"q{n}", REQUEST.context, REQUEST.candidates) for n in range(6)]
    first, second = rank_all(memo, asked), rank_all(memo, asked)
    assert any("attempts" in each.diagnostics for each in first)
    assert not any("attempts" in each.diagnostics for each in second)


@pytest.mark.parametrize("odd", ["3", 3.0, True, -3, None, [3]])
def test_diagnostics_of_other_rerankers_may_mean_anything(odd: object) -> None:
    from pytest_invari.protocol.ranking import further_requests, has_cut_texts

    ranking = Ranking(("a",), diagnostics={"attempts": odd, "truncated": odd})
    assert further_requests(ranking) == 0
    assert not has_cut_texts(ranking)
