"""The real library rerankers, over the same small cross-encoder and over a ranker of one's own."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.protocol import Candidate, Context, Ranking, Request, rank_all
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.rerankers.bridges.answerdotai import from_ranker
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import Task, TaskSet

TEXTS = ("star wars", "alien", "heat", "solaris")


def request() -> Request:
    return Request("q", Context("space opera"), tuple(Candidate(f"id {text}", text) for text in TEXTS))


def ranked_by(results: list[tuple[int, float | None]]) -> Ranking:
    """What comes of a ranker of the library that returns these places with these scores."""
    rank = import_module("rerankers.models.ranker")
    made = import_module("rerankers.results")
    documents = import_module("rerankers.documents")

    class Fixed(rank.BaseRanker):  # type: ignore[misc,name-defined]  # the library is untyped
        def __init__(self) -> None:
            self.verbose = 0

        def rank(self, query: str, docs: list[str], doc_ids: list[int]) -> Any:
            found = [
                made.Result(documents.Document(docs[place], doc_id=doc_ids[place]), score=score, rank=rank)
                for rank, (place, score) in enumerate(results, 1)
            ]
            return made.RankedResults(results=found, query=query, has_scores=results[0][1] is not None)

        def score(self, query: str, doc: str) -> float:
            raise AssertionError("lists are ranked, and no text is scored by itself")

    return rank_all(from_ranker(Fixed()), [request()])[0]


def test_a_model_of_the_library_ranks_as_the_library_does(cross_encoder_folder: Path) -> None:
    registry = Registry(cross_encoder_folder)
    tasks = TaskSet.of("t", [Task("q", Context("space opera"), request().candidates)])
    build = Build(ModelSettings(), tasks, len(TEXTS), registry)
    reranker = registry.build(f"answerdotai:{cross_encoder_folder}:model_type=cross-encoder", build)
    (ranking,) = rank_all(reranker, [request()])
    library = import_module("rerankers").Reranker(
        str(cross_encoder_folder), model_type="cross-encoder", verbose=0
    )
    expected = library.rank(query="space opera", docs=list(TEXTS), doc_ids=list(range(len(TEXTS))))
    assert ranking.order == tuple(f"id {each.document.text}" for each in expected.results)
    assert ranking.scores == pytest.approx([each.score for each in expected.results])


def test_results_are_joined_by_the_place_and_not_by_the_text() -> None:
    assert ranked_by([(2, 0.5), (0, 0.25), (3, 0.125), (1, 0.0)]).order == (
        "id heat",
        "id star wars",
        "id solaris",
        "id alien",
    )


def test_a_ranker_without_scores_gives_an_order() -> None:
    ranking = ranked_by([(2, None), (0, None), (3, None), (1, None)])
    assert ranking.scores is None
    assert ranking.order[0] == "id heat"


@pytest.mark.parametrize(
    ("results", "fault"),
    [
        ([(0, 0.5), (1, 0.25), (2, 0.0)], "lacks 'id solaris'"),
        ([(0, 0.5), (1, 0.25), (2, 0.0), (2, 0.0)], "repeats 'id heat'"),
        ([(0, 0.5), (1, float("nan")), (2, 0.0), (3, 0.0)], "score of 'id alien' is nan"),
    ],
)
def test_what_is_no_ranking_fails_with_the_ids(results: list[tuple[int, float | None]], fault: str) -> None:
    ranking = ranked_by(results)
    assert ranking.status == "failed"
    assert fault in ranking.fault
