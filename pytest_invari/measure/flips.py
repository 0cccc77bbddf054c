"""Flips: queries whose measured views were not all ranked alike, and the two views that are most alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_invari.observation.observation import is_valid

if TYPE_CHECKING:
    from pytest_invari.measure.measured import Measured
    from pytest_invari.observation.observation import Observation
    from pytest_invari.observation.witness import Order
    from pytest_invari.tasks.task import Task


@dataclass(frozen=True, slots=True)
class Answers:
    """How the views of one query were ranked.

    ``rankings`` are those that did not fail, by the order that was shown. ``again`` holds another ranking of
    an order that was shown twice and ranked in two ways. ``differ`` says whether the views that count were
    ranked differently: under ``on_failure = random`` a failed view counts as the random order in its place.
    """

    task: Task
    rankings: Mapping[Order, Order]
    again: Mapping[Order, Order]
    differ: bool

    @property
    def nearest(self) -> tuple[Order, Order] | None:
        """The first two orders, ranked differently, that differ at the fewest positions; None without any."""
        number = {ranking: index for index, ranking in enumerate(dict.fromkeys(self.rankings.values()))}
        if len(number) < 2:
            return None
        orders = list(self.rankings)
        place = {item: index for index, item in enumerate(self.task.ids)}
        items = np.array([[place[item] for item in order] for order in orders], np.int32)  # (M, K)
        ranked = np.array([number[self.rankings[order]] for order in orders], np.int32)  # (M,)
        differ = np.array([(items != order).sum(axis=1) for order in items])  # (M, M)
        flips = np.where(ranked[:, None] != ranked, differ, items.shape[1] + 1)
        one, other = divmod(int(flips.argmin()), len(orders))
        return orders[one], orders[other]


def moved(one: Order, other: Order) -> int:
    """The number of positions at which two orders of the same candidates differ."""
    return sum(first != second for first, second in zip(one, other, strict=True))


def answers(measured: Measured) -> list[Answers]:
    """The answers of each query that has two views or more to compare, in the order of the tasks."""
    repeats: dict[str, list[Observation]] = {}
    for seen in measured.repeats:
        repeats.setdefault(seen.query_id, []).append(seen)
    found = []
    for task in measured.tasks.tasks:
        usable = measured.usable(task.query_id)
        if len(usable) < 2:
            continue
        rankings: dict[Order, Order] = {}
        again: dict[Order, Order] = {}
        for seen in filter(is_valid, [*usable, *repeats.get(task.query_id, ())]):
            ranking = tuple(seen.ranking.order)
            if rankings.setdefault(seen.shown, ranking) != ranking:
                again.setdefault(seen.shown, ranking)
        differ = len({measured.order_of(seen) for seen in usable}) > 1
        found.append(Answers(task, rankings, again, differ))
    return found
