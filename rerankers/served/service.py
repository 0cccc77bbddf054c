"""The frame of a reranker that a service answers for: one call for each list, many in flight."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_invari.errors import InvariError
from pytest_invari.progress import tick
from pytest_invari.protocol import Candidate, Context, Cost, Ranking, RankingError, Request
from pytest_invari.protocol.ranking import ATTEMPTS
from pytest_invari.rerankers.served.client import Client, Reply, ServiceError, TransientServiceError

# A batch keeps the places in flight filled for most of its time, and is all that a killed run loses.
BATCH_PER_PLACE = 8
# Of a count of tokens.
MOST_DIGITS = 15


class Served(ABC):
    """A reranker over a :class:`Client`; subclasses say what is sent and read what comes back.

    A request that the service fails is a failed ranking, and the others go on. One that failed for reasons
    that say nothing about it is ranked again when the run goes on from its records.
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    @abstractmethod
    def ask(self, request: Request) -> Ranking:
        """Call the service for one list, whose labels are drawn.

        Raises:
            RankingError: there is no usable answer.
        """

    @abstractmethod
    def fingerprint(self) -> Mapping[str, object]:
        """Everything known that can change the answers, but for the key."""

    @property
    def batch_requests(self) -> int:
        """Enough to keep the service busy."""
        return BATCH_PER_PLACE * self.client.limits.concurrency

    def expected_calls(self, k: int) -> int:
        """One call a list."""
        return 1

    def check(self) -> None:
        """Refuse bad settings before anything is sent."""
        self.client.check()

    def prepare(self) -> None:
        """Ask once about two texts, so that a wrong address, key or model is told before anything is ranked.

        Raises:
            InvariError: with what the service said.
        """
        pair = (Candidate("a", "first text"), Candidate("b", "second text"))
        ranking = self._answer(Request("probe", Context("probe"), pair))
        if ranking.status == "failed":
            raise InvariError(f"the service does not rank two texts: {ranking.fault}")

    def rank(self, request: Request) -> Ranking:
        """Rank one request: a batch of one."""
        return self.rank_many([request])[0]

    def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        """Rank the requests, as many at a time as the service is to be asked.

        Raises:
            ServiceDownError: the service is away.
        """
        started = time.perf_counter()
        rankings = self.client.each(self._answer, requests, tick)
        share = (time.perf_counter() - started) / max(1, len(requests))
        return [replace(each, cost=replace(each.cost, seconds=share)) for each in rankings]

    def _answer(self, request: Request) -> Ranking:
        try:
            return self.ask(request)
        except ServiceError as error:
            is_transient = isinstance(error, TransientServiceError)
            failed = Ranking.failed(str(error), Cost(calls=1, depth=1), is_transient=is_transient)
            return replace(failed, diagnostics={**failed.diagnostics, **_attempts(error.attempts)})
        except RankingError as error:
            return Ranking.failed(str(error), Cost(calls=1, depth=1))


def scores_by_index(results: object, score: str, count: int) -> dict[int, float]:
    """Scores keyed by 0-based index, from a service's list of objects with ``index`` and *score*.

    Raises:
        RankingError: it is no such list; an index is no whole number, out of range, repeated or missing; or a
            score is no finite number. The message names the indices.
    """
    if not isinstance(results, list) or not all(isinstance(each, dict) for each in results):
        raise RankingError("the answer has no list of results")
    for each in results:
        index, value = each.get("index"), each.get(score)
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count:
            raise RankingError(f"the answer has index {_short(index)}, and the list has 0 to {count - 1}")
        if not is_finite(value):
            raise RankingError(f"the answer's {score} for index {index} is {_short(value)}, not a number")
    found = Counter(each["index"] for each in results)
    _require_none((index for index, times in found.items() if times > 1), "repeats")
    _require_none((index for index in range(count) if index not in found), "lacks")
    return {each["index"]: float(each[score]) for each in results}


def is_finite(value: object) -> bool:
    """Whether it is a number that a score can be; JSON also has whole ones that no float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def whole(value: object) -> int:
    """A count of tokens as a service reports it; 0 where it reports none, or none that can be."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= MOST_DIGITS:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 <= value < 10**MOST_DIGITS else 0


def part(content: Any, *names: str) -> Any:
    """What stands under these names, one within the other; None where anything is missing."""
    for name in names:
        content = content.get(name) if isinstance(content, dict) else None
    return content


def described(reply: Reply, model: object) -> dict[str, Any]:
    """What a record keeps of an answer: the model that the service says has answered, and the attempts."""
    served = model if isinstance(model, str) and model else None
    return {
        **({"served_model": served[:200]} if served else {}),
        **_attempts(reply.attempts),
    }


def unusable(fault: str, cost: Cost, told: Mapping[str, Any]) -> Ranking:
    """The failed ranking of an answer that came and is none; *told* is what is known of it all the same."""
    failed = Ranking.failed(fault, cost)
    return replace(failed, diagnostics={**failed.diagnostics, **told})


def _attempts(count: int) -> dict[str, int]:
    return {ATTEMPTS: count} if count > 1 else {}


def _require_none(indices: Iterable[int], fault: str) -> None:
    listed = [str(index) for index in sorted(indices)]
    if listed:
        more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
        raise RankingError(f"the answer {fault} index {', '.join(listed[:5])}{more}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
