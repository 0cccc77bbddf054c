"""Plans: on which lists, in how many orders, and by which rules a reranker is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_invari.measure.views import View, sample_views

if TYPE_CHECKING:
    from pytest_invari.data.tasks import TaskSet
    from pytest_invari.protocol import LabelBinding

__all__ = ["Method", "OnFailure", "Plan", "Subject", "Ties"]

OnFailure = Literal["strict", "drop", "random"]
Ties = Literal["broken", "half"]
Method = Literal["bca", "percentile"]


@dataclass(frozen=True)
class Plan:
    """What is shown to a reranker, and how its failures and ties count.

    Args:
        dataset: a data set's name, or the path of a task file.
        k: candidates in each list.
        queries: the first this many tasks, or all of them.
        views: orders in which each list is shown.
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
    """

    dataset: str
    k: int
    queries: int | None
    views: int
    view_seed: int = 0
    include_canonical: bool = False
    on_failure: OnFailure = "strict"
    ties: Ties = "broken"
    interval: Method = "bca"
    labels: LabelBinding = "item"
    blind_ids: bool = False
    repeats: int = 0

    def sample(self, tasks: TaskSet) -> Mapping[str, list[View]]:
        """The views of each query, by its id.

        Raises:
            InvariError: a list has fewer orders than there are views.
        """
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
class Subject:
    """A reranker, as the user named it, on one data set at one list length."""

    reranker: str
    dataset: str
    k: int

    @property
    def label(self) -> str:
        """Short text for people: ``sgs-movielens_small-K10``."""
        return f"{self.reranker}-{self.dataset}-K{self.k}"
