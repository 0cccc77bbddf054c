"""Blinding: candidates get fresh opaque ids in every view, so that nothing is won by sorting ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from pytest_invari.errors import InvariError
from pytest_invari.protocol.capabilities import calls_of, fingerprint_of
from pytest_invari.protocol.ranking import Ranking
from pytest_invari.protocol.request import Request
from pytest_invari.protocol.reranker import Reranker, rank_all
from pytest_invari.protocol.seeding import seeded_hash
from pytest_invari.protocol.wrapping import Wrapper


def blind_ids(reranker: Reranker, *, label: str = "", seed: int = 0) -> Reranker:
    """Hide the candidates' ids from *reranker*.

    In every view each candidate gets an id drawn from a seeded hash of query, order and id; the answer is
    translated back. Whatever rests on ids is then chance: sorting by them, and a method's inner shuffles
    and tie-breaks, which are hashes of ids. Equal scores of an answer are put in the order that they have
    without blinding, by a hash of the real ids. Texts and meta data stay as they are. Costs and
    diagnostics are the reranker's own, and faults name the real ids. *label* names the reranker and its
    options in the fingerprint, where it gives none itself.

    Raises:
        InvariError: the reranker has ``knows_ids``: it looks candidates up by their ids.
    """
    if getattr(reranker, "knows_ids", False):
        who = type(reranker).__qualname__
        raise InvariError(f"{who} knows the candidates by their ids, so these cannot be hidden from it")
    return _Blinded(reranker, label, seed)


class _Blinded(Wrapper):
    def __init__(self, base: Reranker, label: str, seed: int) -> None:
        super().__init__(base)
        self.label = label
        self.seed = seed

    def rank_labelled(self, requests: Sequence[Request]) -> list[Ranking]:
        aliases = [self._aliases(request) for request in requests]
        blinded = [_renamed(request, alias) for request, alias in zip(requests, aliases, strict=True)]
        answers = rank_all(self.base, blinded)
        return [
            _translated(answer, {alias: item for item, alias in names.items()})
            for answer, names in zip(answers, aliases, strict=True)
        ]

    def expected_calls(self, k: int) -> int:
        return calls_of(self.base, k)

    def fingerprint(self) -> Mapping[str, object]:
        return {"reranker": "blind_ids", "seed": self.seed, "base": fingerprint_of(self.base, self.label)}

    def _aliases(self, request: Request) -> dict[str, str]:
        seed = seeded_hash("blind", self.seed, request.query_id, *request.ids).hex()
        return {item: seeded_hash(seed, item).hex()[:16] for item in {*request.ids, *request.labels}}


def _renamed(request: Request, aliases: Mapping[str, str]) -> Request:
    candidates = tuple(replace(each, id=aliases[each.id]) for each in request.candidates)
    return replace(request, candidates=candidates, labels=tuple(aliases[item] for item in request.labels))


def _translated(answer: Ranking, items: Mapping[str, str]) -> Ranking:
    if answer.status == "failed":
        fault = answer.fault
        for alias, item in items.items():
            fault = fault.replace(alias, item)
        return replace(answer, diagnostics={**answer.diagnostics, "fault": fault})
    order = [items[alias] for alias in answer.order]
    return replace(answer, order=tuple(order if answer.scores is None else _ties_by_id(order, answer.scores)))


def _ties_by_id(order: Sequence[str], scores: Sequence[float]) -> list[str]:
    """The same order, equal scores ordered as :meth:`~pytest_invari.protocol.Ranking.from_scores` does."""
    tied = groupby(zip(order, scores, strict=True), key=lambda pair: pair[1])
    groups = ([item for item, _ in group] for _, group in tied)
    return [item for group in groups for item in sorted(group, key=lambda each: seeded_hash(0, each))]
