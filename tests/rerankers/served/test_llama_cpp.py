"""Chat endpoints against llama.cpp's own server and a real model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.observation.views import sample_views
from pytest_invari.protocol import Candidate, Context, HistoryEntry, Request, rank_all
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import TaskSet

pytestmark = pytest.mark.model

FILMS = ("Heat (1995)", "Alien (1979)", "Amélie (2001)", "Toy Story (1995)", "Fargo (1996)")
HISTORY = tuple(HistoryEntry(text) for text in ("Casablanca (1942)", "Up (2009)", "The Matrix (1999)"))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).parent / "llama_server.py")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip().removeprefix("http")
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def ready(address: str, spec: str, **options: str) -> Any:
    given = {"model": "m", "concurrency": "1", **options}
    asked = "&".join(f"{name}={value}" for name, value in given.items())
    registry = Registry(Path("/nonexistent"))
    build = Build(ModelSettings(), TaskSet.of("films", ()), len(FILMS), registry, {})
    reranker: Any = registry.build(spec.replace("CHAT", f"chat{address}?{asked}"), build)
    reranker.check()
    reranker.prepare()
    return reranker


def views(count: int) -> list[Request]:
    candidates = {str(number): Candidate(str(number), text) for number, text in enumerate(FILMS)}
    return [
        Request("q", Context("crime", HISTORY), tuple(candidates[item] for item in view.order))
        for view in sample_views("q", list(candidates), count)
    ]


@pytest.mark.parametrize("prefill", ["false", "true"])
def test_lists_are_ranked_and_their_common_beginning_is_read_once(address: str, prefill: str) -> None:
    reranker = ready(address, "CHAT", prefill=prefill)
    assert reranker.fingerprint()["audit"] == "tokenize"
    rankings = rank_all(reranker, views(4))
    assert {each.status for each in rankings} == {"ok"}, rankings
    assert all(0.3 < each.diagnostics["label_mass"] <= 1 for each in rankings)
    assert {each.cost.tokens_out for each in rankings} == {1}
    assert all(each.cost.tokens_cached > 40 for each in rankings[1:])
    assert all(each.cost.tokens_cached < each.cost.tokens_in for each in rankings)


def test_labels_that_are_not_single_tokens_are_named(address: str) -> None:
    ready(address, "CHAT", alphabet="Yes+No+first+second+third", top_logprobs="1000")
    with pytest.raises(InvariError, match=r"not single tokens of .*: 'Zqx', 'epsilonic'; give others"):
        ready(address, "CHAT", alphabet="A+Zqx+B+epsilonic+C", top_logprobs="1000")


def test_a_method_asks_it(address: str) -> None:
    rankings = rank_all(ready(address, "sgs:select=2,base=(CHAT)"), views(2))
    assert [(each.status, each.cost.calls, each.cost.tokens_out) for each in rankings] == [("ok", 2, 2)] * 2
