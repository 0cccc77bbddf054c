"""An observation: one view of one query, and the ranking that came back."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_invari.protocol import Ranking

ObservationKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Observation:
    """One view of one query, and the ranking that came back.

    ``shown`` is the order the reranker saw. ``from_records`` says that it was not ranked in this run.
    """

    query_id: str
    view: str
    shown: tuple[str, ...]
    ranking: Ranking
    from_records: bool = field(default=False, compare=False)

    @property
    def key(self) -> ObservationKey:
        """What identifies it: query and view."""
        return self.query_id, self.view
