"""What a user may write, as type checkers must see it: rerankers, tests, and mistakes that they must find.

A line that must be refused says so with its error's code, and a strict checker tells where it is not.
"""

from collections.abc import Sequence

import pytest_invari
from pytest_invari import (
    Candidate,
    Context,
    Cost,
    HistoryEntry,
    InvariError,
    OrderDependentError,
    Ranking,
    RankingError,
    Request,
    Reranker,
    Studies,
    Study,
    Task,
    TaskSet,
    assert_permutation_invariant,
)


class LongestFirst:
    """A reranker by its method alone."""

    def rank(self, request: Request) -> Ranking:
        scores = {candidate.id: float(len(candidate.text)) for candidate in request.candidates}
        return Ranking.from_scores(request, scores, cost=Cost(calls=1, depth=1))


class NoReranker:
    def rank(self, request: str) -> Ranking:
        raise RankingError(request)


taken: Reranker = LongestFirst()
refused: Reranker = NoReranker()  # type: ignore[assignment]


def longest_first(context: str, texts: Sequence[str]) -> list[float]:
    return [float(len(text)) for text in texts]


task = Task("q1", Context("space", (HistoryEntry("Heat", 4.0),)), (Candidate("a", "Alien"),))
tasks = TaskSet.of("films", [task])
candidate: Candidate = task.candidates[0]
wrong_id = Candidate(1, "Alien")  # type: ignore[arg-type]
misspelt = pytest_invari.Candidat  # type: ignore[attr-defined]
version: str = pytest_invari.__version__


def test_study(invari: Studies) -> None:
    study: Study = invari.study(longest_first, tasks, views=5, k=1)
    study.assert_at_least("loc", 0.8)
    estimate: float = study.interval("loc").estimate
    study.assert_at_most("loc", str(estimate))  # type: ignore[arg-type]


def test_invariance() -> None:
    try:
        assert_permutation_invariant(LongestFirst(), [task])
    except OrderDependentError as error:
        print(error.witness.orders)
    except InvariError as error:
        print(error.args)
