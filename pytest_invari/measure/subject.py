"""A subject: a reranker and the plan by which it is measured."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_invari.observation.plan import Plan, SubjectName, dataset_label, id_text
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.text import without_secrets


@dataclass(frozen=True)
class Subject:
    """A reranker and the plan by which it is measured."""

    reranker: RerankerSpec
    plan: Plan

    @property
    def shown_reranker(self) -> str:
        """The reranker as the user wrote it, but for secrets in its options."""
        return without_secrets(self.reranker.label)

    @property
    def shown_dataset(self) -> str:
        """The data set's name, the same on every machine."""
        return dataset_label(self.plan.dataset)

    @property
    def label(self) -> str:
        """Its part of an id: ``sgs-movielens_small-K10``."""
        return f"{id_text(self.shown_reranker)}-{self.shown_dataset}-K{self.plan.k}"

    def name(self, dataset: str) -> SubjectName:
        """As records and reports name it; *dataset* is the name that its tasks have."""
        return SubjectName(self.shown_reranker, dataset, self.plan.k)

    @property
    def observed(self) -> Subject:
        """The same for all subjects of which the same is observed.

        How failures and ties count, how intervals are made and which views are compared with which changes
        nothing about it.
        """
        return Subject(self.reranker, self.plan.only("orders", "requests", "repeats"))

    @property
    def shown_lists(self) -> Subject:
        """The same for all subjects whose reranker is shown the same lists, in whatever orders."""
        return Subject(self.reranker, self.plan.only("requests"))
