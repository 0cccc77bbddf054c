"""STELLA: a belief about the best candidate, updated by where a model of known position bias looks first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_invari.protocol import Ranking, RankingError, Request, Reranker
from pytest_invari.protocol.capabilities import calls_of
from pytest_invari.rerankers.method import InnerSeed, Method, Steps, at_least
from pytest_invari.rerankers.stella_calibration import Calibrator

if TYPE_CHECKING:
    from pytest_invari.registry.build import Build


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


class Stella(Method):
    """Asks the base up to *updates* times and keeps a posterior over the candidates.

    The first order is the given one, later ones are shuffles. Each answer's first candidate, seen at
    input position o, multiplies the belief in the candidate at position p by T[p, o], the calibrated
    probability that the model picks position o when the best candidate stands at p. It stops after
    three changes of the entropy in a row of at most 1e-6, and returns the ranking of the posterior with
    the least entropy (the first such). Equal posteriors keep that update's raw ranking; so does the
    whole list when the information gain ln K − H is at most 1e-6.

    T is calibrated for one list length: a list of another length fails. Calibration is not part of a
    ranking's cost; its calls, and those of them that failed, stand in the diagnostics.

    Cost: at most *updates* calls, depth the same (times the base's own).
    """

    name = "stella"

    def __init__(
        self,
        base: Reranker,
        calibrator: Calibrator,
        *,
        updates: int = 10,
        inner_seed: InnerSeed = "request",
        seed: int = 0,
    ) -> None:
        super().__init__(base, inner_seed=inner_seed, seed=seed)
        self.calibrator = calibrator
        self.updates = updates

    @property
    def early_fingerprint(self) -> bool:
        """As the base; but who asks for a new calibration is to get one."""
        return super().early_fingerprint and not self.calibrator.again

    def check(self) -> None:
        """Check the base, and that there is, or can be, a calibration for it."""
        super().check()
        self.calibrator.check()

    def prepare(self) -> None:
        """Load the base, and load or make its calibration."""
        super().prepare()
        self.calibrator.prepare()

    def steps(self, request: Request) -> Steps:
        """One update after the other."""
        calibration = self.calibrator.prepare()
        size = len(request.candidates)
        if size not in (1, self.calibrator.k):
            raise RankingError(f"stella is calibrated for lists of {self.calibrator.k}, not of {size}")
        evidence: dict[str, list[float]] = {item: [] for item in request.ids}
        entropies = [math.log(size)]
        best = _Update(entropies[0], dict.fromkeys(request.ids, 1 / size), request.ids)
        while size > 1 and len(entropies) <= self.updates and not _is_still(entropies):
            step = len(entropies) - 1
            asked = request.select(self.shuffled(request, request.ids, step)) if step else request
            (answer,) = yield [asked]
            observed = asked.ids.index(answer.order[0])
            for position, item in enumerate(asked.ids):
                evidence[item].append(calibration.log_transitions[position][observed])
            posterior = _normalised(evidence)
            entropy = -math.fsum(p * math.log(p) for p in posterior.values() if p > 0)
            if step == 0 or entropy < best.entropy - ROUNDING:
                best = _Update(entropy, posterior, answer.order)
            entropies.append(entropy)
        gain = entropies[0] - best.entropy
        return Ranking(
            best.ranking if gain > NEGLIGIBLE else best.raw,
            diagnostics={
                "updates": len(entropies) - 1,
                "information_gain": gain,
                "calibration_calls": calibration.calls,
                "calibration_failed": calibration.failed,
            },
        )

    def options(self) -> Mapping[str, object]:
        """How many updates, and the fingerprint of the calibration."""
        calibration = self.calibrator.fingerprint()
        return {
            "updates": self.updates,
            "calibration": {key: value for key, value in calibration.items() if key != "base"},
        }

    def expected_calls(self, k: int) -> int:
        """Return the most it may need; it often stops before."""
        return self.updates * calls_of(self.base, k)


@dataclass(frozen=True, slots=True)
class _Update:
    """What was believed after one answer, and that answer's own order."""

    entropy: float
    posterior: Mapping[str, float]
    raw: tuple[str, ...]

    @property
    def ranking(self) -> tuple[str, ...]:
        # The sort is stable: equal posteriors keep the raw ranking.
        return tuple(sorted(self.raw, key=lambda item: -self.posterior[item]))


def _is_still(entropies: Sequence[float]) -> bool:
    """Whether the last changes were all negligible."""
    last = entropies[-STILL_UPDATES - 1 :]
    return len(last) > STILL_UPDATES and all(abs(b - a) <= NEGLIGIBLE for a, b in pairwise(last))


def _normalised(evidence: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the posterior under a uniform prior.

    The exact sums make it independent of the order in which the same evidence came.
    """
    logs = {item: math.fsum(values) for item, values in evidence.items()}
    highest = max(logs.values())
    weights = {item: math.exp(value - highest) for item, value in logs.items()}
    total = math.fsum(weights.values())
    return {item: weight / total for item, weight in weights.items()}
