"""A task is one query with its candidate set and what is known about it; a task set is a data set of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pytest_invari.errors import InvariError, counted
from pytest_invari.protocol import Candidate, Context

Stratum = Literal["", "controlled", "untouched"]
STRATA: tuple[Stratum, ...] = ("controlled", "untouched")
"""The named strata of the independent-view paper (P2), section on its data."""


@dataclass(frozen=True, slots=True)
class Task:
    """One query.

    ``candidates`` are in the first stage's own (*canonical*) order. ``relevance`` holds the grades of
    the relevant candidates; an id that is absent has grade 0. ``relevant_total`` counts all held-out
    positives, retrieved or not. ``groups`` names the group of an item (head, tail, a genre, …).

    ``stratum`` says what the list may be used for. In a ``controlled`` list relevant head and tail items
    were put in by hand, so that it has a target to come nearer to or not, but it is no list that a user
    would see. An ``untouched`` list is a retriever's own, of a user who was chosen without a look at
    relevance; no outcome with a sign is defined on it. Empty: neither is claimed.

    The reranker sees none of these but the context and the candidates.
    """

    query_id: str
    context: Context
    candidates: tuple[Candidate, ...]
    relevance: Mapping[str, float] = field(default_factory=dict)
    relevant_total: int = 0
    groups: Mapping[str, str] = field(default_factory=dict)
    stratum: Stratum = ""

    @property
    def ids(self) -> tuple[str, ...]:
        """The candidate ids in canonical order."""
        return tuple(candidate.id for candidate in self.candidates)

    def at_k(self, k: int) -> Task:
        """The same query with its first *k* candidates; ``relevant_total`` still counts all positives.

        Raises:
            InvariError: the list is shorter than *k*, or longer and controlled.
        """
        if k < 1:
            raise InvariError(f"lists of {counted(k, 'candidate')} asked for; k must be at least 1")
        if len(self.candidates) < k:
            raise InvariError(
                f"query {self.query_id!r} has {counted(len(self.candidates), 'candidate')}, fewer than the "
                f"{k} asked for; ask for a smaller k or supply longer lists"
            )
        if self.stratum == "controlled" and len(self.candidates) > k:
            whole = len(self.candidates)
            raise InvariError(
                f"query {self.query_id!r} has a controlled list of {whole}, which cannot be cut to {k}: "
                f"relevant candidates that were put into it might be lost; ask for k = {whole}"
            )
        kept = self.candidates[:k]
        ids = {candidate.id for candidate in kept}
        return replace(
            self,
            candidates=kept,
            relevance={item: grade for item, grade in self.relevance.items() if item in ids},
            groups={item: group for item, group in self.groups.items() if item in ids},
        )


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The tasks of one data set at one list length, in a fixed order, with the hash of their content.

    Raises:
        InvariError: the tasks are of several strata, which are never pooled.
    """

    name: str
    tasks: tuple[Task, ...]
    sha256: str
    description: str = ""

    def __post_init__(self) -> None:
        for task in self.tasks:
            if task.stratum != self.stratum:
                first = self.tasks[0]
                raise InvariError(
                    f"data set {self.name!r}: the stratum of query {task.query_id!r} is "
                    f"{task.stratum or 'none'}, that of query {first.query_id!r} {first.stratum or 'none'}; "
                    "strata are never pooled, keep each in a data set of its own"
                )

    def __iter__(self) -> Iterator[Task]:
        """Its tasks, in their order."""
        return iter(self.tasks)

    @property
    def stratum(self) -> Stratum:
        """The stratum of all its tasks, empty where none is claimed."""
        return self.tasks[0].stratum if self.tasks else ""

    @classmethod
    def of(cls, name: str, tasks: Iterable[Task], description: str = "") -> TaskSet:
        """Make a task set and hash it."""
        tasks = tuple(tasks)
        return cls(name, tasks, content_hash(tasks), description)

    @property
    def without_relevant(self) -> int:
        """How many tasks have no relevant candidate: effectiveness is undefined for them."""
        return sum(not any(grade > 0 for grade in task.relevance.values()) for task in self.tasks)

    def at_k(self, k: int) -> TaskSet:
        """The first *k* candidates of every list.

        Raises:
            InvariError: a list is shorter than *k*, or longer and controlled; the message names its query.
        """
        try:
            tasks = tuple(task.at_k(k) for task in self.tasks)
        except InvariError as error:
            raise InvariError(f"data set {self.name!r}: {error}") from None
        return TaskSet.of(self.name, tasks, self.description)

    def head(self, queries: int | None) -> TaskSet:
        """The first *queries* tasks; all of them when it is None or more than there are."""
        if queries is None or queries >= len(self.tasks):
            return self
        if queries < 1:
            raise InvariError(f"{queries} queries asked for; ask for at least 1")
        return TaskSet.of(self.name, self.tasks[:queries], self.description)


def task_row(task: Task) -> dict[str, Any]:
    """A task as one row of a task file, in plain types (the schema is described in ``taskfile``).

    Raises:
        InvariError: a grade or a group is given for an item that is not among the candidates.
    """
    ids = set(task.ids)
    for what, keys in (("a relevance grade", task.relevance), ("a group", task.groups)):
        unknown = sorted(set(keys) - ids)
        if unknown:
            raise InvariError(
                f"query {task.query_id!r} has {what} for {unknown[0]!r}, which is not among its candidates"
            )
    row = {
        "query_id": task.query_id,
        "text": task.context.text or None,
        "history": [{"text": entry.text, "rating": _float(entry.rating)} for entry in task.context.history],
        "candidates": [
            {
                "id": candidate.id,
                "text": candidate.text,
                "relevance": _float(task.relevance.get(candidate.id) or None),
                "group": task.groups.get(candidate.id),
                "meta": dict(candidate.meta) or None,
            }
            for candidate in task.candidates
        ],
        "relevant_total": task.relevant_total,
    }
    # Only where there is one, so that the hashes of all other tasks stay what they were.
    return row | {"stratum": task.stratum} if task.stratum else row


def content_hash(tasks: Iterable[Task]) -> str:
    """SHA-256, in hexadecimal, of the tasks in their order, whatever file they came from.

    Two task sets have the same hash when every query has the same context, candidates, texts, grades,
    groups, meta data and stratum; a grade of 0 counts as no grade.

    Raises:
        InvariError: a candidate's meta data cannot be written as JSON.
    """
    digest = hashlib.sha256()
    for task in tasks:
        try:
            row = json.dumps(task_row(task), sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InvariError(f"query {task.query_id!r} cannot be written as JSON: {error}") from None
        digest.update(row.encode() + b"\n")
    return digest.hexdigest()


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)
