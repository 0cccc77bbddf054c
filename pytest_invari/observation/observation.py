"""An observation: one view of one query, the ranking that came back, and what is said where none did."""

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


# A ranking of the reranker's own making is one; "repaired" is what it says it has put right itself.
VALID = ("ok", "repaired")


@dataclass(frozen=True, slots=True)
class Failure:
    """A view that came back without a valid ranking."""

    query_id: str
    view: str
    fault: str


def is_valid(seen: Observation) -> bool:
    """Whether a view came back with a ranking."""
    return seen.ranking.status in VALID


def has_cost(seen: Observation) -> bool:
    """Whether a view says what it cost.

    A failure that does not is no ranking of 0 calls: it would lower the mean.
    """
    return is_valid(seen) or seen.ranking.cost.calls > 0


def failure_of(seen: Observation) -> Failure:
    """What is said of a view without a valid ranking."""
    fault = seen.ranking.fault or f"the reranker calls its ranking {seen.ranking.status}"
    if seen.ranking.is_transient:
        fault = f"the service was away (with --invari-records, the same command asks again): {fault}"
    return Failure(seen.query_id, seen.view, fault)
