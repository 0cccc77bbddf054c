"""Chat endpoints: a real server process, asked over HTTP."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.observation.observation import Observation
from pytest_invari.observation.observe import observe
from pytest_invari.observation.views import sample_views
from pytest_invari.protocol import Candidate, Context, HistoryEntry, Ranking, Request, rank_all
from pytest_invari.records.jsonl import read_rankings, write_rankings
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.rerankers.served.chat import ChatEndpoint
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import Task, TaskSet

from .conftest import ChatServer

K = 6
LABELS = "ABCDEF"


def build(spec: str, k: int = K, **changes: Any) -> Any:
    registry = Registry(Path("/nonexistent"))
    return registry.build(spec, Build(ModelSettings(), TaskSet.of("films", ()), k, registry, {}, **changes))


def chat(url: str, *options: str, k: int = K) -> ChatEndpoint:
    made = build("chat" + "&".join((f"{url.removeprefix('http')}?model=m", *options)), k)
    assert isinstance(made, ChatEndpoint)
    return made


def films(*numbers: int, query: str = "q", text: str = "films") -> Request:
    return Request(query, Context(text), tuple(Candidate(f"i{n}", f"film {n}") for n in numbers))


def ready(reranker: Any) -> Any:
    reranker.check()
    reranker.prepare()
    return reranker


def expected(numbers: tuple[int, ...]) -> dict[str, float]:
    """The server's model: softmax of a quarter of the number, nine tenths of all probability."""
    total = math.log(sum(math.exp(n / 4) for n in numbers) / 0.9)
    return {f"i{n}": n / 4 - total for n in numbers}


def test_scores_are_the_log_probabilities_of_labels_over_both_forms(chat_server: ChatServer) -> None:
    numbers = (3, 1, 5, 2, 0, 4)
    (ranking,) = rank_all(ready(chat(chat_server.url())), [films(*numbers)])
    assert (ranking.status, ranking.order) == ("ok", ("i5", "i4", "i3", "i2", "i1", "i0"))
    assert ranking.scores is not None
    assert dict(zip(ranking.order, ranking.scores, strict=True)) == pytest.approx(expected(numbers))
    assert (ranking.cost.calls, ranking.cost.depth, ranking.cost.tokens_out) == (1, 1, 1)
    assert ranking.cost.tokens_in > 30
    assert ranking.cost.seconds > 0
    assert ranking.diagnostics["served_model"] == "served-m"
    assert ranking.diagnostics["system_fingerprint"] == "fp_1"
    assert ranking.diagnostics["label_mass"] == pytest.approx(0.9)
    assert ranking.diagnostics["labels"] == "item"
    assert 0 < ranking.diagnostics["entropy"] < math.log(K)


def test_what_is_sent(chat_server: ChatServer) -> None:
    url = chat_server.url()
    history = (HistoryEntry("Alien"), HistoryEntry("Heat"))
    request = Request("q", Context("space\nopera", history), films(1, 2).candidates)
    chat(url, "labels=position", "noun=films").rank(request)
    (sent,) = chat_server.seen(url)
    assert sent["path"].endswith("/v1/chat/completions")
    assert "authorization" not in sent["headers"]
    message = sent["body"].pop("messages")
    assert sent["body"] == {
        "model": "m",
        "temperature": 0,
        "max_tokens": 1,
        "logprobs": True,
        "top_logprobs": 20,
    }
    assert message == [
        {
            "role": "user",
            "content": "Query: space opera\nThe user liked these films, the most recent first:\nAlien\nHeat\n"
            "Which of these candidates will the user like best?\nA. film 1\nB. film 2\n"
            "Answer with the letter of the candidate only.\nAnswer:",
        }
    ]


def test_options_that_change_what_is_sent(chat_server: ChatServer) -> None:
    url = chat_server.url()
    options = ("prefill=true", "thinking=false", "length_field=max_completion_tokens", "text_characters=4")
    chat(url + "/v1", *options, "labels=position").rank(films(1, 2))
    (sent,) = chat_server.seen(url)
    assert sent["path"] == f"{url.removeprefix(chat_server.origin)}/v1/chat/completions"
    assert sent["body"]["max_completion_tokens"] == 1
    assert "max_tokens" not in sent["body"]
    assert sent["body"]["chat_template_kwargs"] == {"enable_thinking": False}
    assert (sent["body"]["continue_final_message"], sent["body"]["add_generation_prompt"]) == (True, False)
    user, assistant = sent["body"]["messages"]
    assert assistant == {"role": "assistant", "content": "Answer:"}
    assert "\nA. film\nB. film\n" in user["content"]


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("no_logprobs", "has no log-probabilities (logprobs.content)"),
        ("no_alternatives", "has no log-probabilities of other tokens"),
        ("few", "lists 5 tokens where top_logprobs=20 were asked for, too few for lists of 6"),
        ("thinking", "begins to answer with '<think>' and lists no label; try thinking=false"),
        ("nan", "is nan, not a number"),
        ("vast", "not a number"),
        ("no_choices", "has no choices"),
        ("error_in_200", "has no choices: 'out of memory'"),
        ("refusal", "refuses to answer: I cannot help with that."),
        ("filtered", "refuses to answer: content_filter"),
        ("empty", "the answer is no JSON: it is empty"),
        ("truncated", 'the answer is no JSON: {"choices"'),
        ("deep", "the answer is no JSON: [[["),
        ("unknown_model", 'answers 404: {"error": {"message": "The model `m` does not exist."'),
        ("redirect", "answers 307, a redirect to"),
    ],
)
def test_a_service_that_cannot_rank_is_told_before_anything_is_ranked(
    chat_server: ChatServer, mode: str, message: str
) -> None:
    reranker = chat(chat_server.url(mode), "attempts=1")
    reranker.check()
    with pytest.raises(InvariError) as raised:
        reranker.prepare()
    assert message in str(raised.value)


def test_labels_that_are_not_listed_make_the_ranking_partial(chat_server: ChatServer) -> None:
    reranker = ready(chat(chat_server.url("no_b"), "labels=position"))
    request = films(0, 5, 1, 2, 3, 4)
    (ranking,) = rank_all(reranker, [request])
    assert (ranking.status, ranking.scores) == ("partial", None)
    assert ranking.order == ("i4", "i3", "i2", "i1", "i0", "i5")
    assert ranking.diagnostics["missing_labels"] == ["B"]
    assert ranking.fault == "partial: labels that are not among the tokens listed: B"
    assert ranking.diagnostics["label_audit"] == "by answer, not seen: B"
    # For a list that bears no B nothing is missing.
    assert rank_all(reranker, [films(3)])[0].status == "ok"


def test_a_partial_ranking_counts_as_a_failed_view() -> None:
    assert not Ranking(("i0",), status="partial").is_valid


def test_what_a_service_says_can_be_kept_in_records(chat_server: ChatServer, tmp_path: Path) -> None:
    (ranking,) = rank_all(chat(chat_server.url("odd_text"), "labels=position"), [films(5, 1)])
    assert ranking.diagnostics["answer"] == "?\x00\x1b[2J"
    assert ranking.cost.tokens_in == 0
    seen = Observation("q", "canonical", ("i5", "i1"), ranking)
    write_rankings(tmp_path / "kept.jsonl", [seen])
    [kept] = read_rankings(tmp_path / "kept.jsonl")
    assert kept.seen.ranking.diagnostics == ranking.diagnostics


def test_a_list_without_any_label_in_the_answer_fails(chat_server: ChatServer) -> None:
    (ranking,) = rank_all(chat(chat_server.url("thinking")), [films(1, 2)])
    assert ranking.status == "failed"
    assert "begins to answer with '<think>' and lists no label" in ranking.fault
    assert ranking.diagnostics["served_model"] == "served-m"
    assert (ranking.cost.calls, ranking.cost.tokens_out) == (1, 1)


@pytest.mark.parametrize("mode", ["twice_listed", "same_text"])
def test_a_token_counts_once_and_two_tokens_of_one_text_twice(chat_server: ChatServer, mode: str) -> None:
    (ranking,) = rank_all(chat(chat_server.url(mode)), [films(3, 1, 5)])
    assert ranking.scores is not None
    assert dict(zip(ranking.order, ranking.scores, strict=True)) == pytest.approx(expected((3, 1, 5)))


@pytest.mark.parametrize("mode", ["vllm", "llamacpp"])
def test_labels_are_audited_by_the_services_tokenizer(chat_server: ChatServer, mode: str) -> None:
    reranker = chat(chat_server.url(mode))
    assert reranker.fingerprint()["audit"] == "not made"
    assert ready(reranker).fingerprint()["audit"] == "tokenize"
    assert rank_all(reranker, [films(1, 2)])[0].diagnostics["label_audit"] == "tokenize"
    words = "alphabet=Yes+No+first+second+A+B"
    ready(chat(chat_server.url(mode), words))
    ready(chat(chat_server.url(mode), words, "prefill=true"))
    for prefill in ("true", "false"):
        reranker = chat(chat_server.url(mode), "alphabet=A+Zq+C+other+E+F", f"prefill={prefill}")
        with pytest.raises(InvariError, match=r"not single tokens of .* answers: 'Zq', 'other'; give others"):
            ready(reranker)


def test_labels_are_audited_by_answers_where_no_tokenizer_can_be_asked(chat_server: ChatServer) -> None:
    assert ready(chat(chat_server.url())).fingerprint()["audit"] == "by answer"
    reranker = chat(chat_server.url(), "alphabet=A+Zq+C+other+E+F")
    with pytest.raises(InvariError, match=r"not single tokens of .* answers: 'Zq', 'other'; give others"):
        ready(reranker)


def test_an_audit_is_made_once_a_session(chat_server: ChatServer) -> None:
    url = chat_server.url("vllm")
    registry, shared = Registry(Path("/nonexistent")), dict[object, object]()
    session = Build(ModelSettings(), TaskSet.of("films", ()), K, registry, shared)
    spec = f"chat{url.removeprefix('http')}?model=m"
    ready(registry.build(spec, session))
    asked = len(chat_server.seen(url))
    again = ready(registry.build(spec, session))
    assert len(chat_server.seen(url)) == asked == 1 + K
    assert again.fingerprint()["audit"] == "tokenize"


@pytest.mark.parametrize(
    ("options", "k", "message"),
    [
        ((), 27, 'lists of 27 candidates need 27 labels, and there are 26; give more by alphabet="A B C …"'),
        ((), 21, "lists of 21 candidates need top_logprobs=21 or more, not 20; OpenAI and Ollama allow 20"),
        (("top_logprobs=5",), 6, "need top_logprobs=6 or more, not 5"),
        (("top_logprobs=0",), 6, "option 'top_logprobs' must be from 1 to 1000, not 0"),
        (("alphabet=A+B+A",), 3, "option 'alphabet' repeats 'A'"),
        (("prompt=likes",), 3, "a chat endpoint needs a prompt that shows '{label}', which 'likes' does not"),
        (("text_characters=-1",), 3, "option 'text_characters' must be at least 0, not -1"),
        (("labels=item2",), 3, "option 'labels' must be one of item, position, redrawn"),
        (("key_file=/nonexistent/key",), 3, "option 'key_file': /nonexistent/key: No such file"),
        (("key_env=NO_SUCH_NAME",), 3, "the environment variable NO_SUCH_NAME is empty or not set"),
        (("api_key=abc",), 3, "a key must not stand in an address"),
        (("concurrency=0",), 3, "option 'concurrency' must be from 1 to 1024, not 0"),
    ],
)
def test_bad_options_are_refused_before_anything_is_sent(
    chat_server: ChatServer, options: tuple[str, ...], k: int, message: str
) -> None:
    url = chat_server.url()
    with pytest.raises(InvariError) as raised:
        chat(url, *options, k=k).check()
    assert message in str(raised.value)
    assert not chat_server.seen(url)


def test_a_model_is_needed(chat_server: ChatServer) -> None:
    with pytest.raises(InvariError, match="needs a value for option 'model'"):
        build(f"chat{chat_server.url().removeprefix('http')}")


def test_more_than_twenty_candidates_where_the_service_lists_more(chat_server: ChatServer) -> None:
    reranker = ready(chat(chat_server.url(), "top_logprobs=60", k=26))
    (ranking,) = rank_all(reranker, [films(*range(26))])
    assert (ranking.status, ranking.order[0]) == ("ok", "i25")
    (ranking,) = rank_all(reranker, [films(*range(27))])
    assert (ranking.status, "only 26 labels" in ranking.fault) == ("failed", True)


@pytest.mark.parametrize("mode", ["limited", "twice", "reset", "gateway"])
def test_what_passes_is_asked_again(chat_server: ChatServer, mode: str) -> None:
    (ranking,) = rank_all(chat(chat_server.url(mode)), [films(1, 2)])
    assert (ranking.status, ranking.order) == ("ok", ("i2", "i1"))
    assert ranking.diagnostics["attempts"] == {"limited": 2, "twice": 3, "reset": 2, "gateway": 2}[mode]


def test_a_list_that_the_service_fails_leaves_the_others(chat_server: ChatServer) -> None:
    requests = [films(n, n + 2, query=f"q{n}") for n in range(4)]
    rankings = rank_all(chat(chat_server.url("odd"), "attempts=1"), requests)
    assert [each.status for each in rankings] == ["ok", "failed", "ok", "failed"]
    assert [each.is_transient for each in rankings] == [False, True, False, True]


KEY = "planted-Key.0123456789"


@pytest.mark.parametrize("by", ["env", "file"])
@pytest.mark.parametrize("mode", ["ok", "hostile", "echoing", "unknown_model", "truncated"])
def test_a_key_is_sent_and_shown_nowhere(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, by: str, mode: str
) -> None:
    url = chat_server.url(mode)
    if by == "env":
        monkeypatch.setenv("MY_SERVER", KEY)
        option = "key_env=MY_SERVER"
    else:
        (tmp_path / "key").write_text(f"{KEY}\n")
        option = f"key_file={tmp_path / 'key'}"
    reranker = chat(url, option)
    reranker.check()
    told = ""
    try:
        reranker.prepare()
    except InvariError as error:
        told = f"{error!r} {error.__cause__!r} {error.__context__!r}"
    assert bool(told) == (mode not in ("ok", "echoing"))
    rankings = rank_all(reranker, [films(1, 2)])
    assert {request["headers"]["authorization"] for request in chat_server.seen(url)} == {f"Bearer {KEY}"}
    shown = f"{told} {rankings!r} {reranker.fingerprint()!r} {reranker!r} {vars(reranker)!r}"
    assert KEY not in shown
    assert ("(hidden)" in shown) == (mode in ("hostile", "echoing"))


def test_the_key_of_openai_is_for_openai_alone(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    url = chat_server.url()
    rank_all(chat(url), [films(1, 2)])
    assert "authorization" not in chat_server.seen(url)[0]["headers"]
    for address in ("https+chat://api.openai.com.example.org", "https+chat://localhost:8000"):
        assert not build(f"{address}?model=m").client._headers().get("authorization")
    meant = build("https+chat://api.openai.com/v1?model=m").client._headers()
    assert meant["authorization"] == f"Bearer {KEY}"


def test_labels_bound_to_places_show_a_bias_for_places(chat_server: ChatServer) -> None:
    request = films(1, 2, 3, 4, 5)
    for binding in ("position", "redrawn"):
        reranker = chat(chat_server.url("biased"), f"labels={binding}")
        (ranking,) = rank_all(reranker, [request])
        assert ranking.order == request.ids
        assert ranking.diagnostics["labels"] == binding


@pytest.mark.parametrize("method", ["sgs", "bootstrapping", "stella"])
def test_methods_work_over_a_chat_endpoint(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, method: str
) -> None:
    monkeypatch.setenv("INVARI_CACHE", str(tmp_path))
    base = f"chat{chat_server.url().removeprefix('http')}?model=m"
    tasks = TaskSet.of("films", (task(query) for query in range(3)))
    registry = Registry(Path("/nonexistent"))
    options = ",probes=3,repeats=1" if method == "stella" else ""
    session = Build(ModelSettings(), tasks, K, registry, {})
    reranker = registry.build(f"{method}:base={base}{options}", session)
    ready(reranker)
    rankings = rank_all(reranker, [films(3, 1, 5, 2, 0, 4), films(0, 1, 2, 3, 4, 5, query="r")])
    assert [each.status for each in rankings] == ["ok", "ok"], rankings
    # The server's model has no bias for places, so there is nothing for STELLA to learn from.
    if method != "stella":
        assert {each.order for each in rankings} == {("i5", "i4", "i3", "i2", "i1", "i0")}
    assert all(each.cost.calls > 1 and each.cost.tokens_in > 100 for each in rankings)


def task(query: int, context: str = "films") -> Task:
    numbers = [(query + place) % K for place in range(K)]
    candidates = tuple(Candidate(f"q{query}i{number}", f"film {number}") for number in numbers)
    return Task(f"q{query}", Context(context), candidates, {candidates[0].id: 1.0}, 1)


def test_views_of_a_query_follow_one_another_and_begin_alike(chat_server: ChatServer) -> None:
    url, concurrency, views = chat_server.url(), 4, 6
    tasks = TaskSet.of("films", (task(query, f"query {query} " + "space opera " * 50) for query in range(8)))
    drawn = {each.query_id: sample_views(each.query_id, each.ids, views) for each in tasks.tasks}
    seen = observe(chat(url, f"concurrency={concurrency}"), tasks, drawn)
    assert {each.ranking.status for each in seen} == {"ok"}
    texts = [request["body"]["messages"][0]["content"] for request in chat_server.seen(url)]
    arrived = [text.split()[2] for text in texts]
    assert len(arrived) == 8 * views
    for query in range(8):
        places = [place for place, name in enumerate(arrived) if name == str(query)]
        assert places[-1] - places[0] < views + 2 * concurrency
        own = [text for text in texts if text.startswith(f"Query: query {query} ")]
        assert len({text.partition("best?\n")[0] for text in own}) == 1
    # The server counts as cached what begins like any prompt before: all but the first view of each query.
    shared = [each.ranking.cost.tokens_cached / each.ranking.cost.tokens_in for each in seen]
    assert sum(share > 0.7 for share in shared) >= 8 * (views - 1)


def test_a_run_of_pytest_over_a_chat_endpoint(
    chat_server: ChatServer, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SERVER", KEY)
    rows = [
        {
            "query_id": f"q{query}",
            "text": "films",
            "candidates": [
                {"id": f"q{query}i{n}", "text": f"film {n}", "relevance": 1.0 if n == 5 else None}
                for n in range(K)
            ],
        }
        for query in range(32)
    ]
    (pytester.path / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    pytester.path.joinpath("small.invari.toml").write_text(
        '[suite]\nname = "small"\n[profile.quick]\ndatasets = ["tasks.jsonl"]\nk = 6\nviews = 4\n'
        '[[criterion]]\nname = "loc"\nmetric = "loc"\nat_least = 0.8\n'
    )
    url = chat_server.url("echoing")
    spec = f"chat{url.removeprefix('http')}?model=m&key_env=MY_SERVER"
    arguments = (
        *("--invari-suite=small.invari.toml", f"--reranker={spec}"),
        *("--invari-records=records", "--invari-no-audit"),
    )
    result = pytester.runpytest_subprocess("-W", "error", *arguments, "--invari-json=report.json")
    result.assert_outcomes(passed=1)
    asked = len(chat_server.seen(url))
    assert asked == 32 * 4 + 1 + 1
    again = pytester.runpytest_subprocess("-W", "error", *arguments)
    again.assert_outcomes(passed=1)
    again.stdout.fnmatch_lines(["records: 128 of 128 rankings came from records in records"])
    assert len(chat_server.seen(url)) == asked + 2
    kept = [path.read_bytes() for path in pytester.path.rglob("*") if path.is_file()]
    assert len(kept) > 4
    assert not any(KEY.encode() in content for content in kept)
    assert KEY not in result.stdout.str() + result.stderr.str()


def test_loading_the_plugin_and_listing_rerankers_import_no_http(pytester: pytest.Pytester) -> None:
    code = (
        "import sys, pytest_invari.plugin; "
        "from pytest_invari.registry.registry import Registry; "
        "assert 'chat' in Registry().reranker_names(); "
        "assert not {'httpx2', 'numpy', 'torch'} & set(sys.modules), sys.modules"
    )
    assert pytester.run(sys.executable, "-c", code).ret == 0
