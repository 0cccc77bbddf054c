"""What the diagnostics of a ranking tell of its requests: how many were made again, and what was cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pytest_invari.protocol.ranking import Ranking

ATTEMPTS, TRUNCATED = "attempts", "truncated"


def further_requests(ranking: Ranking) -> int:
    """How many requests a service was sent beyond the ranking's calls, because an answer did not come."""
    return max(0, _count(ranking, ATTEMPTS) - max(1, int(ranking.cost.calls)))


def has_cut_texts(ranking: Ranking) -> bool:
    """Whether a text was longer than what was read of it."""
    return _count(ranking, TRUNCATED) > 0


def requests_told(answers: Iterable[Ranking], calls: int) -> dict[str, Any]:
    """The diagnostics of a ranking that rests on other *answers*, whose *calls* are its own.

    ``truncated`` is that of the answer with the most cut texts: a text is asked about more than once.
    """
    answers = list(answers)
    further = sum(map(further_requests, answers))
    cut = max((_count(answer, TRUNCATED) for answer in answers), default=0)
    return {
        **({ATTEMPTS: max(1, calls) + further} if further else {}),
        **({TRUNCATED: cut} if cut else {}),
    }


def _count(ranking: Ranking, name: str) -> int:
    """What stands there, which may be a user's own; 0 where it is no count."""
    value = ranking.diagnostics.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
