"""What all bridges share: the library is given a query and texts, and answers by places in the list."""

from __future__ import annotations

import importlib.util
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from pytest_invari.errors import InvariError, counted
from pytest_invari.progress import tick
from pytest_invari.protocol import Cost, Ranking, RankingError, Request

Asked = tuple[str, list[str]]
"""A query, and the texts of its candidates in the order shown."""


ONE_CALL = Cost(calls=1, depth=1)


@dataclass(frozen=True, slots=True)
class Answer:
    """A library's answer to one list: scores by 0-based place, higher is better, or places, best first."""

    scores: Mapping[int, float] | None = None
    order: Sequence[int] = ()
    cost: Cost = ONE_CALL
    diagnostics: Mapping[str, Any] = field(default_factory=dict)


class Bridge(ABC):
    """A reranker of another library.

    A subclass names the ``package`` to install, loads what the library needs, and translates one list. That
    all candidates are ranked, each once and by a finite score, is checked here.
    """

    package: ClassVar[str]
    module: ClassVar[str]

    def __init__(
        self, settings: Mapping[str, object], ready: Any = None, shared: dict[object, Any] | None = None
    ) -> None:
        self.settings = dict(settings)
        # One per session: what is loaded is kept there.
        self._shared = {} if shared is None else shared
        if ready is not None:
            self.library = ready

    def load(self) -> Any:
        """What the library needs to answer, made once; a bridge that is always handed a ready one has none.

        Raises:
            InvariError: it cannot be made.
        """
        raise InvariError(f"{self.package}: nothing to load; hand a reranker over that is made already")

    @abstractmethod
    def answer(self, query: str, texts: list[str]) -> Answer:
        """Ask the library about one list."""

    def answer_many(self, asked: Sequence[Asked]) -> list[Answer]:
        """Ask about several lists, one after another unless a subclass knows better."""
        return [self.answer(query, texts) for query, texts in asked]

    @cached_property
    def library(self) -> Any:
        """What was loaded, once for all rerankers of a session that want the same."""
        key = (type(self), *sorted(self.settings.items(), key=str))
        if key not in self._shared:
            self._shared[key] = self.load()
        return self._shared[key]

    def check(self) -> None:
        """Refuse a missing package before anything is loaded."""
        if importlib.util.find_spec(self.module) is None:
            raise InvariError(f"needs the package {self.package!r}: pip install {self.package}")

    def prepare(self) -> None:
        """Load what the library needs."""
        _ = self.library

    def expected_calls(self, k: int) -> int:
        """One call a list."""
        return 1

    def fingerprint(self) -> Mapping[str, object]:
        """The library with its version, and the settings."""
        from importlib.metadata import version

        return {"reranker": self.package, "version": version(self.package), **self.settings}

    def rank(self, request: Request) -> Ranking:
        """Rank one request: a batch of one."""
        return self.rank_many([request])[0]

    def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        """Rank the requests; an answer that is no ranking fails its own request."""
        started = time.perf_counter()
        asked = [(str(request.context), [each.text for each in request.candidates]) for request in requests]
        answers = self.answer_many(asked)
        if len(answers) != len(requests):
            raise RankingError(f"{counted(len(answers), 'answer')} to {counted(len(requests), 'list')}")
        share = (time.perf_counter() - started) / max(1, len(requests))
        tick(len(requests))
        return [_ranking(request, answer, share) for request, answer in zip(requests, answers, strict=True)]


def _ranking(request: Request, answer: Answer, seconds: float) -> Ranking:
    cost = replace(answer.cost, seconds=seconds)
    try:
        if answer.scores is not None:
            return Ranking.from_index_scores(
                request, answer.scores, cost=cost, diagnostics=answer.diagnostics
            )
        ids = request.ids
        for place in answer.order:
            if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < len(ids):
                raise RankingError(f"{place!r} is not a place in a list of {len(ids)} candidates")
        order = [ids[place] for place in answer.order]
        return Ranking.from_order(request, order, cost=cost, diagnostics=answer.diagnostics)
    except RankingError as error:
        return Ranking.failed(str(error), cost)
