"""What all rerankers that wrap another one share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pytest_invari.errors import InvariError
from pytest_invari.members import (
    batch_size_of,
    calls_of,
    check_reranker,
    fingerprint_of,
    prepare_reranker,
)
from pytest_invari.protocol import Ranking, Request, Reranker, Status, seeded_hash

__all__ = [
    "DEFAULT_BATCH",
    "InnerSeed",
    "Wrapper",
    "at_least",
    "calls_of",
    "order_seed",
    "shuffle_seed",
    "worst_status",
]

# How many requests a reranker is handed at once when it does not say how many it wants.
DEFAULT_BATCH = 64

# From the best to the worst.
_TRUST: tuple[Status, ...] = ("ok", "repaired", "partial", "failed")

InnerSeed = Literal["request", "query"]


class Wrapper(ABC):
    """A reranker over a base reranker; subclasses give ``rank_many``."""

    def __init__(self, base: Reranker) -> None:
        self.base = base

    @property
    def batch_requests(self) -> int:
        """As many as the base wants."""
        return batch_size_of(self.base, DEFAULT_BATCH)

    def rank(self, request: Request) -> Ranking:
        """Rank one request: a batch of one."""
        return self.rank_many([request])[0]

    @abstractmethod
    def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        """Rank the requests side by side."""

    def check(self) -> None:
        """Refuse bad settings of the base before it is loaded."""
        check_reranker(self.base)

    def prepare(self) -> None:
        """Load the base."""
        prepare_reranker(self.base)

    def fingerprint(self) -> Mapping[str, object]:
        """Everything known that can change the answers."""
        return fingerprint_of(self.base)


def shuffle_seed(method: str, inner_seed: InnerSeed, seed: int, request: Request) -> tuple[object, ...]:
    """Return what seeds the inner shuffles of one request, before the step.

    ``"request"`` takes the outer order in, so that two views of a query are shuffled differently;
    ``"query"`` does not, so that a method over an order-invariant base is invariant itself.
    """
    outer = order_seed(request) if inner_seed == "request" else ""
    return (method, seed, request.query_id, outer)


def order_seed(request: Request) -> str:
    """Return a short text that stands for the order of the candidates."""
    return seeded_hash(*request.ids).hex()


def worst_status(answers: Iterable[Ranking]) -> Status:
    """Return how far the answers a method used can be trusted: as the least trustworthy of them."""
    return max((answer.status for answer in answers), key=_TRUST.index, default="ok")


def at_least(least: int, **options: int) -> None:
    """Check options of a method.

    Raises:
        InvariError: one of them is less than *least*.
    """
    for name, value in options.items():
        if value < least:
            raise InvariError(f"option {name!r} must be at least {least}, not {value}")
