"""Bootstrapping: the same list ranked in several orders, the rankings added up by Borda count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from pytest_invari.protocol import Cost, Ranking, Request, Reranker, rank_all
from pytest_invari.rerankers.wrapping import (
    InnerSeed,
    Wrapper,
    at_least,
    calls_of,
    shuffle_seed,
    worst_status,
)
from pytest_invari.views import shuffled

if TYPE_CHECKING:
    from pytest_invari.registry import Build

__all__ = ["Bootstrapping", "make"]


def make(
    build: Build, base: str = "zero_shot", n: int = 3, inner_seed: InnerSeed = "request", seed: int = 0
) -> Bootstrapping:
    """Borda count over the given order and n − 1 shuffles; n calls, depth 1 (P1 section 4, Hou et al.)."""
    at_least(1, n=n)
    return Bootstrapping(build.reranker(base), n=n, inner_seed=inner_seed, seed=seed)


class Bootstrapping(Wrapper):
    """Aggregates *n* rankings of one list by Borda count.

    The first order is the given one, the others are independent shuffles. A candidate gets K − rank
    points (rank 1 is the best) from each ranking. Equal sums are ordered by a seeded hash of the id;
    the public code of P1 takes the input position, which would make the method order-dependent.
    When a call fails, so does the request.

    Cost: n calls, depth 1 (times the base's own).
    """

    def __init__(
        self, base: Reranker, *, n: int = 3, inner_seed: InnerSeed = "request", seed: int = 0
    ) -> None:
        super().__init__(base)
        self.n = n
        self.inner_seed = inner_seed
        self.seed = seed

    def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        """Rank all orders of all requests in one batch."""
        orders = [order for request in requests for order in self._orders(request)]
        rankings = rank_all(self.base, orders)
        return [
            self._aggregate(request, rankings[index * self.n : (index + 1) * self.n])
            for index, request in enumerate(requests)
        ]

    def expected_calls(self, k: int) -> int:
        """Return n, times the base's calls."""
        return self.n * calls_of(self.base, k)

    def fingerprint(self) -> Mapping[str, object]:
        """The options and the base's fingerprint."""
        return {
            "reranker": "bootstrapping",
            "n": self.n,
            "inner_seed": self.inner_seed,
            "seed": self.seed,
            "base": super().fingerprint(),
        }

    def _orders(self, request: Request) -> list[Request]:
        seed = shuffle_seed("bootstrapping", self.inner_seed, self.seed, request)
        shuffles = [request.select(shuffled(request.ids, *seed, step)) for step in range(1, self.n)]
        return [request, *shuffles]

    def _aggregate(self, request: Request, rankings: Sequence[Ranking]) -> Ranking:
        cost = reduce(Cost.beside, (ranking.cost for ranking in rankings))
        for number, ranking in enumerate(rankings, start=1):
            if ranking.status == "failed":
                return Ranking.failed(f"call {number} of {self.n}: {ranking.fault}", cost)
        points = dict.fromkeys(request.ids, 0)
        for ranking in rankings:
            for rank, item in enumerate(ranking.order, start=1):
                points[item] += len(request.candidates) - rank
        ranking = Ranking.from_scores(request, points, cost=cost, tie_seed=self.seed)
        return replace(ranking, status=worst_status(rankings))
