"""The team's rerankers: the one that is in use, and the one before it."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_invari import Candidate, Cost, Ranking, Request

__all__ = ["TeamSearch", "previous"]


def words(text: str) -> list[str]:
    """The words of a text in small letters, without commas."""
    return text.lower().replace(",", " ").split()


class TeamSearch:
    """Ranks by the share of the query's words that a title has; *brevity* is how much a short title helps."""

    def __init__(self, brevity: float = 0.1) -> None:
        self.brevity = brevity

    def rank(self, request: Request) -> Ranking:
        """Rank one list; equal scores are ordered by the products' ids, whatever order they arrive in."""
        wanted = set(words(request.context.text))
        scores = {product.id: self._score(wanted, words(product.text)) for product in request.candidates}
        return Ranking.from_scores(request, scores, cost=Cost(calls=1, depth=1))

    def fingerprint(self) -> Mapping[str, object]:
        """All that can change an answer; raise the version with the rule."""
        return {"rule": "team_search/2", "brevity": self.brevity}

    def _score(self, wanted: set[str], title: list[str]) -> float:
        found = len(wanted.intersection(title))
        return found / len(wanted) + self.brevity * found / len(title)


def previous(context: str, candidates: list[Candidate]) -> list[str]:
    """The rule before: products with equally many of the words stay in the order in which they arrive."""
    wanted = set(words(context))
    return [
        each.id for each in sorted(candidates, key=lambda each: -len(wanted.intersection(words(each.text))))
    ]
