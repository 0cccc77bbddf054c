"""The ranking protocol: what a reranker is given, what it must give back, and how it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, get_args, runtime_checkable

from pytest_invari.errors import InvariError
from pytest_invari.protocol.ranking import Cost, Ranking, RankingError, Status, check_ids, plain_scores
from pytest_invari.protocol.request import (
    LabelBinding,
    Request,
)
from pytest_invari.protocol.usercode import describe_error, is_fault, one_line, shortened, unawaited

# Also of sockets, whose timeout is the latter.
_PASSING = (ConnectionError, TimeoutError)


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
    its requests are tried one by one, so that one bad query does not lose the others. A failure by a
    ``ConnectionError`` or ``TimeoutError`` is transient (see :meth:`Ranking.failed`). A ranking that is not a
    permutation of its request's candidates becomes a failed one.

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


def _rank_batch(reranker: Reranker, requests: Sequence[Request]) -> list[Ranking]:
    many = getattr(reranker, "rank_many", None)
    if many is not None and requests:
        try:
            rankings = _as_list(many(requests))
        except BaseException as error:
            if not is_fault(error):
                raise
            if len(requests) == 1:
                return [_failed_by(error)]
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
        return _failed_by(error)
    return _checked(request, ranking)


def _checked(request: Request, ranking: Ranking) -> Ranking:
    if not isinstance(ranking, Ranking):
        fault = unawaited(ranking) or f"returned {type(ranking).__name__} instead of a Ranking"
        return Ranking.failed(fault)
    if not isinstance(ranking.cost, Cost):
        return Ranking.failed(f"returned a Ranking whose cost is {shortened(ranking.cost)}, not a Cost")
    if ranking.cost.fault:
        return Ranking.failed(f"reported an impossible cost: {ranking.cost.fault}")
    if odd := _odd_field(ranking):
        return Ranking.failed(f"returned a Ranking whose {odd}", ranking.cost)
    if ranking.status == "failed":
        return ranking
    try:
        check_ids(request, ranking.order)
        scores = plain_scores(ranking)
    except RankingError as error:
        return Ranking.failed(str(error), ranking.cost)
    return ranking if scores is None else replace(ranking, scores=scores)


def _odd_field(ranking: Ranking) -> str:
    """Which field is of a type that it cannot have; empty where none is."""
    if not isinstance(ranking.order, tuple | list) or not all(isinstance(i, str) for i in ranking.order):
        return f"order is {shortened(ranking.order)}, not ids"
    if not isinstance(ranking.diagnostics, Mapping):
        return f"diagnostics are {shortened(ranking.diagnostics)}, not a mapping"
    if ranking.status not in get_args(Status):
        return f"status is {shortened(ranking.status)}, not one of {', '.join(get_args(Status))}"
    return ""


def _failed_by(error: BaseException) -> Ranking:
    """A failed ranking; a connection that failed, or was too slow, says nothing about the request.

    Clients of HTTP raise exceptions of their own because of one of Python's.
    """
    fault = one_line(error) if isinstance(error, RankingError) else f"raised {describe_error(error)}"
    return Ranking.failed(fault, is_transient=any(isinstance(each, _PASSING) for each in _causes(error)))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what led to it, from the last to the first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
