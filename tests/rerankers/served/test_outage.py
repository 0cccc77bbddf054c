"""A service goes away while a suite runs, and comes back: its process is killed, and another started."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.session.conftest import QUIET

QUERIES, VIEWS = 32, 4
SUITE = f"""
[suite]
name = "small"
[profile.quick]
datasets = ["tasks.jsonl"]
k = 5
views = {VIEWS}
[[criterion]]
name = "loc"
metric = "loc"
at_least = 0.5
[[criterion]]
name = "ppi"
metric = "ppi"
at_most = 0.5
"""
# Query and texts, in the order shown.
Shown = tuple[str, tuple[str, ...]]


@contextmanager
def serving(port: int = 0, last: str = "") -> Iterator[int]:
    """The port of a service, which is killed when it is asked about the *last* query."""
    command = [sys.executable, str(Path(__file__).with_name("rerank_server.py")), str(port), last]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def asked(port: int) -> list[Shown]:
    """What the service was asked, but for the question whether it is there."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/seen", timeout=10) as answer:
        bodies = [each["body"] for each in json.load(answer)]
    return sorted((body["query"], tuple(body["texts"])) for body in bodies if body["query"] != "probe")


def recorded(folder: Path) -> dict[Shown, str]:
    """The status of every ranking in the records; an answer stands before a failure."""
    found: dict[Shown, str] = {}
    for path in sorted(folder.glob("records/*/views/*.parquet")):
        for row in pyarrow.parquet.read_table(path).to_pylist():
            shown = row["query_id"], tuple(row["input"])
            if found.get(shown, "failed") == "failed":
                found[shown] = row["status"]
    return found


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    with (pytester.path / "tasks.jsonl").open("w", encoding="utf-8") as tasks:
        for number in range(QUERIES):
            texts = [f"film {item}" for item in range(5)]
            candidates = [{"id": text, "text": text} for text in texts]
            query = f"q{number}"
            print(json.dumps({"query_id": query, "text": query, "candidates": candidates}), file=tasks)
    (pytester.path / "small.invari.toml").write_text(SUITE, encoding="utf-8")
    return pytester.path


def run(pytester: pytest.Pytester, port: int) -> pytest.RunResult:
    return pytester.runpytest_inprocess(
        *QUIET,
        "--invari-suite=small.invari.toml",
        f"--reranker=http+tei://127.0.0.1:{port}/ok?concurrency=2&attempts=2",
        "--invari-records=records",
    )


def test_an_audit_that_an_outage_spoiled_is_made_again(pytester: pytest.Pytester, folder: Path) -> None:
    with serving(last="q1") as port:
        first = run(pytester, port)
    assert first.ret == 1
    assert not list(folder.glob("records/*/audit.json"))
    with serving(port) as port:
        second = run(pytester, port)
    second.assert_outcomes(passed=2)
    [audit] = folder.glob("records/*/audit.json")
    assert json.loads(audit.read_text())["kind"] == "pointwise"


@pytest.mark.parametrize(
    ("last", "told"),
    [
        ("q9", r"nothing measured: the service is away: "),
        (f"q{QUERIES - 1}", rf"[1-9] of {QUERIES * VIEWS} rankings failed, the first for query 'q3[01]'"),
    ],
    ids=["in_the_middle", "in_the_last_batch"],
)
def test_the_same_command_goes_on_when_the_service_is_back(
    pytester: pytest.Pytester, folder: Path, last: str, told: str
) -> None:
    with serving(last=last) as port:
        first = run(pytester, port)
    assert first.ret == 1
    first.assert_outcomes(failed=2)
    output = " ".join(first.stdout.str().split())
    first.stdout.re_match_lines([rf".*{told}"])
    assert "the service was away" in output or "the service is away" in output
    assert "the same command" in output
    assert "--invari-records" in output
    assert "raised" not in output

    before = recorded(folder)
    done = {shown for shown, status in before.items() if status == "ok"}
    assert 0 < len(done) < QUERIES * VIEWS

    with serving(port) as port:
        second = run(pytester, port)
        again = asked(port)
    assert second.ret == 0, second.stdout.str()
    second.assert_outcomes(passed=2)
    after = recorded(folder)
    assert set(after.values()) == {"ok"}
    assert len(after) == QUERIES * VIEWS
    assert again == sorted(after.keys() - done)
    second.stdout.fnmatch_lines(
        [f"records: {len(done)} of {QUERIES * VIEWS} rankings came from records in *"]
    )

    # A finished run has nothing to ask: the service may be gone.
    third = run(pytester, port)
    third.assert_outcomes(passed=2)
    third.stdout.fnmatch_lines([f"records: {QUERIES * VIEWS} of {QUERIES * VIEWS} rankings came from *"])
