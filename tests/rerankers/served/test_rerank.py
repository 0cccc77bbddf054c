"""Rerank endpoints: five shapes, asked for everything and joined by index, against a server that runs."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.protocol import Candidate, Context, Ranking, Request, Reranker, rank_all
from pytest_invari.protocol.capabilities import check_reranker, fingerprint_of, prepare_reranker
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import Task, TaskSet

NUMBERS = (3, 11, 7, 2)
REQUEST = Request(
    "q1", Context("space"), tuple(Candidate(f"id{number}", f"film {number}") for number in NUMBERS)
)
SHAPES = ("cohere", "jina", "voyage", "vllm", "tei")


class RerankServer:
    def __init__(self, port: int) -> None:
        self.origin = f"127.0.0.1:{port}"

    def spec(self, shape: str, mode: str = "ok", *options: str) -> str:
        mode = f"voyage{mode}" if shape == "voyage" and mode == "ok" else mode
        model = [] if shape == "tei" else ["model=m"]
        query = "&".join([*model, *options])
        return f"http+{shape}://{self.origin}/{mode}" + (f"?{query}" if query else "")

    def seen(self) -> list[dict[str, Any]]:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{self.origin}/seen", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found


@pytest.fixture(scope="module")
def server() -> Iterator[RerankServer]:
    path = Path(__file__).with_name("rerank_server.py")
    process = subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield RerankServer(int(process.stdout.readline()))
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def built(spec: str) -> Reranker:
    registry = Registry(Path("/nowhere"))
    tasks = TaskSet.of("t", [Task("q1", REQUEST.context, REQUEST.candidates)])
    return registry.build(spec, Build(ModelSettings(), tasks, len(NUMBERS), registry))


def ranked(spec: str) -> Ranking:
    return rank_all(built(spec), [REQUEST])[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_ranks_by_the_services_scores(server: RerankServer, shape: str) -> None:
    reranker = built(server.spec(shape))
    check_reranker(reranker)
    prepare_reranker(reranker)
    (ranking,) = rank_all(reranker, [REQUEST])
    assert ranking.order == ("id11", "id7", "id3", "id2")
    assert ranking.scores == (11.0, 7.0, 3.0, 2.0)
    assert (ranking.cost.calls, ranking.cost.depth) == (1, 1)
    assert ranking.cost.tokens_in == {"cohere": 77, "tei": 33}.get(shape, 55)


def test_what_is_sent_asks_for_every_candidate_and_raw_scores(server: RerankServer) -> None:
    for shape in SHAPES:
        ranked(server.spec(shape))
    sent = [each["body"] for each in server.seen()[-len(SHAPES) :]]
    texts = [f"film {number}" for number in NUMBERS]
    common = {"query": "space", "model": "m", "documents": texts}
    assert sent == [
        common | {"top_n": 4},
        common | {"top_n": 4, "return_documents": False},
        common | {"top_k": 4, "return_documents": False},
        common | {"top_n": 4, "use_activation": False},
        {"query": "space", "texts": texts, "raw_scores": True, "return_text": False},
    ]


@pytest.mark.parametrize("shape", ["cohere", "jina", "vllm", "tei"])
def test_the_order_of_the_results_means_nothing(server: RerankServer, shape: str) -> None:
    assert ranked(server.spec(shape, "shuffled")).order == ("id11", "id7", "id3", "id2")


def test_the_model_that_a_service_says_has_answered_is_kept(server: RerankServer) -> None:
    assert ranked(server.spec("jina")).diagnostics == {"served_model": "m-0417"}
    assert ranked(server.spec("tei")).diagnostics == {}


def test_an_answer_that_is_no_ranking_still_says_who_gave_it_and_what_it_took(server: RerankServer) -> None:
    ranking = ranked(server.spec("jina", "truncated"))
    assert ranking.status == "failed"
    assert ranking.diagnostics == {"fault": "the answer lacks index 3", "served_model": "m-0417"}
    assert (ranking.cost.calls, ranking.cost.tokens_in) == (1, 55)
    with pytest.raises(InvariError, match="the service does not rank two texts: the answer lacks index"):
        prepare_reranker(built(server.spec("jina", "truncated")))


@pytest.mark.parametrize(
    ("mode", "fault"),
    [
        ("truncated", "the answer lacks index 3"),
        ("duplicated", "the answer repeats index 1"),
        ("twice", "the answer repeats index 1"),
        ("negative", "the answer has index -1, and the list has 0 to 3"),
        ("beyond", "the answer has index 4, and the list has 0 to 3"),
        ("unnamed", "the answer has index None, and the list has 0 to 3"),
        ("text", "the answer has index '1', and the list has 0 to 3"),
        ("truth", "the answer has index True, and the list has 0 to 3"),
        ("nan", "the answer's score for index 1 is nan, not a number"),
        ("infinite", "the answer's score for index 1 is inf, not a number"),
        ("vast", f"the answer's score for index 1 is 1{'0' * 39}…, not a number"),
        ("worded", "the answer's score for index 1 is 'high', not a number"),
        ("unscored", "the answer's score for index 1 is None, not a number"),
        ("none", "the answer has no list of results"),
        ("nothing", "the answer lacks index 0, 1, 2, 3"),
        ("words", "the answer has no list of results"),
    ],
)
@pytest.mark.parametrize("shape", ["tei", "jina"])
def test_an_answer_that_is_no_ranking_fails_with_the_index(
    server: RerankServer, shape: str, mode: str, fault: str
) -> None:
    ranking = ranked(server.spec(shape, mode))
    assert ranking.status == "failed"
    assert ranking.fault == (fault if shape == "tei" else fault.replace("score", "relevance_score"))
    assert not ranking.is_transient


def test_truncation_is_said_only_when_asked_and_stands_in_the_fingerprint(server: RerankServer) -> None:
    reranker = built(server.spec("tei", "ok", "truncate=true"))
    rank_all(reranker, [REQUEST])
    assert server.seen()[-1]["body"]["truncate"] is True
    assert fingerprint_of(reranker, "x")["truncate"] is True
    assert fingerprint_of(built(server.spec("tei")), "x")["truncate"] == "service's default"
    with pytest.raises(InvariError, match="shape 'cohere' cannot be told whether to truncate"):
        built(server.spec("cohere", "ok", "truncate=true"))


def test_the_key_comes_from_the_environment_or_a_file_and_is_nowhere_else(
    server: RerankServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MY_SERVICE", "sesame-open-417")
    reranker = built(server.spec("tei", "ok", "key_env=MY_SERVICE"))
    (ranking,) = rank_all(reranker, [REQUEST])
    assert server.seen()[-1]["authorization"] == "Bearer sesame-open-417"
    assert "sesame" not in repr((ranking, fingerprint_of(reranker, "x"), vars(reranker)))
    (tmp_path / "key").write_text("sesame-from-a-file\n")
    ranked(server.spec("tei", "ok", f"key_file={tmp_path}/key"))
    assert server.seen()[-1]["authorization"] == "Bearer sesame-from-a-file"


def test_a_services_usual_key_goes_to_its_own_address_alone(
    server: RerankServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COHERE_API_KEY", "sesame-open-417")
    ranked(server.spec("cohere"))
    assert server.seen()[-1]["authorization"] is None
    # Where the key is no word, one can see without a call that it would be read.
    monkeypatch.setenv("COHERE_API_KEY", "two words")
    check_reranker(built("https+cohere://api.cohere.com.example?model=m"))
    with pytest.raises(InvariError, match="environment variable COHERE_API_KEY, must be one word"):
        check_reranker(built("https+cohere://api.cohere.com?model=m"))


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ("http+tei://h?model=m", "shape 'tei' serves one model only and takes no option 'model'"),
        ("http+jina://h", r"shape 'jina' needs option 'model', as in \?model=NAME"),
        ("http+nobody://h", "option 'shape' must be one of cohere, jina, voyage, vllm, tei, not 'nobody'"),
        ("ftp+tei://h", r"is not of the form http\+SHAPE://HOST"),
        ("http://h", r"is not of the form http\+SHAPE://HOST"),
        ("http+tei://", "option 'url' must be an address such as"),
        ("http+tei://h:port", "option 'url' must be an address such as"),
        ("http+tei://user:word@h", "a key|user or a password"),
        ("http+tei://h?api_key=abc", "a key must not stand in an address"),
        ("http+tei://h?key=abc", "a key must not stand in an address"),
        ("http+tei://h?timeout=3&auth=abc", "a key must not stand in an address"),
        ("http+tei://user:word@h\u2100st", "option 'url' must be an address such as"),
        (
            "http+tei://h?key_env=sk-abc-1",
            "reranker http\\+tei://h: option 'key_env' must be the name of an env",
        ),
        ("http:url=http://h,shape=tei,key_env=a-1", "option 'key_env' must be the name of an environment"),
        ("http+tei://h?speed=9", "unknown option 'speed'"),
        ("http+tei://h?concurrency=0", "option 'concurrency' must be from 1 to 1024, not 0"),
        ("http+tei://h?timeout=0", "option 'timeout' must be a number of seconds above 0, not 0"),
        ("http+tei://h?url=http://other", "gives option 'url' twice"),
        ("http+tei://h?key_env=A&key_file=B", "options 'key_env' and 'key_file' are both given"),
    ],
)
def test_mistakes_in_an_address_are_told_before_anything_is_sent(spec: str, fault: str) -> None:
    with pytest.raises(InvariError, match=fault) as caught:
        check_reranker(built(spec))
    assert "abc" not in str(caught.value)
    assert "word@" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wanted_key_that_is_not_there_is_told_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NOWHERE_KEY", raising=False)
    with pytest.raises(InvariError, match="environment variable NOWHERE_KEY is empty or not set"):
        check_reranker(built("https+tei://h?key_env=NOWHERE_KEY"))
    with pytest.raises(InvariError, match="No such file"):
        check_reranker(built(f"https+tei://h?key_file={tmp_path}/none"))
    (tmp_path / "two").write_text("two words\n")
    with pytest.raises(InvariError, match="must be one word"):
        check_reranker(built(f"https+tei://h?key_file={tmp_path}/two"))


def test_a_key_does_not_go_to_another_machine_by_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVICE", "sesame-open-417")
    with pytest.raises(InvariError, match="is plain HTTP to another machine"):
        check_reranker(built("http+tei://gpu.example?key_env=MY_SERVICE"))
    check_reranker(built("http+tei://gpu.example?key_env=MY_SERVICE&plain_http_key=true"))
    check_reranker(built("http+tei://localhost:1?key_env=MY_SERVICE"))
    check_reranker(built("http+tei://[::1]:1?key_env=MY_SERVICE"))
    check_reranker(built("https+tei://gpu.example?key_env=MY_SERVICE"))


def test_methods_ask_the_service_step_by_step(server: RerankServer) -> None:
    spec = server.spec("tei", "ok", "concurrency=4")
    requests = [
        Request(f"q{number}", REQUEST.context, REQUEST.candidates[number:] + REQUEST.candidates[:number])
        for number in range(4)
    ]
    rankings = rank_all(built(f"sgs:base={spec}"), requests)
    assert {ranking.order for ranking in rankings} == {("id11", "id7", "id3", "id2")}
    assert {ranking.cost.calls for ranking in rankings} == {3}
