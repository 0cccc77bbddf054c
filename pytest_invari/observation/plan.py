"""Plans: on which lists, in how many orders, and by which rules a reranker is measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_invari.observation.views import (
    CANONICAL,
    View,
    bank_views,
    is_bank_name,
    require_bank_orders,
    require_orders,
    sample_views,
)
from pytest_invari.settings import IntervalMethod, OnFailure, Ties

if TYPE_CHECKING:
    from pytest_invari.protocol import LabelBinding
    from pytest_invari.tasks.task import TaskSet


@dataclass(frozen=True)
class Plan:
    """What is shown to a reranker, and how its failures and ties count.

    Args:
        dataset: a data set's name, or the path of a task file.
        k: candidates in each list.
        queries: the first this many tasks, or all of them.
        views: orders in which each list is shown; those of the bank where there is one.
        view_seed: another seed draws other orders.
        include_canonical: the data set's own order is the first view; otherwise it is never shown.
        on_failure: what becomes of a view without a valid ranking. ``strict``: its query has no value.
            ``drop``: the query is measured on its other views, of which two must be left. ``random``:
            a seeded random order stands in, never the input order, which would look like position bias.
        ties: ``broken``: equal scores are in the order that the ranking gave them, which a hash of the
            ids decides, so that a reranker that scores all alike is consistent. ``half``: between equal
            scores there is no preference, half a win for each.
        interval: ``bca``: bias-corrected, accelerated, widened for few queries and guarded against rare
            events. ``percentile``: the plain quantiles, with the seeds of P2.
        labels: how the labels that a reranker shows are bound, unless its own options say so.
        blind_ids: whether candidates get fresh opaque ids in each view, if the reranker can do without.
        repeats: of how many queries the first view is asked again.
        bank: the names of the views in their order, in place of ``views`` drawn by ``view_seed``:
            ``canonical`` or a seed, as in ``("canonical", "13", "17")``.
        probe: the views of the bank from which an instability is estimated (P2).
        target: the views of the bank that it is compared with (P2).

    Raises:
        ValueError: the bank has a name twice or one that is none, ``views`` is not its number of views, or a
            role names a view that is not in it.
    """

    dataset: str
    k: int
    queries: int | None
    views: int = 0
    view_seed: int = 0
    include_canonical: bool = False
    on_failure: OnFailure = "strict"
    ties: Ties = "broken"
    interval: IntervalMethod = "bca"
    labels: LabelBinding = "item"
    blind_ids: bool = False
    repeats: int = 0
    bank: tuple[str, ...] = ()
    probe: tuple[str, ...] = ()
    target: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.bank:
            if self.views not in (0, len(self.bank)):
                raise ValueError(f"a bank of {len(self.bank)} views cannot have {self.views}")
            if len(set(self.bank)) < len(self.bank) or not all(map(is_bank_name, self.bank)):
                raise ValueError(f"{self.bank} is no bank: its names are {CANONICAL!r} and seeds, each once")
            object.__setattr__(self, "views", len(self.bank))
        for name in (*self.probe, *self.target):
            if name not in self.bank:
                raise ValueError(f"view {name!r} is not in the bank {self.bank}")

    @property
    def probe_places(self) -> tuple[int, ...]:
        """Where the probe's views stand in the bank, counted from 0."""
        return tuple(map(self.bank.index, self.probe))

    @property
    def target_places(self) -> tuple[int, ...]:
        """Where the target's views stand in the bank, counted from 0."""
        return tuple(map(self.bank.index, self.target))

    @property
    def table(self) -> dict[str, Any]:
        """What of it decides which metrics are in a subject's table."""
        return {"k": self.k, "has_repeats": bool(self.repeats), "redraws_labels": self.labels == "redrawn"}

    def require_orders(self, tasks: TaskSet) -> None:
        """Refuse lists that are too short for so many views, without drawing any.

        Raises:
            InvariError: a list has fewer orders than there are views, or so few that a bank's coincide.
        """
        for task in tasks.tasks:
            if self.bank:
                require_bank_orders(len(task.candidates), self.views)
            else:
                require_orders(
                    task.query_id,
                    len(task.candidates),
                    self.views,
                    include_canonical=self.include_canonical,
                )

    def sample(self, tasks: TaskSet) -> Mapping[str, list[View]]:
        """The views of each query, by its id.

        Raises:
            InvariError: as :meth:`require_orders`.
        """
        if self.bank:
            self.require_orders(tasks)
            return {task.query_id: bank_views(task.query_id, task.ids, self.bank) for task in tasks.tasks}
        return {
            task.query_id: sample_views(
                task.query_id,
                task.ids,
                self.views,
                seed=self.view_seed,
                include_canonical=self.include_canonical,
            )
            for task in tasks.tasks
        }

    def repeated(self, views: Mapping[str, Sequence[View]], suffix: str) -> Mapping[str, list[View]]:
        """The first view of each of the first ``repeats`` queries, under another name; none of the rest."""
        return {
            query_id: [View(f"{drawn[0].name}.{suffix}", drawn[0].order)] if place < self.repeats else []
            for place, (query_id, drawn) in enumerate(views.items())
        }


@dataclass(frozen=True)
class SubjectName:
    """A reranker, as the user named it, on one data set at one list length."""

    reranker: str
    dataset: str
    k: int

    @property
    def label(self) -> str:
        """Short text for people: ``sgs-movielens_small-K10``."""
        return f"{self.reranker}-{self.dataset}-K{self.k}"


def dataset_label(dataset: str) -> str:
    """A data set's part of an id: its name, or the stem of its path."""
    path = Path(dataset)
    is_path = "/" in dataset or "\\" in dataset or path.suffix in (".parquet", ".jsonl", ".zip")
    return id_text(path.stem if is_path else dataset)


def id_text(text: str) -> str:
    """Text for an id: without what pytest splits ids at, or what would confuse a terminal."""
    plain = "".join(character if character.isprintable() else "_" for character in text)
    return re.sub(r"[\[\]]", "_", plain).replace("::", ":")
