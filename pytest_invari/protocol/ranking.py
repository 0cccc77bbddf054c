"""Rankings: what a reranker gives back, checked against the request, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Real
from typing import Any, Literal

from pytest_invari.errors import counted
from pytest_invari.protocol.request import Request
from pytest_invari.protocol.seeding import seeded_hash
from pytest_invari.protocol.usercode import shortened

Status = Literal["ok", "partial", "repaired", "failed"]


class RankingError(ValueError):
    """An output that is not a ranking of the candidates; the message names the ids at fault."""


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
        check_ids(request, scores)
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
        check_ids(request, order)
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
    def is_valid(self) -> bool:
        """Whether this is a ranking of the reranker's own making; it may have put something right itself."""
        return self.status in ("ok", "repaired")

    @property
    def fault(self) -> str:
        """Why this ranking failed, or the empty text."""
        return str(self.diagnostics.get("fault", ""))

    @property
    def is_transient(self) -> bool:
        """Whether this ranking failed for a reason that says nothing about the request."""
        return self.status == "failed" and self.diagnostics.get("transient") is True


def check_ids(request: Request, given: Iterable[str]) -> None:
    """Refuse ids that are not those of the request's candidates, each once.

    Raises:
        RankingError: with the ids at fault.
    """
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


def plain_scores(ranking: Ranking) -> tuple[float, ...] | None:
    """The scores of a ranking as floats, which whoever makes one without checks may have given otherwise.

    Raises:
        RankingError: they are not as many finite numbers as there are ids, or one is above an earlier one.
    """
    if ranking.scores is None:
        return None
    try:
        listed = list(ranking.scores)
    except TypeError:
        raise RankingError(
            f"returned a Ranking whose scores are {shortened(ranking.scores)}, not numbers"
        ) from None
    if len(listed) != len(ranking.order):
        asked = counted(len(ranking.order), "candidate")
        raise RankingError(f"returned {counted(len(listed), 'score')} for {asked}")
    scored = [(item, _finite(item, score)) for item, score in zip(ranking.order, listed, strict=True)]
    for (above, more), (item, score) in pairwise(scored):
        if score > more:
            raise RankingError(f"scores do not fall: {item!r} has {score} after {above!r} with {more}")
    return tuple(score for _, score in scored)


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


ATTEMPTS, TRUNCATED = "attempts", "truncated"


def further_requests(ranking: Ranking) -> int:
    """How many requests a service was sent beyond the ranking's calls, because an answer did not come."""
    return max(0, _count(ranking, ATTEMPTS) - max(1, int(ranking.cost.calls)))


def has_cut_texts(ranking: Ranking) -> bool:
    """Whether a text was longer than what was read of it."""
    return _count(ranking, TRUNCATED) > 0


def combined_requests(answers: Iterable[Ranking], calls: int) -> dict[str, Any]:
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
