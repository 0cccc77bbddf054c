"""Bootstrapping: the same list ranked in several orders, the rankings added up by Borda count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_invari.protocol import Ranking, Request, Reranker
from pytest_invari.protocol.capabilities import calls_of
from pytest_invari.rerankers.method import InnerSeed, Method, Steps, at_least

if TYPE_CHECKING:
    from pytest_invari.registry.build import Build


def make(
    build: Build, base: str = "zero_shot", n: int = 3, inner_seed: InnerSeed = "request", seed: int = 0
) -> Bootstrapping:
    """Borda count over the given order and n − 1 shuffles; n calls, depth 1 (P1 section 4, Hou et al.)."""
    at_least(1, n=n)
    return Bootstrapping(build.reranker(base), n=n, inner_seed=inner_seed, seed=seed)


class Bootstrapping(Method):
    """Aggregates *n* rankings of one list by Borda count.

    The first order is the given one, the others are independent shuffles. A candidate gets K − rank
    points (rank 1 is the best) from each ranking. Equal sums are ordered by a seeded hash of the id;
    the public code of P1 takes the input position, which would make the method order-dependent.

    Cost: n calls, depth 1 (times the base's own).
    """

    name = "bootstrapping"

    def __init__(
        self, base: Reranker, *, n: int = 3, inner_seed: InnerSeed = "request", seed: int = 0
    ) -> None:
        super().__init__(base, inner_seed=inner_seed, seed=seed)
        self.n = n

    def steps(self, request: Request) -> Steps:
        """All orders at once."""
        shuffles = (self.shuffled(request, request.ids, step) for step in range(1, self.n))
        answers = yield [request, *map(request.select, shuffles)]
        points = dict.fromkeys(request.ids, 0)
        for answer in answers:
            for rank, item in enumerate(answer.order, start=1):
                points[item] += len(request.candidates) - rank
        return Ranking.from_scores(request, points, tie_seed=self.seed)

    def options(self) -> Mapping[str, object]:
        """How many orders."""
        return {"n": self.n}

    def expected_calls(self, k: int) -> int:
        """Return n, times the base's calls."""
        return self.n * calls_of(self.base, k)
