"""Requests: what a reranker is given, and which labels it may show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pytest_invari.protocol.seeding import seeded_hash, seeded_hashes

LabelBinding = Literal["item", "position", "redrawn"]


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
