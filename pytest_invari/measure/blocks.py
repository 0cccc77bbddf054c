"""Blocks of queries as arrays, and which kernel computes which metric from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from pytest_invari.metrics import effectiveness
from pytest_invari.metrics.arrays import Bools, Integers, PerQuery, QueryArrays, query_chunks
from pytest_invari.metrics.bucket_agreement import bucket_agreement_gap
from pytest_invari.metrics.custom import RankedLists
from pytest_invari.metrics.custom_values import custom_values
from pytest_invari.metrics.gpi import gpi, gpi_exact, gpi_lower_bound
from pytest_invari.metrics.label_agreement import label_agreement
from pytest_invari.metrics.loc import loc
from pytest_invari.metrics.nulls import ppi_excess, ppi_null
from pytest_invari.metrics.ppi import ppi
from pytest_invari.metrics.preference import tie_rate
from pytest_invari.metrics.split_instability import ppi_split
from pytest_invari.protocol import LabelBinding, label_order

if TYPE_CHECKING:
    from pytest_invari.metrics import Metric
    from pytest_invari.observation.observation import Observation
    from pytest_invari.settings import Ties
    from pytest_invari.tasks.task import Task


NO_LABELS = "no_labels"


@dataclass(frozen=True, eq=False)
class Block:
    """Queries with equally many valid views, M, as arrays.

    ``queries`` (n,) are their places among the tasks; ``positions``, ``ranks`` and ``tied_ranks`` are
    int16 (n, M, K) as in :class:`~pytest_invari.metrics.arrays.QueryArrays`, and ``compared`` is the one of
    the two that preferences are read from; ``relevant`` is (n, K) and ``relevant_total`` (n,). ``labels``
    (n, M, K) is the 0-based label that each item bore; −1 where a view showed none. ``members`` (n,) are
    what the arrays were made of.
    """

    members: tuple[Member, ...]
    queries: Integers
    positions: Integers
    ranks: Integers
    tied_ranks: Integers
    compared: Integers
    relevant: Bools
    relevant_total: Integers
    labels: Integers


@dataclass(frozen=True, eq=False)
class Member:
    """One query of a block: its place among the tasks, its task, its arrays, and its labels (M, K)."""

    place: int
    task: Task
    arrays: QueryArrays
    labels: Integers


def make_block(members: Sequence[Member], views: int, items: int, ties: Ties) -> Block:
    """Stack queries that have equally many views; without any, the block is empty, of *views* and *items*."""
    relevant = np.zeros((len(members), items), np.bool_)
    for row, member in enumerate(members):
        relevant[row] = [member.task.relevance.get(item, 0.0) > 0 for item in member.arrays.ids]
    totals = np.array([member.task.relevant_total for member in members], np.int64)

    def stacked(parts: list[Integers]) -> Integers:
        return np.stack(parts) if parts else np.empty((0, views, items), np.int16)

    ranks = stacked([member.arrays.ranks for member in members])
    tied = stacked([member.arrays.tied_ranks for member in members])
    return Block(
        members=tuple(members),
        queries=np.array([member.place for member in members], np.intp),
        positions=stacked([member.arrays.positions for member in members]),
        ranks=ranks,
        tied_ranks=tied,
        compared=tied if ties == "half" else ranks,
        relevant=relevant,
        # A task made without a total has at least the positives that were retrieved.
        relevant_total=np.maximum(totals, relevant.sum(axis=1)),
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


def compute(metric: Metric, block: Block) -> PerQuery:
    """The values (n,) of a metric that every query of *block* has by itself.

    Raises:
        InvariError: it is a user's own, and its function raises or returns no values.
    """
    if metric.custom is not None:
        return _custom(metric, block)
    if metric.k is not None:
        return _WITH_CUTOFF[metric.family](block, metric.k)
    return _KERNELS[metric.family](block)


def _custom(metric: Metric, block: Block) -> PerQuery:
    """A user's own, for some queries at a time, so that its arrays do not grow with the data set."""
    _, views, items = block.ranks.shape
    parts = [
        custom_values(metric, _ranked_lists(block, rows, metric.k))
        for rows in query_chunks(len(block.members), views * items)
    ]
    values = np.concatenate([part.values for part in parts])
    return PerQuery(values, tuple(reason for part in parts for reason in part.reasons))


def _ranked_lists(block: Block, rows: slice, k: int | None) -> RankedLists:
    members = block.members[rows]
    tasks = [(member.task, member.arrays.ids) for member in members]
    grades = [[task.relevance.get(item, 0.0) for item in ids] for task, ids in tasks]
    return RankedLists(
        query_ids=tuple(task.query_id for task, _ in tasks),
        ids=tuple(ids for _, ids in tasks),
        # int64, whose sums and products in a user's function do not overflow.
        positions=block.positions[rows].astype(np.int64),
        ranks=block.compared[rows].astype(np.int64),
        relevance=np.array(grades, np.float64),
        relevant_total=block.relevant_total[rows].astype(np.int64),
        groups=tuple(tuple(task.groups.get(item) for item in ids) for task, ids in tasks),
        k=k,
    )


def _label_agreement(block: Block) -> PerQuery:
    if (block.labels < 0).any():
        return PerQuery.all_undefined(len(block.queries), NO_LABELS)
    return label_agreement(block.labels, block.compared)


_KERNELS: dict[str, Callable[[Block], PerQuery]] = {
    "ppi": lambda block: ppi(block.positions, block.compared),
    "ppi_null": lambda block: ppi_null(block.compared),
    "ppi_excess": lambda block: ppi_excess(block.positions, block.compared),
    "ppi_split": lambda block: ppi_split(block.positions, block.compared),
    "bucket_agreement_gap": lambda block: bucket_agreement_gap(block.positions, block.compared),
    "label_agreement_gap": _label_agreement,
    "gpi": lambda block: gpi(block.compared),
    "gpi_exact": lambda block: gpi_exact(block.compared),
    "gpi_lower_bound": lambda block: gpi_lower_bound(block.compared),
    "loc": lambda block: loc(block.compared),
    "tie_rate": lambda block: tie_rate(block.tied_ranks),
}

_WITH_CUTOFF: dict[str, Callable[[Block, int], PerQuery]] = {
    "hr": lambda block, k: effectiveness.hit_rate(block.compared, block.relevant, k),
    "ndcg": lambda block, k: effectiveness.ndcg(block.compared, block.relevant, block.relevant_total, k),
    "ndcg_candidates": lambda block, k: effectiveness.ndcg_candidates(block.compared, block.relevant, k),
}
