"""What was measured of one subject: arrays of its rankings, metrics per query, and their intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pytest_invari import metrics, statistics
from pytest_invari.errors import InvariError
from pytest_invari.measure.blocks import Member, Pooled, compute, labels_of, make_block, pool
from pytest_invari.measure.repeated import repeat_values
from pytest_invari.metrics.arrays import Floats, Integers, PerQuery, merge, query_arrays
from pytest_invari.metrics.block import Block
from pytest_invari.metrics.bucket_agreement import bucket_agreement_gap, bucket_agreement_gaps
from pytest_invari.metrics.effectiveness import NO_RELEVANT_CANDIDATE
from pytest_invari.metrics.metric import (
    FindingMetric,
    OwnMetric,
    PooledMetric,
    QueryMetric,
    RepeatMetric,
    ViewMetric,
)
from pytest_invari.metrics.ppi import ppi
from pytest_invari.metrics.reasons import FAILED_VIEWS
from pytest_invari.observation.observation import failure_of, is_valid
from pytest_invari.protocol.seeding import shuffled
from pytest_invari.statistics.pairings import pairing_p_value

if TYPE_CHECKING:
    from pytest_invari.measure.analyses import Analyses
    from pytest_invari.metrics import Metric
    from pytest_invari.observation.observation import Observation
    from pytest_invari.observation.plan import Plan, SubjectName
    from pytest_invari.statistics import Interval, PooledCounts
    from pytest_invari.tasks.task import TaskSet


@dataclass(frozen=True, slots=True)
class Regions:
    """In how many of the nine pairs of input regions item pairs were seen.

    ``cells_observed_mean`` is the mean over item pairs; ``single_cell_pairs`` counts those seen in fewer than
    two, whose preference cannot be compared.
    """

    cells_observed_mean: float
    single_cell_pairs: int


class Measured:
    """The rankings of one subject and everything computed from them.

    Metric values are aligned with ``query_ids``, which names every task in its order; a query without
    enough valid views has no value, for the reason ``failed_views``. Figures depend on nothing but the
    observations, the plan and the names of data set, metric and reranker.
    """

    def __init__(
        self,
        name: SubjectName,
        plan: Plan,
        tasks: TaskSet,
        observations: Sequence[Observation],
        repeats: Sequence[Observation] = (),
    ) -> None:
        self.name = name
        self.plan = plan
        self.tasks = tasks
        self.observations = tuple(observations)
        self.repeats = tuple(repeats)
        self.query_ids = tuple(task.query_id for task in tasks.tasks)
        self.failures = [failure_of(seen) for seen in observations if not is_valid(seen)]
        self._by_query: dict[str, list[Observation]] = {query_id: [] for query_id in self.query_ids}
        # By name, so that a metric which takes the views in halves has them in one order.
        for seen in sorted(self.observations, key=lambda each: each.view):
            self._by_query[seen.query_id].append(seen)
        self._values: dict[str, PerQuery | Pooled] = {}
        self._intervals: dict[tuple[str, str], Interval] = {}

    @property
    def failure_count(self) -> int:
        """How many views came back without a valid ranking, whatever the plan makes of them."""
        return len(self.failures)

    @property
    def without_relevant(self) -> int:
        """How many queries effectiveness is undefined for, because no candidate is relevant."""
        return self.tasks.without_relevant

    @property
    def positions(self) -> Integers:
        """(n, M, K) 0-based input positions of the measured queries; item i is the i-th id sorted.

        Raises:
            ValueError: dropped views left queries with different numbers of views; see ``blocks``.
        """
        return self._only_block.positions

    @property
    def ranks(self) -> Integers:
        """(n, M, K) 0-based output ranks, aligned with ``positions``; equal where the plan lets them tie."""
        return self._only_block.compared

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The measured queries, grouped by their number of valid views."""
        grouped: dict[int, list[Member]] = {}
        for place, task in enumerate(self.tasks.tasks):
            usable = self.usable(task.query_id)
            if usable:
                arrays = query_arrays(
                    task.query_id,
                    [seen.shown for seen in usable],
                    [self.order_of(seen) for seen in usable],
                    [seen.ranking.scores if is_valid(seen) else None for seen in usable],
                )
                labels = np.array([labels_of(seen, arrays.ids) for seen in usable], np.int16)
                grouped.setdefault(len(usable), []).append(Member(place, task, arrays, labels))
        return tuple(self._block(grouped[views]) for views in sorted(grouped))

    def usable(self, query_id: str) -> list[Observation]:
        """The views of a query that count; none when the query has no value."""
        seen = self._by_query[query_id]
        valid = [each for each in seen if is_valid(each)]
        if self.plan.on_failure == "random" or len(valid) == len(seen):
            return seen
        enough = self.plan.on_failure == "drop" and len(valid) >= min(2, len(seen))
        return valid if enough else []

    def order_of(self, seen: Observation) -> tuple[str, ...]:
        """The ranking that counts for a view, best first: a random order where it failed."""
        if is_valid(seen):
            return tuple(seen.ranking.order)
        return shuffled(seen.shown, "failed view", self.plan.view_seed, seen.query_id, seen.view)

    def metric(self, name: str) -> PerQuery | Pooled:
        """A metric by its word (``loc``, ``ndcg@5``): a value per query, or one for all.

        Raises:
            InvariError: there is no such metric.
        """
        if name not in self._values:
            self._values[name] = self._computed(metrics.parse_metric(name))
        return self._values[name]

    def excused(self, name: str) -> int:
        """How many queries cannot have a value because none of their candidates is relevant."""
        if metrics.parse_metric(name).kind != "per_query":
            return 0
        value = self.metric(name)
        return value.reasons.count(NO_RELEVANT_CANDIDATE) if isinstance(value, PerQuery) else 0

    def why_undefined(self, name: str) -> str | None:
        """The reason why most queries have no value; None of a metric that only all queries together have."""
        if metrics.parse_metric(name).kind == "analysis":
            return None
        interval = self.interval(name)
        reasons = getattr(self.metric(name), "reasons", ())[: interval.n + interval.undefined]
        found = Counter(reason for reason in reasons if reason is not None)
        return found.most_common(1)[0][0] if found else None

    def interval(self, name: str) -> Interval:
        """The metric over queries with its 95 % bootstrap interval.

        All metrics and subjects on the same lists share their draws, which are seeded by data set and list
        length: a figure is the same whatever else runs, in which order and in how many processes.

        Raises:
            InvariError: there is no such metric.
        """
        key = (name, "")
        metric = metrics.parse_metric(name)
        if isinstance(metric, FindingMetric):
            return self.analyses.interval(metric)
        if key not in self._intervals:
            value = self.metric(name)
            self._intervals[key] = (
                statistics.bootstrap_pooled(
                    value.counts,
                    value.statistic,
                    self._resamples(len(self.query_ids)),
                    distance_from=value.distance_from,
                    method=self.plan.interval,
                )
                if isinstance(value, Pooled)
                else self._mean(name, value)
            )
        return self._intervals[key]

    def difference(self, other: Measured, name: str) -> Interval:
        """This subject's metric minus *other*'s over the same queries, with its 95 % interval.

        Queries are matched by id, and only those with a value in both count.

        Raises:
            InvariError: the two were not measured on the same lists in the same orders.
        """
        self._require_comparable(other)
        if metrics.parse_metric(name).kind == "analysis":
            raise InvariError(f"{name} is a finding about one reranker and cannot be compared with another's")
        key = (name, other.name.reranker)
        if key not in self._intervals:
            base = other.metric(name)
            places = {query_id: place for place, query_id in enumerate(other.query_ids)}
            along = np.array([places[query_id] for query_id in self.query_ids], np.intp)
            self._intervals[key] = self.difference_from(
                statistics.PooledCounts(
                    np.asarray(base.counts.numerators)[along], np.asarray(base.counts.denominators)[along]
                )
                if isinstance(base, Pooled)
                else base.values[along],
                name,
            )
        return self._intervals[key]

    def difference_from(self, base: Floats | PooledCounts, name: str) -> Interval:
        """This subject's metric minus values of the same queries and views, with its 95 % interval.

        Args:
            base: (N,) in the order of ``query_ids``, NaN where undefined; of a pooled metric its counts.
            name: the metric.
        """
        new = self.metric(name)
        if isinstance(new, Pooled):
            assert isinstance(base, tuple)
            return statistics.bootstrap_pooled_difference(
                new.counts,
                base,
                new.statistic,
                self._resamples(len(self.query_ids)),
                method=self.plan.interval,
            )
        assert not isinstance(base, tuple)
        considered = self._considered(name, new.values)
        return statistics.bootstrap_difference(
            considered,
            self._considered(name, base),
            self._resamples(len(considered)),
            bounds=self._range(name),
            method=self.plan.interval,
        )

    @cached_property
    def analyses(self) -> Analyses:
        """The analyses of the bank of views.

        Raises:
            InvariError: the plan has no bank with a probe and a target.
        """
        from pytest_invari.measure.analyses import Analyses

        valid = {
            query_id: [seen for seen in answers if is_valid(seen)]
            for query_id, answers in self._by_query.items()
        }
        return Analyses(self.plan, self.tasks, valid)

    @cached_property
    def position_p_value(self) -> float:
        """How often chance alone makes the mean bucket agreement gap as large: the shuffle test's p-value.

        Each query's input orders are paired with its outputs anew, 199 times; small values mean that
        positions matter. NaN where no query has a value.
        """
        seed = f"pairings of {self.name.label}"
        return pairing_p_value(
            [(block.positions, block.compared) for block in self.blocks],
            bucket_agreement_gap,
            seed,
            at_once=bucket_agreement_gaps,
        )

    @cached_property
    def regions(self) -> Regions:
        """How much PPI rests on, over all measured queries."""
        found = [ppi(block.positions, block.compared) for block in self.blocks]
        cells = [each.cells_observed_mean for each in found]
        return Regions(
            float(np.concatenate(cells).mean()) if found else float("nan"),
            sum(int(each.single_cell_pairs.sum()) for each in found),
        )

    @property
    def _only_block(self) -> Block:
        if len(self.blocks) > 1:
            views = ", ".join(str(block.ranks.shape[1]) for block in self.blocks)
            raise ValueError(f"queries have different numbers of valid views ({views}); use blocks")
        return self.blocks[0] if self.blocks else self._block([])

    def _block(self, members: Sequence[Member]) -> Block:
        return make_block(members, self.plan.views, self.plan.k, self.plan.ties)

    def _computed(self, metric: Metric) -> PerQuery | Pooled:
        match metric:
            case QueryMetric() | OwnMetric():
                return self._per_query(metric)
            case ViewMetric():
                return self._over_views(metric)
            case RepeatMetric():
                return repeat_values(metric, self._by_query, self.repeats, self.plan.ties)
            case PooledMetric():
                return pool(metric, self.blocks, len(self.query_ids), self.plan.k)
        raise InvariError(f"{metric.name} is a finding of an analysis, which has no value for each query")

    def _per_query(self, metric: QueryMetric | OwnMetric) -> PerQuery:
        found = merge(len(self.query_ids), ((block.queries, compute(metric, block)) for block in self.blocks))
        reasons = tuple(FAILED_VIEWS if reason == "not_observed" else reason for reason in found.reasons)
        return PerQuery(found.values, reasons)

    def _over_views(self, metric: ViewMetric) -> PerQuery:
        """The mean over the views of each query, valid or not."""
        said = [[metric.function(seen.ranking) for seen in self._by_query[each]] for each in self.query_ids]
        values = [[value for value in each if value is not None] for each in said]
        means = np.array([np.mean(each) if each else np.nan for each in values], np.float64)
        return PerQuery.of(means, np.isnan(means), FAILED_VIEWS)

    def _mean(self, name: str, value: PerQuery) -> Interval:
        considered = self._considered(name, value.values)
        return statistics.bootstrap_mean(
            considered, self._resamples(len(considered)), bounds=self._range(name), method=self.plan.interval
        )

    def _considered(self, name: str, values: Floats) -> Floats:
        """Those of *values* (N,) that the metric is about."""
        # Only the first queries were asked again, and the others say nothing about it.
        is_of_repeats = isinstance(metrics.parse_metric(name), RepeatMetric)
        return values[: self.plan.repeats] if is_of_repeats and self.repeats else values

    def _range(self, name: str) -> tuple[float, float]:
        metric = metrics.parse_metric(name)
        fewest = min((block.ranks.shape[1] for block in self.blocks), default=2)
        return metric.least(fewest), metric.high

    def _resamples(self, count: int) -> statistics.Resamples:
        if self.plan.interval == "percentile":
            return statistics.paper_resamples(count)
        return statistics.seeded_resamples(count, f"{self.name.dataset}-K{self.name.k}")

    def _require_comparable(self, other: Measured) -> None:
        mine, theirs = self.plan, other.plan
        same_views = (mine.k, mine.deciding("orders")) == (theirs.k, theirs.deciding("orders"))
        if not same_views or set(self.query_ids) != set(other.query_ids):
            raise InvariError(
                f"{self.name.label} and {other.name.label} were measured on different queries or views "
                "and cannot be compared; use one plan for both"
            )
