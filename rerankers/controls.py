"""Controls: rerankers whose consistency is known, run beside the reranker under test."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

from pytest_invari.errors import InvariError
from pytest_invari.progress import tick
from pytest_invari.protocol import Ranking, RankingError, Request, rank_all, seeded_hash
from pytest_invari.protocol.capabilities import calls_of
from pytest_invari.protocol.seeding import shuffled
from pytest_invari.protocol.wrapping import Wrapper, order_seed
from pytest_invari.tasks.task import Task, TaskSet

if TYPE_CHECKING:
    from pytest_invari.registry.build import Build


def random_order(seed: int = 0) -> RandomOrder:
    """Any order, drawn anew for each input order: no preference at all; one call."""
    return RandomOrder(seed)


def constant(seed: int = 0) -> Constant:
    """All candidates tie: no preference, and yet invariant; one call."""
    return Constant(seed)


def input_order() -> InputOrder:
    """The order in which the candidates came: position is everything; one call."""
    return InputOrder()


def reverse_input_order() -> ReverseInputOrder:
    """The input order backwards: position is everything, from the end; one call."""
    return ReverseInputOrder()


def canonical_order(build: Build, base: str = "zero_shot") -> CanonicalOrder:
    """Sort the candidates by id, then ask once: invariant for free, so consistency alone proves nothing."""
    return CanonicalOrder(build.reranker(base))


def oracle(build: Build, seed: int = 0) -> Oracle:
    """The relevant candidates first: the best effectiveness a list allows, and invariant; one call."""
    return Oracle(build.tasks, seed)


def first_stage(build: Build) -> FirstStage:
    """The data set's own order, as its first-stage retrieval made it: invariant; one call."""
    return FirstStage(build.tasks)


def biased(
    build: Build, beta: float = 1.0, noise: float = 0.0, relevance: float = 0.0, seed: int = 0
) -> Biased:
    """A latent utility plus beta × position effect plus noise: a bias of known size; one call."""
    if not all(map(math.isfinite, (beta, noise, relevance))) or noise < 0:
        raise InvariError("beta, noise and relevance must be finite, and noise not negative")
    return Biased(build.tasks, beta=beta, noise=noise, relevance=relevance, seed=seed)


class _Control(ABC):
    """A control that asks nobody: one call, depth 1, per list."""

    name: str

    def rank(self, request: Request) -> Ranking:
        """Rank at the cost of one call."""
        ranking = self._ranking(request)
        tick()
        return ranking

    def expected_calls(self, k: int) -> int:
        """Return 1."""
        return 1

    def fingerprint(self) -> Mapping[str, object]:
        """The name and the options."""
        return {"reranker": self.name, **self._options()}

    @abstractmethod
    def _ranking(self, request: Request) -> Ranking: ...

    def _options(self) -> Mapping[str, object]:
        return {}


class _SeededControl(_Control):
    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def _options(self) -> Mapping[str, object]:
        return {"seed": self.seed}


class RandomOrder(_SeededControl):
    """A shuffle seeded by the query and the input order."""

    name = "random"

    def _ranking(self, request: Request) -> Ranking:
        order = shuffled(request.ids, "random", self.seed, request.query_id, order_seed(request))
        return Ranking.from_order(request, order)


class Constant(_SeededControl):
    """The same score for all."""

    name = "constant"

    def _ranking(self, request: Request) -> Ranking:
        return Ranking.from_scores(request, dict.fromkeys(request.ids, 0.0), tie_seed=self.seed)


class InputOrder(_Control):
    """The input order."""

    name = "input_order"

    def _ranking(self, request: Request) -> Ranking:
        return Ranking.from_order(request, request.ids)


class ReverseInputOrder(_Control):
    """The input order backwards."""

    name = "reverse_input_order"

    def _ranking(self, request: Request) -> Ranking:
        return Ranking.from_order(request, request.ids[::-1])


class CanonicalOrder(Wrapper):
    """Shows the base the candidates sorted by id, whatever order they came in.

    Cost: one call, depth 1 (times the base's own).
    """

    def rank_labelled(self, requests: Sequence[Request]) -> list[Ranking]:
        """Rank all requests in one batch."""
        return rank_all(self.base, [request.select(sorted(request.ids)) for request in requests])

    def expected_calls(self, k: int) -> int:
        """Return the base's own number."""
        return calls_of(self.base, k)

    def fingerprint(self) -> Mapping[str, object]:
        """The base's fingerprint, under this name."""
        return {"reranker": "canonical_order", "base": super().fingerprint()}


class _TaskControl(_Control):
    """A control that knows the tasks."""

    knows_ids = True

    def __init__(self, tasks: TaskSet) -> None:
        self._sha256 = tasks.sha256
        self._tasks = {task.query_id: task for task in tasks.tasks}

    def _task(self, request: Request) -> Task:
        try:
            return self._tasks[request.query_id]
        except KeyError:
            raise RankingError(f"query {request.query_id!r} is not in the data set") from None

    def _options(self) -> Mapping[str, object]:
        return {"tasks": self._sha256}


class Oracle(_TaskControl):
    """Descending relevance; equal grades by a seeded hash of the id."""

    name = "oracle"

    def __init__(self, tasks: TaskSet, seed: int = 0) -> None:
        super().__init__(tasks)
        self.seed = seed

    def _ranking(self, request: Request) -> Ranking:
        relevance = self._task(request).relevance
        grades = {item: relevance.get(item, 0.0) for item in request.ids}
        return Ranking.from_scores(request, grades, tie_seed=self.seed)

    def _options(self) -> Mapping[str, object]:
        return {**super()._options(), "seed": self.seed}


class FirstStage(_TaskControl):
    """The order of the task's own candidates."""

    name = "first_stage"

    def _ranking(self, request: Request) -> Ranking:
        asked = set(request.ids)
        order = [c.id for c in self._task(request).candidates if c.id in asked]
        return Ranking.from_order(request, order)


class Biased(_TaskControl):
    """Scores a candidate by what it is worth, where it stands, and chance.

    score(i) = u(i) + beta · g(p) + noise · e, where u(i) is standard normal per query and item (plus
    ``relevance`` times the item's grade), g falls linearly from 1 at the first position to −1 at the
    last, and e is standard normal per query, input order and item. A positive beta favours the front.
    With beta = noise = 0 the reranker is invariant; :meth:`utility` is the truth in any case. All
    draws come from hashes: equal on every machine, and for a request however it is batched.
    """

    name = "biased"

    def __init__(
        self,
        tasks: TaskSet,
        *,
        beta: float = 1.0,
        noise: float = 0.0,
        relevance: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__(tasks)
        self.beta = beta
        self.noise = noise
        self.relevance = relevance
        self.seed = seed

    def utility(self, query_id: str, item: str) -> float:
        """Return u(i), what the candidate is worth to this query, whatever its position."""
        worth = _utility(self.seed, query_id, item)
        if self.relevance:
            worth += self.relevance * self._tasks[query_id].relevance.get(item, 0.0)
        return worth

    def _ranking(self, request: Request) -> Ranking:
        if self.relevance:
            self._task(request)
        last = max(1, len(request.candidates) - 1)
        order = order_seed(request)
        scores = {}
        for position, item in enumerate(request.ids):
            score = self.utility(request.query_id, item) + self.beta * (1 - 2 * position / last)
            if self.noise:
                score += self.noise * _normal("noise", self.seed, request.query_id, order, item)
            scores[item] = score
        return Ranking.from_scores(request, scores, tie_seed=self.seed)

    def _options(self) -> Mapping[str, object]:
        return {
            **super()._options(),
            "beta": self.beta,
            "noise": self.noise,
            "relevance": self.relevance,
            "seed": self.seed,
        }


@lru_cache(maxsize=65_536)
def _utility(seed: int, query_id: str, item: str) -> float:
    return _normal("utility", seed, query_id, item)


def _normal(*parts: object) -> float:
    """Return a standard normal number that depends on the parts alone."""
    bits = int.from_bytes(seeded_hash(*parts)[:8]) >> 12
    return NormalDist().inv_cdf((bits + 0.5) / 2**52)
