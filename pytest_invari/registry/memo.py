"""A memory around a base reranker: identical requests are computed once, and still counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from pytest_invari.progress import tick
from pytest_invari.protocol import Context, Ranking, Request, Reranker, rank_all
from pytest_invari.protocol.capabilities import calls_of, fingerprint_of
from pytest_invari.protocol.ranking import ATTEMPTS
from pytest_invari.protocol.wrapping import Wrapper

if TYPE_CHECKING:
    from pytest_invari.registry.spec import RerankerSpec


# About 200 MB at lists of 50; the oldest answers go first.
MOST_ANSWERS = 65_536

_RequestKey = tuple[str, Context, tuple[str, ...], tuple[str, ...], tuple[int, ...]]


class Memo(Wrapper):
    """Answers a request that was answered before: same query, context, candidates, order and labels.

    The repeated answer costs what the first did in calls, depth and tokens, because a method is judged
    by what it asks for; all of its ``tokens_in`` are ``tokens_cached`` and it took no time, and no
    service was asked for it again. Failed answers are not kept: asking again may succeed.
    """

    def __init__(
        self, base: Reranker, spec: RerankerSpec | None = None, *, most_answers: int = MOST_ANSWERS
    ) -> None:
        super().__init__(base)
        self._label = spec.label if spec else ""
        self._most_answers = most_answers
        self._answers: dict[_RequestKey, Ranking] = {}

    def rank_labelled(self, requests: Sequence[Request]) -> list[Ranking]:
        """Rank the requests that are new in one batch, and answer the others from memory."""
        keys = [_key(request) for request in requests]
        answers = {key: self._answers[key] for key in keys if key in self._answers}
        new = {key: request for key, request in zip(keys, requests, strict=True) if key not in answers}
        answers.update(zip(new, rank_all(self.base, list(new.values())), strict=True))
        rankings = []
        for key in keys:
            if key in new:
                del new[key]
                rankings.append(answers[key])
            else:
                rankings.append(_repeated(answers[key]))
        self._keep(answers)
        return rankings

    def expected_calls(self, k: int) -> int:
        """Return the base's own number, since a repeated call counts."""
        return calls_of(self.base, k)

    def fingerprint(self) -> Mapping[str, object]:
        """The base's: a memory changes no answer."""
        return fingerprint_of(self.base, self._label)

    def _keep(self, answers: Mapping[_RequestKey, Ranking]) -> None:
        for key, ranking in answers.items():
            if ranking.status != "failed":
                self._answers.pop(key, None)
                self._answers[key] = ranking
        excess = max(0, len(self._answers) - self._most_answers)
        for key in list(islice(self._answers, excess)):
            del self._answers[key]


def _key(request: Request) -> _RequestKey:
    texts = tuple(candidate.text for candidate in request.candidates)
    return request.query_id, request.context, request.ids, texts, request.label_indices


def _repeated(ranking: Ranking) -> Ranking:
    tick(ranking.cost.calls)
    cost = replace(ranking.cost, tokens_cached=ranking.cost.tokens_in, seconds=0.0)
    diagnostics = {name: value for name, value in ranking.diagnostics.items() if name != ATTEMPTS}
    return replace(ranking, cost=cost, diagnostics=diagnostics)
