"""Rerankers of castorini's rank_llm: RankZephyr, RankGPT and their kin."""

from __future__ import annotations

from typing import Any

from pytest_invari.protocol import Cost
from pytest_invari.rerankers.bridges.bridge import Answer, Bridge


class RankLLM(Bridge):
    """Ranks by ``reranker.rerank_batch``; places in the list are the ids that the library sees.

    All candidates come with the same first-stage score, so that the order shown is all it knows of one.
    """

    package = "rank-llm"
    module = "rank_llm"
    early_fingerprint = True

    def answer(self, query: str, texts: list[str]) -> Answer:
        """The order that the library returns, with what its calls took."""
        from rank_llm.data import Candidate, Query, Request

        listed = [Candidate(place, 0.0, {"contents": text}) for place, text in enumerate(texts)]
        request = Request(Query(query, "q"), listed)
        (result,) = self.library.rerank_batch([request], rank_start=0, rank_end=len(texts))
        calls = result.invocations_history or []
        cost = Cost(
            calls=max(1, len(calls)),
            depth=max(1, len(calls)),
            tokens_in=sum(each.input_token_count for each in calls),
            tokens_out=sum(each.output_token_count for each in calls),
        )
        return Answer(order=[each.docid for each in result.candidates], cost=cost)


def from_reranker(reranker: Any, name: str = "") -> RankLLM:
    """A reranker of one that rank_llm made, for a conftest; *name* tells it from others in the records."""
    return RankLLM({"model": name or type(reranker).__name__}, ready=reranker)
