"""The real data types of rank_llm, and rerankers with its interface; its own need vLLM to be imported."""

from __future__ import annotations

from typing import Any

from rank_llm.data import InferenceInvocation, Result

from pytest_invari.protocol import Candidate, Context, Request, rank_all
from pytest_invari.rerankers.bridges.rank_llm import from_reranker

REQUEST = Request("q", Context("space"), tuple(Candidate(f"id {text}", text) for text in ("b", "c", "a")))


class Identity:
    """As ``rank_llm.rerank.IdentityReranker``."""

    def rerank_batch(self, requests: list[Any], rank_start: int = 0, rank_end: int = 100) -> list[Any]:
        assert (rank_start, rank_end) == (0, len(REQUEST.candidates))
        return [Result(each.query, list(each.candidates), []) for each in requests]


def test_the_order_that_the_library_returns() -> None:
    (ranking,) = rank_all(from_reranker(Identity()), [REQUEST])
    assert ranking.order == REQUEST.ids
    assert ranking.scores is None


class Sorting(Identity):
    """Sorts by text in two calls that wait for one another."""

    def rerank_batch(self, requests: list[Any], rank_start: int = 0, rank_end: int = 100) -> list[Any]:
        results = super().rerank_batch(requests, rank_start, rank_end)
        call = InferenceInvocation("prompt", "answer", 30, 4)
        return [
            Result(each.query, sorted(each.candidates, key=lambda one: one.doc["contents"]), [call, call])
            for each in results
        ]


def test_calls_and_tokens_are_those_of_its_invocations() -> None:
    (ranking,) = rank_all(from_reranker(Sorting()), [REQUEST])
    assert ranking.order == ("id a", "id b", "id c")
    cost = ranking.cost
    assert (cost.calls, cost.depth, cost.tokens_in, cost.tokens_out) == (2, 2, 60, 8)


class Losing(Identity):
    def rerank_batch(self, requests: list[Any], rank_start: int = 0, rank_end: int = 100) -> list[Any]:
        return [Result(each.query, each.candidates[1:], []) for each in requests]


def test_a_list_that_comes_back_short_fails_with_the_ids() -> None:
    (ranking,) = rank_all(from_reranker(Losing()), [REQUEST])
    assert ranking.status == "failed"
    assert "lacks 'id b'" in ranking.fault
