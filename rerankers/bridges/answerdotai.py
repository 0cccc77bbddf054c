"""Rankers of AnswerDotAI's library ``rerankers``, whatever stands behind them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_invari.protocol import RankingError
from pytest_invari.rerankers.bridges.bridge import Answer, Bridge

if TYPE_CHECKING:
    from pytest_invari.registry.build import Build


class AnswerDotAI(Bridge):
    """Ranks by ``ranker.rank(query, docs, doc_ids)``; results are joined by the place given as their id."""

    package = "rerankers"
    module = "rerankers"
    early_fingerprint = True

    def load(self) -> Any:
        """The ranker that the library makes of model and type."""
        # Not an import statement: in a checkout of this project a folder has the library's name.
        ranker = import_module("rerankers").Reranker(
            self.settings["model"], model_type=self.settings["model_type"] or None, verbose=0
        )
        if ranker is None:
            raise RankingError(f"the library makes no ranker of {self.settings['model']!r}")
        return ranker

    def answer(self, query: str, texts: list[str]) -> Answer:
        """By score, or by rank where the library gives no scores."""
        results = self.library.rank(query=query, docs=texts, doc_ids=list(range(len(texts)))).results
        places = [each.document.doc_id for each in results]
        if len(set(places)) != len(texts) or any(each.score is None for each in results):
            return Answer(order=places)
        return Answer({place: float(each.score) for place, each in zip(places, results, strict=True)})


def make(build: Build, model: str, model_type: str = "") -> AnswerDotAI:
    """Rank by AnswerDotAI's library rerankers, as in answerdotai:MODEL; 1 call.

    Args:
        build: what the session offers.
        model: what the library calls it.
        model_type: the library's word for its kind; by default what it takes the name for.
    """
    return AnswerDotAI({"model": model, "model_type": model_type}, shared=build.shared)


def from_ranker(ranker: Any) -> AnswerDotAI:
    """A reranker of a ranker that is made already, for a conftest."""
    name = str(getattr(ranker, "model_name_or_path", "") or type(ranker).__name__)
    return AnswerDotAI({"model": name, "model_type": type(ranker).__name__}, ready=ranker)
