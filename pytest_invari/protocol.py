"""The ranking protocol: what a reranker is given and what it must give back."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from pytest_invari.errors import InvariError, counted
from pytest_invari.usercode import is_fault, one_line, shortened, told, unawaited

__all__ = [
    "Candidate",
    "Context",
    "Cost",
    "HistoryEntry",
    "LabelBinding",
    "Ranking",
    "RankingError",
    "Request",
    "Reranker",
    "label_binding_of",
    "label_order",
    "rank_all",
    "seeded_hash",
    "seeded_hashes",
]

Status = Literal["ok", "partial", "repaired", "failed"]
LabelBinding = Literal["item", "position", "redrawn"]


class RankingError(ValueError):
    """An output that is not a ranking of the candidates; the message names the ids at fault."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One item that may be ranked. Ids are opaque; *text* is what a model reads."""

    id: str
    text: str
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One past interaction of the user, with the rating where there is one."""

    text: str
    rating: float | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What the candidates are ranked for: a query text, a user's history (newest first), or both."""

    text: str = ""
    history: tuple[HistoryEntry, ...] = ()

    def __str__(self) -> str:
        lines = [self.text] if self.text else []
        lines += [entry.text for entry in self.history]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Request:
    """One view of a task: the candidates in the order in which the reranker sees them.

    ``labels``, for a reranker that shows labels, holds ids in the order of the labels they bear: the first
    has label 0. It names the whole list, also where only a part of it is left to rank. Empty: labels go by
    input position.
    """

    query_id: str
    context: Context
    candidates: tuple[Candidate, ...]
    view: str = ""
    labels: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The candidate ids in serialized order."""
        return tuple(candidate.id for candidate in self.candidates)

    @property
    def label_indices(self) -> tuple[int, ...]:
        """The 0-based label of each candidate, in serialized order."""
        index = {item: label for label, item in enumerate(self.labels or self.ids)}
        return tuple(index[item] for item in self.ids)

    def labelled(self, binding: LabelBinding | None) -> Request:
        """The same request with labels drawn for its candidates; labels that it has already stay."""
        if self.labels or binding in (None, "position"):
            return self
        return replace(self, labels=label_order(binding, self.query_id, self.ids))

    def select(self, ids: Iterable[str]) -> Request:
        """The same request with only these candidates, in this order; they keep their labels."""
        by_id = {candidate.id: candidate for candidate in self.candidates}
        return replace(self, candidates=tuple(by_id[item] for item in ids))


@dataclass(frozen=True, slots=True)
class Cost:
    """What one ranking took.

    ``tokens_in`` counts the whole prompts of the method's own calls; ``tokens_cached`` is the share
    of them that was not computed again (shared prefixes and identical calls). ``seconds`` is the
    wall-clock share of this ranking in the batch it was part of.
    """

    calls: int = 0
    depth: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    seconds: float = 0.0

    @property
    def fault(self) -> str:
        """Why nothing can have cost this, or the empty text."""
        for name in ("calls", "depth", "tokens_in", "tokens_cached", "tokens_out", "seconds"):
            value = getattr(self, name)
            is_possible = isinstance(value, Real) and math.isfinite(value) and float(value) >= 0
            if not is_possible or (name != "seconds" and value != int(value)):
                return f"{name} cannot be {value!r}"
        if self.tokens_cached > self.tokens_in:
            return f"tokens_cached ({self.tokens_cached}) cannot exceed tokens_in ({self.tokens_in})"
        return ""

    def then(self, later: Cost) -> Cost:
        """Add a cost that had to wait for this one: depths add up."""
        return self._add(later, self.depth + later.depth)

    def beside(self, other: Cost) -> Cost:
        """Add a cost that could run at the same time: the longer chain counts."""
        return self._add(other, max(self.depth, other.depth))

    def _add(self, other: Cost, depth: int) -> Cost:
        return Cost(
            calls=self.calls + other.calls,
            depth=depth,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_cached=self.tokens_cached + other.tokens_cached,
            tokens_out=self.tokens_out + other.tokens_out,
            seconds=self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class Ranking:
    """A reranker's answer to one request, best first.

    Build one with :meth:`from_scores`, :meth:`from_index_scores` or :meth:`from_order`; they check
    the output against the request. ``scores``, where present, is aligned with ``order``.
    """

    order: tuple[str, ...]
    scores: tuple[float, ...] | None = None
    cost: Cost = Cost(calls=1, depth=1)
    status: Status = "ok"
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_scores(
        cls,
        request: Request,
        scores: Mapping[str, float],
        *,
        cost: Cost | None = None,
        tie_seed: int = 0,
        diagnostics: Mapping[str, Any] | None = None,
    ) -> Ranking:
        """Rank by descending score; higher is better.

        Equal scores are ordered by a seeded hash of the item id, never by input position, so that a
        scorer that cannot tell two items apart is not reported as order-dependent.

        Raises:
            RankingError: an id is missing, unknown, or its score is not a finite number.
        """
        _check_ids(request, scores)
        values = {item: _finite(item, score) for item, score in scores.items()}
        order = sorted(values, key=lambda item: (-values[item], seeded_hash(tie_seed, item)))
        return cls(
            tuple(order),
            tuple(values[item] for item in order),
            cost or Cost(calls=1, depth=1),
            diagnostics=dict(diagnostics or {}),
        )

    @classmethod
    def from_index_scores(
        cls,
        request: Request,
        scores: Mapping[int, float],
        *,
        cost: Cost | None = None,
        tie_seed: int = 0,
        diagnostics: Mapping[str, Any] | None = None,
    ) -> Ranking:
        """Rank by scores keyed by the 0-based position of the candidate in the request.

        Raises:
            RankingError: an index is negative or out of range, missing, or its score is not finite.
        """
        ids = request.ids
        for index in scores:
            if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(ids):
                raise RankingError(f"index {index!r} is not a position in a list of {len(ids)} candidates")
        return cls.from_scores(
            request,
            {ids[index]: score for index, score in scores.items()},
            cost=cost,
            tie_seed=tie_seed,
            diagnostics=diagnostics,
        )

    @classmethod
    def from_order(
        cls,
        request: Request,
        order: Sequence[str],
        *,
        cost: Cost | None = None,
        diagnostics: Mapping[str, Any] | None = None,
    ) -> Ranking:
        """Take ids, best first.

        Raises:
            RankingError: an id is missing, unknown or repeated.
        """
        _check_ids(request, order)
        return cls(tuple(order), None, cost or Cost(calls=1, depth=1), diagnostics=dict(diagnostics or {}))

    @classmethod
    def failed(cls, fault: str, cost: Cost | None = None, *, is_transient: bool = False) -> Ranking:
        """An answer that is not a ranking; *fault* says what went wrong. It is data, never repaired here.

        One that *is_transient* says nothing about the request (the network was down): a run that goes on from
        its records asks again.
        """
        transient = {"transient": True} if is_transient else {}
        return cls((), None, cost or Cost(), "failed", {"fault": fault, **transient})

    @property
    def fault(self) -> str:
        """Why this ranking failed, or the empty text."""
        return str(self.diagnostics.get("fault", ""))

    @property
    def is_transient(self) -> bool:
        """Whether this ranking failed for a reason that says nothing about the request."""
        return self.status == "failed" and self.diagnostics.get("transient") is True


@runtime_checkable
class Reranker(Protocol):
    """Anything that ranks one request.

    Optional members, used where present: ``rank_many(requests)`` for batches, ``batch_requests``
    (how many requests it wants at once), ``fingerprint()`` (a mapping of everything that can change
    its answers), ``early_fingerprint`` (whether that is the same before ``prepare()``), ``label_binding``
    (how the labels that it shows are bound), ``expected_calls(k)`` (for the progress bar), ``check()``
    (refuse bad settings before a model is loaded) and ``prepare()`` (load the model).
    """

    def rank(self, request: Request) -> Ranking:
        """Rank the candidates of *request*, best first."""
        ...


def rank_all(reranker: Reranker, requests: Sequence[Request]) -> list[Ranking]:
    """Rank many requests, in one batch where the reranker can.

    An exception becomes a failed :class:`Ranking` of the request that caused it: when a batch raises,
    its requests are tried one by one, so that one bad query does not lose the others. A ranking that
    is not a permutation of its request's candidates becomes a failed one.

    For a reranker that shows labels they are drawn first, and how stands in ``diagnostics["labels"]``: with
    :func:`label_order` this tells which item bore which label.

    Raises:
        InvariError: the reranker's ``label_binding`` is none.
    """
    binding = label_binding_of(reranker)
    if binding is None:
        return _rank_batch(reranker, requests)
    rankings = _rank_batch(reranker, [request.labelled(binding) for request in requests])
    return [replace(each, diagnostics={**each.diagnostics, "labels": binding}) for each in rankings]


def label_binding_of(reranker: Reranker) -> LabelBinding | None:
    """How the labels that a reranker shows are bound; None when it shows none.

    Raises:
        InvariError: it names no binding.
    """
    binding = getattr(reranker, "label_binding", None)
    known = get_args(LabelBinding)
    if binding is not None and binding not in known:
        who = f"{type(reranker).__qualname__}.label_binding"
        raise InvariError(f"{who} must be one of {', '.join(known)} or None, not {shortened(binding)}")
    return binding


def label_order(binding: LabelBinding, query_id: str, shown: Sequence[str]) -> tuple[str, ...]:
    """The ids of one view, *shown* in this order, in the order of the labels they bear.

    ``"item"``: drawn once for each query, so that an item bears one label in all views (P2).
    ``"position"``: the first label stands at the first place, whatever is there. ``"redrawn"``: drawn for
    each order anew. The draws are seeded by hashes: no label follows a place or the alphabet of ids.
    """
    if binding == "position":
        return tuple(shown)
    view = seeded_hash(*shown).hex() if binding == "redrawn" else ""
    return tuple(sorted(shown, key=seeded_hashes("label", query_id, view)))


def seeded_hash(*parts: object) -> bytes:
    """A hash of the parts that is the same in every process, on every machine and Python version."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).digest()


def seeded_hashes(*parts: object) -> Callable[[object], bytes]:
    """From one more part to the :func:`seeded_hash` of all, in less time where the others stay the same."""
    begun = hashlib.sha256(f"{json.dumps(parts, ensure_ascii=True)[:-1]}{', ' if parts else ''}".encode())

    def of(last: object) -> bytes:
        whole = begun.copy()
        whole.update(f"{json.dumps(last, ensure_ascii=True)}]".encode())
        return whole.digest()

    return of


def _rank_batch(reranker: Reranker, requests: Sequence[Request]) -> list[Ranking]:
    many = getattr(reranker, "rank_many", None)
    if many is not None and requests:
        try:
            rankings = _as_list(many(requests))
        except BaseException as error:
            if not is_fault(error):
                raise
            if len(requests) == 1:
                return [Ranking.failed(_describe(error))]
        else:
            if len(rankings) != len(requests):
                fault = f"rank_many returned {len(rankings)} rankings for {len(requests)} requests"
                return [Ranking.failed(fault) for _ in requests]
            return [_checked(r, ranking) for r, ranking in zip(requests, rankings, strict=True)]
    return [_rank_one(reranker, request) for request in requests]


def _as_list(answer: Any) -> list[Any]:
    if fault := unawaited(answer):
        raise RankingError(fault)
    return list(answer)


def _rank_one(reranker: Reranker, request: Request) -> Ranking:
    try:
        ranking = reranker.rank(request)
    except BaseException as error:
        if not is_fault(error):
            raise
        return Ranking.failed(_describe(error))
    return _checked(request, ranking)


def _checked(request: Request, ranking: Ranking) -> Ranking:
    if not isinstance(ranking, Ranking):
        fault = unawaited(ranking) or f"returned {type(ranking).__name__} instead of a Ranking"
        return Ranking.failed(fault)
    if not isinstance(ranking.cost, Cost):
        return Ranking.failed(f"returned a Ranking whose cost is {shortened(ranking.cost)}, not a Cost")
    if ranking.cost.fault:
        return Ranking.failed(f"reported an impossible cost: {ranking.cost.fault}")
    if ranking.status == "failed":
        return ranking
    if not isinstance(ranking.order, tuple | list) or not all(isinstance(i, str) for i in ranking.order):
        return Ranking.failed(
            f"returned a Ranking whose order is {shortened(ranking.order)}, not ids", ranking.cost
        )
    try:
        _check_ids(request, ranking.order)
    except RankingError as error:
        return Ranking.failed(str(error), ranking.cost)
    return ranking


def _describe(error: BaseException) -> str:
    return one_line(error) if isinstance(error, RankingError) else f"raised {told(error)}"


def _check_ids(request: Request, given: Iterable[str]) -> None:
    expected = set(request.ids)
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for item in given:
        if item in seen:
            repeated[item] = None
        seen.add(item)
    faults = []
    if repeated:
        faults.append(f"repeats {_names(repeated)}")
    if seen - expected:
        faults.append(f"has unknown {_names(seen - expected)}")
    if expected - seen:
        faults.append(f"lacks {_names(expected - seen)}")
    if faults:
        sizes = f"{counted(len(seen), 'id')} for {counted(len(expected), 'candidate')}"
        raise RankingError(f"output of {sizes} {', '.join(faults)}")


def _names(ids: Iterable[object], most: int = 5) -> str:
    listed = sorted(map(repr, ids))
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def _finite(item: str, score: float) -> float:
    try:
        value = float(score)
    except (TypeError, ValueError):
        raise RankingError(f"score of {item!r} is {score!r}, not a number") from None
    if not math.isfinite(value):
        raise RankingError(f"score of {item!r} is {value}")
    return value
