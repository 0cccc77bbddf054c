"""The frame of a method: it asks its base about a list several times, all lists side by side."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice
from typing import ClassVar, Literal, TypeAlias

from pytest_invari.errors import InvariError
from pytest_invari.protocol import Cost, Ranking, RankingError, Request, Reranker, Status, rank_all
from pytest_invari.protocol.ranking import combined_requests
from pytest_invari.protocol.seeding import shuffled
from pytest_invari.protocol.wrapping import Wrapper, order_seed

InnerSeed = Literal["request", "query"]

# Yields the requests that may go at the same time, is sent their answers, and returns the ranking.
Steps: TypeAlias = Generator[Sequence[Request], Sequence[Ranking], Ranking]

# From the best to the worst.
_TRUST: tuple[Status, ...] = ("ok", "repaired", "partial", "failed")


class Method(Wrapper):
    """A method over a base reranker; subclasses give the way of one list through it.

    All lists go side by side: their first steps in one batch, then their second ones. Costs add up along
    the way: calls that wait for one another in depth, calls of one step not. When a call fails, so does its
    list, and only that. A ranking is trusted as far as the least trustworthy answer that it rests on.

    The inner shuffles are seeded by method, seed, query and step. With ``inner_seed="request"``, as in the
    public code of P1, also by the given order, so that two views of a query are shuffled differently; with
    ``"query"`` not, so that a method over an order-invariant base is invariant itself.
    """

    name: ClassVar[str]

    def __init__(self, base: Reranker, *, inner_seed: InnerSeed = "request", seed: int = 0) -> None:
        super().__init__(base)
        self.inner_seed = inner_seed
        self.seed = seed

    @abstractmethod
    def steps(self, request: Request) -> Steps:
        """Go with one list through the method. No answer that is sent has failed.

        Raises:
            RankingError: the method cannot rank this list.
        """

    @abstractmethod
    def options(self) -> Mapping[str, object]:
        """What can change the answers, besides the base and the seeds."""

    def rank_labelled(self, requests: Sequence[Request]) -> list[Ranking]:
        """Rank the requests in step."""
        runs = [_MethodRun(self.steps(request)) for request in requests]
        while waiting := [run for run in runs if run.asked]:
            answers = iter(rank_all(self.base, [request for run in waiting for request in run.asked]))
            for run in waiting:
                run.take(list(islice(answers, len(run.asked))))
        return [run.ranking for run in runs]

    def fingerprint(self) -> Mapping[str, object]:
        """The options and the base's fingerprint."""
        return {
            "reranker": self.name,
            **self.options(),
            "inner_seed": self.inner_seed,
            "seed": self.seed,
            "base": super().fingerprint(),
        }

    def shuffled(self, request: Request, ids: Sequence[str], step: int) -> tuple[str, ...]:
        """The order in which *ids* are shown at one step."""
        outer = order_seed(request) if self.inner_seed == "request" else ""
        return shuffled(ids, self.name, self.seed, request.query_id, outer, step)


class _MethodRun:
    """One list on its way: what it waits for, and in the end its ranking."""

    def __init__(self, steps: Steps) -> None:
        self.asked: Sequence[Request] = ()
        self.ranking = Ranking(())
        self._steps = steps
        self._answers: list[Ranking] = []
        self._received: list[Ranking] = []
        self._cost = Cost()
        self._go_on()

    def take(self, answers: Sequence[Ranking]) -> None:
        """Go on with the answers to what was asked."""
        self._cost = self._cost.then(reduce(Cost.beside, (answer.cost for answer in answers)))
        self._received += answers
        for request, answer in zip(self.asked, answers, strict=True):
            if answer.status == "failed":
                place = f"call {len(self._answers) + 1}, on {len(request.candidates)} candidates"
                fault = f"{place}: {answer.fault}"
                self._end(Ranking.failed(fault, self._cost, is_transient=answer.is_transient))
                return
            self._answers.append(answer)
        self._go_on(answers)

    def _go_on(self, answers: Sequence[Ranking] | None = None) -> None:
        try:
            # A generator must be started before it can be sent anything.
            self.asked = next(self._steps) if answers is None else self._steps.send(answers)
        except StopIteration as stop:
            status = max((answer.status for answer in self._answers), key=_TRUST.index, default="ok")
            self._end(replace(stop.value, cost=self._cost, status=status))
        except RankingError as error:
            self._end(Ranking.failed(str(error), self._cost))

    def _end(self, ranking: Ranking) -> None:
        self._steps.close()
        told = combined_requests(self._received, self._cost.calls)
        self.asked, self.ranking = (), replace(ranking, diagnostics={**ranking.diagnostics, **told})


def at_least(least: int, **options: int) -> None:
    """Check options of a method.

    Raises:
        InvariError: one of them is less than *least*.
    """
    for name, value in options.items():
        if value < least:
            raise InvariError(f"option {name!r} must be at least {least}, not {value}")
