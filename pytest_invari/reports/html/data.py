"""What the pictures need beyond a subject's figures: plain values, made where the subject was measured."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from pytest_invari.observation.observation import is_valid
from pytest_invari.observation.views import CANONICAL, view_order
from pytest_invari.text import harmless

if TYPE_CHECKING:
    from pytest_invari.measure.measured import Measured
    from pytest_invari.metrics.arrays import PerQuery
    from pytest_invari.observation.observation import Observation
    from pytest_invari.tasks.task import Task


LEAST_STABLE = 10
"""How many queries are shown with their candidates."""

# A title is told by its beginning, and each one travels with every item of its subject.
_TITLE = 160
_CONTEXT = 400
# Two orders of adding the same numbers may tell equal queries apart.
_DECIMALS = 12


def exposure_top(k: int) -> int:
    """The length of the top whose exposure is shown for lists of *k*: that of the table's deviation."""
    return 5 if k > 5 else 1


def page_data(measured: Measured) -> dict[str, Any]:
    """What is drawn of one subject.

    ``exposure`` holds the length of the ``top``, how many ``views`` of all queries count, for each input
    position in how many of them its item came out in the top, and how many views the figures ``pooled`` over
    all queries count, which take and leave failures as the plan says. ``unstable`` are the least stable
    queries, the least stable one first.
    """
    return {"exposure": _exposure(measured), "unstable": _unstable(measured)}


def _exposure(measured: Measured) -> dict[str, Any]:
    """Of the valid rankings of random orders: in the data set's own, no chance says who stands where."""
    top = exposure_top(measured.plan.k)
    hits, views = [0] * measured.plan.k, 0
    for seen in measured.observations:
        if seen.view == CANONICAL or not is_valid(seen):
            continue
        views += 1
        best = set(seen.ranking.order[:top])
        for position, item in enumerate(seen.shown):
            hits[position] += item in best
    pooled = sum(len(measured.usable(query)) for query in measured.query_ids)
    return {"top": top, "views": views, "hits": hits, "pooled": pooled}


def _unstable(measured: Measured) -> list[dict[str, Any]]:
    """The queries of the largest mean Kendall distance (1 − LOC)/2 between two views; ties by id.

    Where fewer than two views were ranked, only the random orders in place of the others differ.
    """
    ranked = Counter(seen.query_id for seen in measured.observations if is_valid(seen))
    loc = cast("PerQuery", measured.metric("loc")).values
    found = {
        query: round((1 - float(value)) / 2, _DECIMALS)
        for query, value in zip(measured.query_ids, loc, strict=True)
        if not math.isnan(value) and ranked[query] > 1
    }
    moved = [query for query in found if found[query] > 0]
    chosen = sorted(moved, key=lambda query: (-found[query], query))[:LEAST_STABLE]
    tasks = {task.query_id: task for task in measured.tasks.tasks}
    seen: dict[str, list[Observation]] = {query: [] for query in chosen}
    for each in measured.observations:
        if each.query_id in seen:
            seen[each.query_id].append(each)
    return [_query(tasks[query], found[query], seen[query]) for query in chosen]


def _query(task: Task, distance: float, observations: list[Observation]) -> dict[str, Any]:
    """One query: each candidate's place in the input and in the ranking of each view, from 1."""
    views = sorted(observations, key=lambda each: view_order(each.view))
    return {
        "query": harmless(task.query_id),
        "text": _cut(" · ".join(str(task.context).splitlines()), _CONTEXT),
        "distance": distance,
        "views": [harmless(each.view) for each in views],
        "candidates": [
            {
                "id": harmless(candidate.id),
                "title": _cut(candidate.text, _TITLE),
                "relevant": bool(task.relevance.get(candidate.id, 0.0) > 0),
                "shown": [each.shown.index(candidate.id) + 1 for each in views],
                "ranks": [_rank(each, candidate.id) for each in views],
            }
            for candidate in task.candidates
        ],
    }


def _rank(seen: Observation, item: str) -> int | None:
    """None in a view without a valid ranking."""
    return seen.ranking.order.index(item) + 1 if is_valid(seen) else None


def _cut(text: str, most: int) -> str:
    """Without what looks like a secret before it is cut, so that no half of one is left."""
    shown = harmless(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
