"""What all rerankers that wrap another one share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from pytest_invari.protocol.capabilities import (
    batch_size_of,
    check_reranker,
    fingerprint_of,
    has_early_fingerprint,
    prepare_reranker,
)
from pytest_invari.protocol.ranking import Ranking
from pytest_invari.protocol.request import LabelBinding, Request
from pytest_invari.protocol.reranker import Reranker, label_binding_of
from pytest_invari.protocol.seeding import seeded_hash

# How many requests a reranker is handed at once when it does not say how many it wants.
DEFAULT_BATCH = 64


class Wrapper(ABC):
    """A reranker over a base reranker; subclasses give ``rank_labelled``."""

    def __init__(self, base: Reranker) -> None:
        self.base = base

    @property
    def batch_requests(self) -> int:
        """As many as the base wants."""
        return batch_size_of(self.base, DEFAULT_BATCH)

    @property
    def label_binding(self) -> LabelBinding | None:
        """The base's."""
        return label_binding_of(self.base)

    @property
    def knows_ids(self) -> bool:
        """Whether the base knows the candidates by their ids, so that these cannot be hidden from it."""
        return bool(getattr(self.base, "knows_ids", False))

    @property
    def early_fingerprint(self) -> bool:
        """Whether the base says before it is prepared what it says afterwards."""
        return has_early_fingerprint(self.base)

    def rank(self, request: Request) -> Ranking:
        """Rank one request: a batch of one."""
        return self.rank_many([request])[0]

    def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        """Rank the requests side by side, after drawing the labels of each whole list."""
        binding = self.label_binding
        return self.rank_labelled([request.labelled(binding) for request in requests])

    @abstractmethod
    def rank_labelled(self, requests: Sequence[Request]) -> list[Ranking]:
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


def order_seed(request: Request) -> str:
    """Return a short text that stands for the order of the candidates."""
    return seeded_hash(*request.ids).hex()
