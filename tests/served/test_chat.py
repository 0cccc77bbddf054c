"""Chat endpoints: a real server process, asked over HTTP."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.data.tasks import Task, TaskSet
from pytest_invari.errors import InvariError
from pytest_invari.lookup.registry import Build, ModelSettings, Registry
from pytest_invari.measure.observe import observe
from pytest_invari.measure.views import sample_views
from pytest_invari.protocol import Candidate, Context, HistoryEntry, Ranking, Request, rank_all
from pytest_invari.rerankers.served.chat import ChatEndpoint

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
        ("no_choices", "has no choices"),
        ("refusal", "refuses to answer: I cannot help with that."),
        ("filtered", "refuses to answer: content_filter"),
        ("empty", "the answer is no JSON: it is empty"),
        ("truncated", 'the answer is no JSON: {"choices"'),
        ("deep", "the answer is no JSON: [[["),
        ("unknown_model", "answers 404: .*The model `m` does not exist"),
        ("redirect", "answers 307, a redirect to"),
    ],
)
def test_a_service_that_cannot_rank_is_told_before_anything_is_ranked(
    chat_server: ChatServer, mode: str, message: str
) -> None:
    reranker = chat(chat_server.url(mode), "attempts=1")
    reranker.check()
    with pytest.raises(
        InvariError, match=message.replace("(", r"\(").replace(")", r"\)").replace("[", r"\[")
    ):
        reranker.prepare()
