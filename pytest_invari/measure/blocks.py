"""Blocks of queries, made of what was observed of each, and the values that metrics have of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from pytest_invari import statistics
from pytest_invari.metrics.arrays import Integers, PerQuery, QueryArrays
from pytest_invari.metrics.block import Block
from pytest_invari.metrics.metric import OwnMetric
from pytest_invari.protocol import LabelBinding, label_order

if TYPE_CHECKING:
    from pytest_invari.metrics.metric import PooledMetric, QueryMetric
    from pytest_invari.observation.observation import Observation
    from pytest_invari.settings import Ties
    from pytest_invari.statistics import PooledCounts
    from pytest_invari.tasks.task import Task


@dataclass(frozen=True, eq=False)
class Member:
    """One query of a block: its place among the tasks, its task, its arrays, and its labels (M, K)."""

    place: int
    task: Task
    arrays: QueryArrays
    labels: Integers


def make_block(members: Sequence[Member], views: int, items: int, ties: Ties) -> Block:
    """Stack queries that have equally many views; without any, the block is empty, of *views* and *items*."""
    grades = np.zeros((len(members), items))
    for row, member in enumerate(members):
        grades[row] = [member.task.relevance.get(item, 0.0) for item in member.arrays.ids]
    totals = np.array([member.task.relevant_total for member in members], np.int64)

    def stacked(parts: list[Integers]) -> Integers:
        return np.stack(parts) if parts else np.empty((0, views, items), np.int16)

    ranks = stacked([member.arrays.ranks for member in members])
    tied = stacked([member.arrays.tied_ranks for member in members])
    return Block(
        queries=np.array([member.place for member in members], np.intp),
        query_ids=tuple(member.task.query_id for member in members),
        ids=tuple(member.arrays.ids for member in members),
        positions=stacked([member.arrays.positions for member in members]),
        ranks=ranks,
        tied_ranks=tied,
        compared=tied if ties == "half" else ranks,
        relevance=grades,
        # A task made without a total has at least the positives that were retrieved.
        relevant_total=np.maximum(totals, (grades > 0).sum(axis=1)),
        groups=tuple(tuple(member.task.groups.get(item) for item in member.arrays.ids) for member in members),
        labels=stacked([member.labels for member in members]),
    )


def labels_of(seen: Observation, ids: Sequence[str]) -> list[int]:
    """The 0-based label that each of *ids* bore; −1 for all in a view that showed no labels."""
    binding: Any = seen.ranking.diagnostics.get("labels")
    # A reranker that shows none may have another use for the word.
    if binding not in get_args(LabelBinding):
        return [-1] * len(ids)
    label_of = {item: label for label, item in enumerate(label_order(binding, seen.query_id, seen.shown))}
    return [label_of[item] for item in ids]


def compute(metric: QueryMetric | OwnMetric, block: Block) -> PerQuery:
    """The values (n,) of a metric that every query of *block* has by itself.

    Raises:
        InvariError: it is a user's own, and its function raises or returns no values.
    """
    if isinstance(metric, OwnMetric):
        from pytest_invari.metrics.custom_values import custom_values

        return custom_values(metric, block)
    return metric.function(block, metric.k or 0)


@dataclass(frozen=True, eq=False)
class Pooled:
    """A metric that only all queries together have: a statistic of pooled counts, and its value.

    ``distance_from`` is the number that the statistic tells the distance from, where it is a distance.
    """

    counts: PooledCounts
    statistic: statistics.bootstrap.Statistic
    distance_from: float | None = None

    @property
    def value(self) -> float:
        """The statistic over all queries; NaN when there are none."""
        total = np.asarray(self.counts.denominators).sum()
        if not total:
            return float("nan")
        return float(self.statistic(np.asarray(self.counts.numerators).sum(axis=0) / total))


def pool(metric: PooledMetric, blocks: Iterable[Block], queries: int, items: int) -> Pooled:
    """A metric of the *blocks* of *queries*, whose lists have *items*."""
    k = metric.k or 0
    numerators = np.zeros((queries, items), np.int64)
    denominators = np.zeros(queries, np.int64)
    for block in blocks:
        numerators[block.queries], denominators[block.queries] = metric.counts(block, k)
    return Pooled(
        statistics.PooledCounts(numerators, denominators),
        lambda shares: metric.statistic(shares, k),
        metric.distance_from(k, items),
    )
