"""SGS: the best candidates are taken out, the rest is shuffled and ranked again, until none is left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_invari.protocol import Ranking, Request, Reranker
from pytest_invari.protocol.capabilities import calls_of
from pytest_invari.rerankers.method import InnerSeed, Method, Steps, at_least

if TYPE_CHECKING:
    from pytest_invari.registry.build import Build


def make(
    build: Build, base: str = "zero_shot", select: int = 1, inner_seed: InnerSeed = "request", seed: int = 0
) -> SequentialSelection:
    """Pick the best, remove it, shuffle the rest, repeat; ceil(K / select) calls in a row (P1 section 4)."""
    at_least(1, select=select)
    return SequentialSelection(build.reranker(base), select=select, inner_seed=inner_seed, seed=seed)


class SequentialSelection(Method):
    """Takes the top *select* of a list, removes them, shuffles the remaining candidates, and goes on.

    The first call sees the given order. A single candidate that remains needs no call, so there are
    ⌈K/select⌉ calls or one less; P1 counts ⌈K/select⌉, which stands in ``diagnostics["paper_calls"]``.

    Cost: ⌈K/select⌉ calls, depth the same (times the base's own).
    """

    name = "sgs"

    def __init__(
        self, base: Reranker, *, select: int = 1, inner_seed: InnerSeed = "request", seed: int = 0
    ) -> None:
        super().__init__(base, inner_seed=inner_seed, seed=seed)
        self.select = select

    def steps(self, request: Request) -> Steps:
        """One call after the other, each on what remains."""
        selected: list[str] = []
        remaining = request.ids
        step = 0
        while len(remaining) > 1:
            if step:
                remaining = self.shuffled(request, remaining, step)
            (answer,) = yield [request.select(remaining)]
            selected += answer.order[: self.select]
            remaining = answer.order[self.select :]
            step += 1
        paper_calls = -(-len(request.candidates) // self.select)
        return Ranking((*selected, *remaining), diagnostics={"paper_calls": paper_calls})

    def options(self) -> Mapping[str, object]:
        """How many are taken at a time."""
        return {"select": self.select}

    def expected_calls(self, k: int) -> int:
        """Return the base's calls for the lists of k, k − select, … candidates, down to two."""
        return sum(calls_of(self.base, size) for size in range(k, 1, -self.select))
