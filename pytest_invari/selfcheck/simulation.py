"""Simulated rerankers, and how often a criterion's verdicts on them are wrong.

A reranker ranks one large simulated population. Its truth is the metric over all of it; cut into many small
data sets, each judged as a run would judge it, the population shows how often the verdicts err.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_invari.criteria.judgement import Limit, judge
from pytest_invari.measure.measured import Measured
from pytest_invari.observation.observation import Observation
from pytest_invari.observation.observe import observe
from pytest_invari.observation.plan import Plan, SubjectName
from pytest_invari.protocol import Candidate, Context, Reranker, seeded_hash
from pytest_invari.rerankers.controls import Biased, CanonicalOrder, InputOrder
from pytest_invari.tasks.task import Task, TaskSet

if TYPE_CHECKING:
    from pytest_invari.criteria.judgement import Verdict
    from pytest_invari.criteria.metric import MetricCriterion
    from pytest_invari.statistics import Interval
    from pytest_invari.suitefile.suite import Suite


PROMISE = 0.025
"""How often a verdict may be wrong when the truth lies on the bound, by the intervals' construction."""

TOLERANCE = 0.05
"""Where the promise counts as broken: the whole interval of a rate lies above it."""

RELEVANT = 2
"""Relevant candidates of each simulated query."""

_Maker = Callable[[TaskSet], Reranker]


def _latent(beta: float, noise: float) -> _Maker:
    return lambda tasks: Biased(tasks, beta=beta, noise=noise, relevance=1.0)


SIMULATED: Mapping[str, _Maker] = {
    "invariant": _latent(0.0, 0.0),
    "noise": _latent(0.0, 1.0),
    "position_0.15": _latent(0.15, 1.0),
    "position_0.5": _latent(0.5, 1.0),
    "position_2": _latent(2.0, 1.0),
    "input_echo": lambda tasks: InputOrder(),
    "sorts_by_id": lambda tasks: CanonicalOrder(InputOrder()),
}
"""What is simulated. ``noise`` and ``position_B`` score a latent utility plus noise plus B × position."""

BASELINE: _Maker = _latent(0.5, 1.5)
"""The other side of criteria that compare; it differs from all of the above."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of *total* simulated data sets came out so."""

    count: int
    total: int

    @property
    def share(self) -> float:
        """The estimate."""
        return self.count / self.total

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of Clopper and Pearson, 1934."""
        from scipy.special import betaincinv

        k, n = self.count, self.total
        low = float(betaincinv(k, n - k + 1, 0.025)) if k else 0.0
        return low, float(betaincinv(k + 1, n - k, 0.975)) if k < n else 1.0


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of one criterion on one simulated reranker.

    ``truth`` is the metric over the whole population (for a criterion that compares, its difference) and
    ``right`` the verdict it deserves. ``missed_below`` and ``missed_above`` count the intervals that lie
    wholly below and above the truth: with the bound at the truth, these would be wrong verdicts.
    """

    truth: float
    bound: float
    right: Verdict
    passed: Rate
    failed: Rate
    undecided: Rate
    missed_below: Rate
    missed_above: Rate

    @property
    def wrong(self) -> Rate:
        """The verdict that is the opposite of the right one."""
        return self.failed if self.right == "pass" else self.passed

    @property
    def broken(self) -> list[str]:
        """Which promises the simulation refutes, in words; empty when it refutes none."""
        promises = {
            f"is {'failed' if self.right == 'pass' else 'passed'} wrongly": self.wrong,
            "has its interval below the truth": self.missed_below,
            "has its interval above the truth": self.missed_above,
        }
        return [
            f"{what} in {rate.share:.1%} [{rate.interval[0]:.1%}, {rate.interval[1]:.1%}] of {rate.total}"
            for what, rate in promises.items()
            if rate.interval[0] > TOLERANCE
        ]


class World:
    """One simulated population, for the lists and views of a plan, and what rerankers make of it.

    Args:
        plan: its ``k``, ``views``, ``queries`` (of each data set) and rules are used.
        datasets: into how many data sets the population is cut.
    """

    def __init__(self, plan: Plan, datasets: int) -> None:
        if plan.queries is None:
            raise ValueError("a simulation needs a number of queries")
        self.datasets = datasets
        self._size = plan.queries
        self._plan = replace(plan, dataset="simulated")
        self._tasks = TaskSet.of(
            "simulated", (_task(number, plan.k) for number in range(datasets * plan.queries))
        )
        self._measured: dict[str, list[Measured]] = {}

    def has(self, reranker: str) -> bool:
        """Whether *reranker* has been simulated already."""
        return reranker in self._measured

    def trial(self, criterion: MetricCriterion, reranker: str, suite: Suite) -> Trial:
        """Judge *criterion* on every data set of the simulated *reranker* as *suite* would."""
        figures = list(self._figures(criterion, reranker))
        truth = figures[0].estimate
        limit = criterion.limit(self._plan.k)
        verdicts = [
            judge(
                limit,
                interval,
                min_queries=min(suite.min_queries, self._size),
                max_undefined=suite.max_undefined,
            ).verdict
            for interval in figures[1:]
        ]

        def rate(count: int) -> Rate:
            return Rate(count, self.datasets)

        return Trial(
            truth=truth,
            bound=limit.value,
            right="pass" if _keeps(truth, limit) else "fail",
            passed=rate(verdicts.count("pass")),
            failed=rate(verdicts.count("fail")),
            undecided=rate(verdicts.count("undecided")),
            missed_below=rate(sum(interval.high < truth - _SLACK for interval in figures[1:])),
            missed_above=rate(sum(interval.low > truth + _SLACK for interval in figures[1:])),
        )

    def _figures(self, criterion: MetricCriterion, reranker: str) -> Iterator[Interval]:
        """The metric's interval over the whole population, then over each data set."""
        name = criterion.metric.name
        subject = self._sample(reranker, SIMULATED[reranker])
        if not criterion.is_relative:
            yield from (measured.interval(name) for measured in subject)
            return
        baseline = self._sample("baseline", BASELINE)
        yield from (new.difference(base, name) for new, base in zip(subject, baseline, strict=True))

    def _sample(self, name: str, make: _Maker) -> list[Measured]:
        if name not in self._measured:
            views = self._plan.sample(self._tasks)
            seen = observe(make(self._tasks), self._tasks, views, description=f"simulating {name}")
            per_set = self._size * self._plan.views
            parts = [self._tasks.tasks[start : start + self._size] for start in self._starts()]
            self._measured[name] = [
                self._measure(name, self._tasks, seen),
                *(
                    self._measure(
                        name,
                        TaskSet("simulated", part, self._tasks.sha256),
                        seen[number * per_set : (number + 1) * per_set],
                    )
                    for number, part in enumerate(parts)
                ),
            ]
        return self._measured[name]

    def _starts(self) -> range:
        return range(0, len(self._tasks.tasks), self._size)

    def _measure(self, name: str, tasks: TaskSet, seen: list[Observation]) -> Measured:
        return Measured(SubjectName(name, tasks.name, self._plan.k), self._plan, tasks, seen)


# An estimate and the truth may be the same number reached by other sums.
_SLACK = 1e-12


def _keeps(truth: float, limit: Limit) -> bool:
    distance = truth - limit.value if limit.side == "at_least" else limit.value - truth
    return distance > _SLACK or (abs(distance) <= _SLACK and not limit.strict)


def _task(number: int, k: int) -> Task:
    """A query whose candidates' ids tell nothing, and whose relevant ones may stand anywhere."""
    query_id = f"simulated{number}"
    ids = [seeded_hash("simulated item", query_id, item).hex()[:8] for item in range(k)]
    return Task(
        query_id,
        Context(text=query_id),
        tuple(Candidate(item, item) for item in ids),
        relevance=dict.fromkeys(ids[: min(RELEVANT, k - 1)], 1.0),
        relevant_total=min(RELEVANT, k - 1),
    )
