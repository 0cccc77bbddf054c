"""SGS: the best candidates are taken out, the rest is shuffled and ranked again, until none is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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

__all__ = ["SequentialSelection", "make"]


def make(
    build: Build, base: str = "zero_shot", select: int = 1, inner_seed: InnerSeed = "request", seed: int = 0
) -> SequentialSelection:
    """Pick the best, remove it, shuffle the rest, repeat; ceil(K / select) calls in a row (P1 section 4)."""
    at_least(1, select=select)
    return SequentialSelection(build.reranker(base), select=select, inner_seed=inner_seed, seed=seed)


class SequentialSelection(Wrapper):
    """Takes the top *select* of a list, removes them, shuffles the remaining candidates, and goes on.

    The first call sees the given order. A single candidate that remains needs no call, so there are
    ⌈K/select⌉ calls or one less; P1 counts ⌈K/select⌉, which stands in ``diagnostics["paper_calls"]``.
    With ``inner_seed="request"``, as in the public code of P1, the shuffles depend on the given order;
    with ``"query"`` only on the seed, the query, the step and what remains. All requests go side by
    side: step t of each in one batch. When a call fails, so does its request, and only that.

    Cost: ⌈K/select⌉ calls, depth the same (times the base's own).
    """

    def __init__(
        self, base: Reranker, *, select: int = 1, inner_seed: InnerSeed = "request", seed: int = 0
    ) -> None:
        super().__init__(base)
        self.select = select
        self.inner_seed = inner_seed
        self.seed = seed

    def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        """Rank the requests in step."""
        streams = [
            _Stream(request, request.ids, shuffle_seed("sgs", self.inner_seed, self.seed, request))
            for request in requests
        ]
        while waiting := [stream for stream in streams if stream.needs_call]:
            answers = rank_all(self.base, [stream.next_request() for stream in waiting])
            for stream, answer in zip(waiting, answers, strict=True):
                stream.take(answer, self.select)
        return [self._ranking(stream) for stream in streams]

    def expected_calls(self, k: int) -> int:
        """Return the base's calls for the lists of k, k − select, … candidates, down to two."""
        return sum(calls_of(self.base, size) for size in range(k, 1, -self.select))

    def fingerprint(self) -> Mapping[str, object]:
        """The options and the base's fingerprint."""
        return {
            "reranker": "sgs",
            "select": self.select,
            "inner_seed": self.inner_seed,
            "seed": self.seed,
            "base": super().fingerprint(),
        }

    def _ranking(self, stream: _Stream) -> Ranking:
        if stream.fault:
            return Ranking.failed(stream.fault, stream.cost)
        return Ranking(
            (*stream.selected, *stream.remaining),
            cost=stream.cost,
            status=worst_status(stream.answers),
            diagnostics={"paper_calls": -(-len(stream.request.candidates) // self.select)},
        )


@dataclass(slots=True)
class _Stream:
    """One request on its way."""

    request: Request
    remaining: tuple[str, ...]
    seed: tuple[object, ...]
    selected: list[str] = field(default_factory=list)
    step: int = 0
    cost: Cost = field(default_factory=Cost)
    answers: list[Ranking] = field(default_factory=list)
    fault: str = ""

    @property
    def needs_call(self) -> bool:
        return len(self.remaining) > 1 and not self.fault

    def next_request(self) -> Request:
        if self.step:
            self.remaining = shuffled(self.remaining, *self.seed, self.step)
        return self.request.select(self.remaining)

    def take(self, answer: Ranking, select: int) -> None:
        self.step += 1
        self.cost = self.cost.then(answer.cost)
        if answer.status == "failed":
            self.fault = f"call {self.step}, on {len(self.remaining)} candidates: {answer.fault}"
            return
        self.answers.append(answer)
        self.selected += answer.order[:select]
        self.remaining = answer.order[select:]
