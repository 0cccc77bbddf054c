"""Plans: on which lists, in how many orders, and by which rules a reranker is measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_invari.observation.view_settings import (
    CountingRules,
    Decides,
    ViewSettings,
    names_deciding,
)
from pytest_invari.observation.views import (
    CANONICAL,
    View,
    bank_views,
    is_bank_name,
    require_bank_orders,
    require_orders,
    sample_views,
)

if TYPE_CHECKING:
    from pytest_invari.tasks.task import TaskSet


@dataclass(frozen=True)
class Lists:
    """Which lists are shown: *k* candidates of the first *queries* tasks, or of all, in a data set.

    ``dataset`` is its name, or the path of a task file.
    """

    dataset: str
    k: int
    queries: int | None


@dataclass(frozen=True)
class Plan(CountingRules, ViewSettings, Lists):
    """What is shown to a reranker, and how its failures and ties count.

    Raises:
        ValueError: the bank has a name twice or one that is none, ``views`` is not its number of views, or a
            role names a view that is not in it.
    """

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

    def deciding(self, *what: Decides) -> dict[str, Any]:
        """The settings of it that decide one of these things."""
        return {name: getattr(self, name) for name in names_deciding(Plan, *what)}

    def only(self, *what: Decides) -> Plan:
        """The same for all plans of these lists that have the same settings deciding one of these things."""
        return Plan(self.dataset, self.k, self.queries, **self.deciding(*what))

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
