"""STELLA: a belief about the best candidate, updated by where a model of known position bias looks first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_invari.protocol import Cost, Ranking, Request, Reranker, rank_all
from pytest_invari.rerankers.stella_calibration import Calibration, Calibrator
from pytest_invari.rerankers.wrapping import (
    InnerSeed,
    Wrapper,
    at_least,
    calls_of,
    shuffle_seed,
    worst_status,
)
from pytest_invari.views import shuffled

if TYPE_CHECKING:
    from pytest_invari.registry import Build

__all__ = ["Stella", "make"]

# P1 gives no figures for these two; they are those of its public code.
NEGLIGIBLE = 1e-6
STILL_UPDATES = 3
# Entropies nearer than this are equal: which of them is lower is chance.
ROUNDING = 1e-12


def make(
    build: Build,
    base: str = "zero_shot",
    updates: int = 10,
    probes: int = 150,
    repeats: int = 5,
    calibration: str = "",
    inner_seed: InnerSeed = "request",
    seed: int = 0,
) -> Stella:
    """Bayesian updates from where the model's first choice stood; up to 10 calls in a row (P1 section 4)."""
    at_least(1, updates=updates, probes=probes, repeats=repeats)
    wrapped = build.reranker(base)
    calibrator = Calibrator(
        wrapped,
        build.tasks,
        build.k,
        probes=probes,
        repeats=repeats,
        seed=seed,
        path=calibration,
        again=build.settings.calibrate,
    )
    return Stella(wrapped, calibrator, updates=updates, inner_seed=inner_seed, seed=seed)


class Stella(Wrapper):
    """Asks the base up to *updates* times and keeps a posterior over the candidates.

    The first order is the given one, later ones are shuffles. Each answer's first candidate, seen at
    input position o, multiplies the belief in the candidate at position p by T[p, o], the calibrated
    probability that the model picks position o when the best candidate stands at p. It stops after
    three changes of the entropy in a row of at most 1e-6, and returns the ranking of the posterior with
    the least entropy (the first such). Equal posteriors keep that update's raw ranking; so does the
    whole list when the information gain ln K − H is at most 1e-6. When a call fails, so does the request.

    T is calibrated for one list length: a list of another length fails. Calibration is not part of a
    ranking's cost; its calls, and those of them that failed, stand in the diagnostics.

    Cost: at most *updates* calls, depth the same (times the base's own).
    """

    def __init__(
        self,
        base: Reranker,
        calibrator: Calibrator,
        *,
        updates: int = 10,
        inner_seed: InnerSeed = "request",
        seed: int = 0,
    ) -> None:
        super().__init__(base)
        self.calibrator = calibrator
        self.updates = updates
        self.inner_seed = inner_seed
        self.seed = seed

    def check(self) -> None:
        """Check the base, and that there is, or can be, a calibration for it."""
        super().check()
        self.calibrator.check()

    def prepare(self) -> None:
        """Load the base, and load or make its calibration."""
        super().prepare()
        self.calibrator.prepare()

    def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        """Rank the requests in step."""
        calibration = self.calibrator.prepare()
        beliefs = [
            _Belief(request, shuffle_seed("stella", self.inner_seed, self.seed, request))
            for request in requests
        ]
        for belief in beliefs:
            if len(belief.request.candidates) not in (1, self.calibrator.k):
                belief.fault = (
                    f"stella is calibrated for lists of {self.calibrator.k}, "
                    f"not of {len(belief.request.candidates)}"
                )
        while waiting := [belief for belief in beliefs if belief.needs_call(self.updates)]:
            answers = rank_all(self.base, [belief.next_request() for belief in waiting])
            for belief, answer in zip(waiting, answers, strict=True):
                belief.update(answer, calibration.log_transitions)
        return [belief.ranking(calibration) for belief in beliefs]

    def expected_calls(self, k: int) -> int:
        """Return the most it may need; it often stops before."""
        return self.updates * calls_of(self.base, k)

    def fingerprint(self) -> Mapping[str, object]:
        """The options, the base's fingerprint and that of the calibration."""
        return {
            "reranker": "stella",
            "updates": self.updates,
            "inner_seed": self.inner_seed,
            "seed": self.seed,
            "base": super().fingerprint(),
            "calibration": {
                key: value for key, value in self.calibrator.fingerprint().items() if key != "base"
            },
        }


@dataclass(slots=True)
class _Belief:
    """One request, and which of its candidates the answers so far speak for."""

    request: Request
    seed: tuple[object, ...]
    asked: Request = field(init=False)
    evidence: dict[str, list[float]] = field(init=False)
    entropy: float = field(init=False)
    best: tuple[float, dict[str, float], Ranking] | None = None
    still: int = 0
    answers: list[Ranking] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)
    fault: str = ""

    def __post_init__(self) -> None:
        self.asked = self.request
        self.evidence = {item: [] for item in self.request.ids}
        self.entropy = math.log(len(self.request.candidates))

    def needs_call(self, updates: int) -> bool:
        going = len(self.answers) < updates and self.still < STILL_UPDATES
        return going and len(self.request.candidates) > 1 and not self.fault

    def next_request(self) -> Request:
        if self.answers:
            self.asked = self.request.select(shuffled(self.request.ids, *self.seed, len(self.answers)))
        return self.asked

    def update(self, answer: Ranking, log_transitions: Sequence[Sequence[float]]) -> None:
        self.cost = self.cost.then(answer.cost)
        if answer.status == "failed":
            self.fault = f"call {len(self.answers) + 1}: {answer.fault}"
            return
        self.answers.append(answer)
        observed = self.asked.ids.index(answer.order[0])
        for position, item in enumerate(self.asked.ids):
            self.evidence[item].append(log_transitions[position][observed])
        posterior = _normalised(self.evidence)
        entropy = -math.fsum(p * math.log(p) for p in posterior.values() if p > 0)
        self.still = self.still + 1 if abs(entropy - self.entropy) <= NEGLIGIBLE else 0
        self.entropy = entropy
        if self.best is None or entropy < self.best[0] - ROUNDING:
            self.best = entropy, posterior, answer

    def ranking(self, calibration: Calibration) -> Ranking:
        if self.fault:
            return Ranking.failed(self.fault, self.cost)
        if self.best is None:
            return Ranking(self.request.ids, cost=self.cost)
        entropy, posterior, raw = self.best
        gain = math.log(len(raw.order)) - entropy
        # The sort is stable: equal posteriors keep the raw ranking.
        order = sorted(raw.order, key=lambda item: -posterior[item]) if gain > NEGLIGIBLE else raw.order
        return Ranking(
            tuple(order),
            cost=self.cost,
            status=worst_status(self.answers),
            diagnostics={
                "updates": len(self.answers),
                "information_gain": gain,
                "calibration_calls": calibration.calls,
                "calibration_failed": calibration.failed,
            },
        )


def _normalised(evidence: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the posterior under a uniform prior.

    The exact sums make it independent of the order in which the same evidence came.
    """
    logs = {item: math.fsum(values) for item, values in evidence.items()}
    highest = max(logs.values())
    weights = {item: math.exp(value - highest) for item, value in logs.items()}
    total = math.fsum(weights.values())
    return {item: weight / total for item, weight in weights.items()}
