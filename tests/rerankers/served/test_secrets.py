"""No key in anything that a run leaves behind: repeated by services, and looked for in every byte."""

from __future__ import annotations

import base64
import html
import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

# pytester forgets what a run imported, and these may be loaded only once.
import httpx2
import jinja2
import matplotlib.backends.backend_svg
import matplotlib.figure
import pyarrow
import pyarrow.parquet
import pytest

from pytest_invari.protocol import Candidate, Context, Request, rank_all
from pytest_invari.protocol.capabilities import prepare_reranker
from pytest_invari.rerankers.served.hiding import Hiding
from tests.session.conftest import QUIET

from .conftest import ChatServer
from .test_rerank import built

LOADED = (httpx2, jinja2, matplotlib.backends.backend_svg, matplotlib.figure)

KEY = "planted/Key+0123456789=z"
# A part of it is too much as well.
PARTS = (KEY[:12], KEY[-12:])
OTHER = "another-Secret-9876543210"

REQUEST = Request("q", Context("films"), tuple(Candidate(f"i{n}", f"film {n}") for n in range(3)))

SUITE = """
[suite]
name = "small"
[profile.quick]
datasets = ["tasks.jsonl"]
k = 5
views = 3
queries = 32
[[criterion]]
name = "loc"
metric = "loc"
at_least = 0.5
[[criterion]]
name = "calls"
metric = "calls"
at_most = 0
[[criterion]]
name = "witness"
kind = "witness"
"""
LOUD = ("-vvv", "--tb=long", "--showlocals", "-rA", "--log-level=DEBUG")
REPORTS = (
    "--junitxml=junit.xml",
    "--invari-json=report.json",
    "--invari-markdown=report.md",
    "--invari-html=report.html",
    "--invari-records=records",
)


def in_base64(key: str) -> Iterator[str]:
    """What is the same in every text that has the key in it, by the place where it begins."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + key.encode()).decode().rstrip("=")
        yield encoded[4 if before else 0 : -1]


def is_leaked(text: str, key: str = KEY) -> bool:
    """Whether the key is in the text, also where it is escaped as XML, JSON or an address."""
    escaped = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text).replace("\\/", "/")
    read = (text, html.unescape(text), unquote(text), escaped)
    forms = (*(PARTS if key == KEY else (key,)), *in_base64(key))
    return any(form in each for form in forms for each in read)


def texts(path: Path) -> Iterator[str]:
    """A file as it is, and what is packed in it."""
    yield path.read_bytes().decode("utf-8", "replace")
    if path.suffix == ".parquet":
        table = pyarrow.parquet.read_table(path)
        yield json.dumps(table.to_pylist(), default=str)
        yield str(table.schema.metadata)


def leaks(folder: Path, *shown: str, key: str = KEY) -> list[str]:
    """The files that hold the key, and the line of what was *shown* that does."""
    lines = [line for text in shown for line in text.splitlines() if is_leaked(line, key)]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return lines + [str(path) for path in files if any(is_leaked(text, key) for text in texts(path))]


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, the key in a variable whose name says nothing, and one whose name says that it is secret."""
    with (pytester.path / "tasks.jsonl").open("w", encoding="utf-8") as tasks:
        for number in range(32):
            candidates = [{"id": f"i{item}", "text": f"film {item}"} for item in range(5)]
            print(
                json.dumps({"query_id": f"q{number}", "text": "films", "candidates": candidates}), file=tasks
            )
    (pytester.path / "small.invari.toml").write_text(SUITE, encoding="utf-8")
    monkeypatch.setenv("OUR_SERVICE", KEY)
    monkeypatch.setenv("OTHER_TOKEN", OTHER)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    return pytester.path


@pytest.fixture
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("elsewhere") / "key"
    path.write_text(f"{KEY}\n")
    return path


@pytest.fixture(scope="module")
def rerank_server() -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).with_name("rerank_server.py"))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def keys_sent(rerank_server: str) -> set[str]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{rerank_server}/seen", timeout=10) as answer:
        return {str(each["authorization"]) for each in json.load(answer)}


def run(pytester: pytest.Pytester, reranker: str, *arguments: str) -> pytest.RunResult:
    """Run the suite in this process, with all that can be asked to be shown."""
    result = pytester.runpytest_inprocess(
        *QUIET, *LOUD, "--invari-suite=small.invari.toml", f"--reranker={reranker}", *arguments
    )
    shown = result.stdout.str(), result.stderr.str()
    assert leaks(pytester.path, *shown) == []
    assert leaks(pytester.path, *shown, key=OTHER) == []
    return result


@pytest.mark.parametrize(
    "text", [*in_base64(KEY), KEY, KEY.replace("/", "\\/"), "planted%2FKey%2B0123456789"]
)
def test_a_leak_is_found(tmp_path: Path, text: str) -> None:
    table = pyarrow.table({"diagnostics": [f'{{"served_model": "m {text} n"}}'] * 100})
    pyarrow.parquet.write_table(table, tmp_path / "part.parquet", compression="zstd")
    (tmp_path / "report.json").write_text(f'"{text}"')
    (tmp_path / "innocent").write_text("planted")
    found = [str(tmp_path / "part.parquet"), f"it said {text}", str(tmp_path / "report.json")]
    assert sorted(leaks(tmp_path, f"fine\nit said {text}")) == sorted(found)


def test_every_spelling_is_hidden_and_nothing_else() -> None:
    hidden = Hiding(KEY)
    for spelling in (
        KEY,
        KEY.replace("/", "\\/"),
        "planted\\u002fKey\\u002B0123456789\\u003dz",
        *in_base64(KEY),
    ):
        assert is_leaked(f'{{"said": "{spelling}"}}')
    for spelling in (
        *(KEY, KEY.replace("/", "\\/"), "planted\\u002fKey\\u002B0123456789\\u003dz"),
        *("planted%2FKey%2B0123456789%3Dz", "planted%2fKey%2b0123456789%3dz"),
        *(base64.b64encode(each.encode()).decode() for each in (KEY, f"Bearer {KEY}")),
    ):
        assert not is_leaked(hidden.in_json(f'{{"said": "{spelling}"}}')), spelling
    innocent = r'{"said": "C:\\users \u00e9 \n planted"}'
    assert hidden.in_json(innocent) == innocent
    assert Hiding("")(innocent) == innocent
    assert Hiding("")("") == ""


@pytest.mark.parametrize("key", ['say"friend"&enter', "back\\slash/and.(*", "it's-a-key"])
def test_a_key_of_odd_characters_is_hidden_where_they_are_escaped(key: str) -> None:
    hidden = Hiding(key)
    for spelling in (
        key,
        json.dumps(key)[1:-1],
        html.escape(key),
        repr(key)[1:-1],
        str(key.encode() + b"'\"")[2:-4],
    ):
        assert hidden.in_json(f"it was {spelling}, no more") == "it was (hidden), no more", spelling


@pytest.mark.parametrize("key", ["x", "A", "1", "index", "token", "film", "m"])
def test_a_short_key_is_hidden_where_it_stands_alone_and_spoils_no_answer(
    chat_server: ChatServer, rerank_server: str, tmp_path: Path, key: str
) -> None:
    (tmp_path / "key").write_text(key)
    hidden = Hiding(key)
    assert hidden(f"you sent Bearer {key}.") == "you sent Bearer (hidden)."
    assert hidden(f"no {key}ey or {key}_1") == f"no {key}ey or {key}_1"
    url = chat_server.url("echoing").removeprefix("http")
    for spec in (f"http+jina://{rerank_server}/ok?model=m", f"chat{url}?model=m"):
        reranker = built(f"{spec}&key_file={tmp_path}/key")
        prepare_reranker(reranker)
        (ranking,) = rank_all(reranker, [REQUEST])
        assert ranking.order == ("i2", "i1", "i0"), ranking
        assert f"Bearer {key}" not in str(ranking.diagnostics)


def test_a_chat_service_that_repeats_the_key_in_its_answers(
    pytester: pytest.Pytester, folder: Path, chat_server: ChatServer
) -> None:
    url = chat_server.url("echoing")
    reranker = f"chat{url.removeprefix('http')}?model=m&key_env=OUR_SERVICE"
    result = run(pytester, reranker, *REPORTS, "--invari-save=baseline.json")
    assert result.parseoutcomes() == {"passed": 2, "failed": 1}
    assert {each["headers"]["authorization"] for each in chat_server.seen(url)} == {f"Bearer {KEY}"}
    written = {path.name for path in folder.iterdir()}
    assert {"junit.xml", "report.json", "report.md", "report.html", "summary.md", "baseline.json"} <= written
    rows = [
        row
        for path in folder.glob("records/*/views/*.parquet")
        for row in pyarrow.parquet.read_table(path).to_pylist()
    ]
    assert len(rows) == 96
    assert {json.loads(row["diagnostics"])["served_model"] for row in rows} == {"served-m Bearer (hidden)"}
    compared = run(
        pytester, reranker, *REPORTS[1:2], "--invari-records=records", "--invari-compare=baseline.json"
    )
    assert compared.ret == 1


@pytest.mark.xdist
def test_a_rerank_service_that_repeats_the_key_to_two_workers(
    pytester: pytest.Pytester, folder: Path, rerank_server: str, key_file: Path
) -> None:
    reranker = f"http+jina://{rerank_server}/echoing?model=m&key_file={key_file}"
    result = pytester.runpytest_subprocess(
        *LOUD, *REPORTS, "-n1", "--invari-suite=small.invari.toml", f"--reranker={reranker}"
    )
    assert leaks(folder, result.stdout.str(), result.stderr.str()) == []
    result.assert_outcomes(passed=2, failed=1)
    assert f"Bearer {KEY}" in keys_sent(rerank_server)
    assert "m (hidden) Bearer (hidden) (hidden) (hidden) (hidden)" in (folder / "report.json").read_text()


def test_a_rerank_service_that_repeats_the_key_in_its_errors(
    pytester: pytest.Pytester, folder: Path, rerank_server: str, key_file: Path
) -> None:
    result = run(pytester, f"http+tei://{rerank_server}/hostile?key_file={key_file}", *REPORTS)
    result.assert_outcomes(failed=3)
    told = "answers 400: {*not with these: (hidden)*Bearer (hidden) (hidden) (hidden) (hidden)*"
    result.stdout.fnmatch_lines([f"*{told}"])


@pytest.mark.parametrize("mode", ["hostile", "redirect", "broken", "truncated"])
def test_a_service_that_answers_nothing_of_use(
    pytester: pytest.Pytester, folder: Path, chat_server: ChatServer, mode: str
) -> None:
    url = chat_server.url(mode).removeprefix("http")
    result = run(pytester, f"chat{url}?model=m&key_env=OUR_SERVICE&attempts=1", "--invari-json=report.json")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["*nothing measured: *"])


def test_a_service_that_is_not_there(pytester: pytest.Pytester, folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run(pytester, f"http+tei://{where}?key_env=OUR_SERVICE&attempts=1", *REPORTS[:3])
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["*Connection refused*"])


ADAPTER = """
import os

from pytest_invari.protocol import Ranking
from pytest_invari.rerankers.served.client import Client
from pytest_invari.rerankers.served.service import Served


class Broken(Served):
    def ask(self, request):
        documents = [candidate.text for candidate in request.candidates]
        body = {"model": "m", "query": "films", "documents": documents}
        reply = self.client.post("/v1/rerank", body)
        if request.query_id != "probe":
            raise KeyError(f"{reply.content} {reply.headers} {os.environ['OTHER_TOKEN']}")
        return Ranking.from_order(request, request.ids)

    def fingerprint(self):
        return {"reranker": "broken"}


def make(build, url: str, key_env: str = ""):
    return Broken(Client.to(url, build.shared, key_env=key_env))
"""
TABLES = """
[tool.invari.rerankers.broken]
factory = "adapter:make"
url = "http://{server}/echoing"
key_env = "OUR_SERVICE"
"""


def test_an_adapter_that_raises_what_the_service_said(
    pytester: pytest.Pytester, folder: Path, rerank_server: str
) -> None:
    (folder / "adapter.py").write_text(ADAPTER)
    (folder / "pyproject.toml").write_text(TABLES.format(server=rerank_server))
    result = run(pytester, "broken", *REPORTS)
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["*96 of 96 rankings failed*raised KeyError: *(hidden)*"])
    listed = pytester.runpytest_inprocess(*QUIET, "--invari-list")
    listed.stdout.fnmatch_lines(["*broken*"])
    assert leaks(folder, listed.stdout.str(), listed.stderr.str()) == []


def test_a_run_that_is_interrupted_shows_no_key_among_its_locals(
    pytester: pytest.Pytester, folder: Path, chat_server: ChatServer
) -> None:
    url = chat_server.url("slow")
    reranker = f"chat{url.removeprefix('http')}?model=m&key_env=OUR_SERVICE"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "pytest", *LOUD, "--full-trace"),
            *("--invari-suite=small.invari.toml", f"--reranker={reranker}"),
        ],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    while not chat_server.seen(url):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate(timeout=30)
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    # The locals of the call are there.
    assert "deadline" in shown
    assert leaks(folder, shown) == []
