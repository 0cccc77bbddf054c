"""A task is one query with its candidate set and what is known about it; a task set is a data set of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_invari.protocol import Candidate, Context

__all__ = ["Task", "TaskSet"]


@dataclass(frozen=True, slots=True)
class Task:
    """One query.

    ``candidates`` are in the first stage's own (*canonical*) order. ``relevance`` holds the grades of
    the relevant candidates; an id that is absent has grade 0. ``relevant_total`` counts all held-out
    positives, retrieved or not. ``groups`` names the group of an item (head, tail, a genre, …).
    The reranker sees none of these but the context and the candidates.
    """

    query_id: str
    context: Context
    candidates: tuple[Candidate, ...]
    relevance: Mapping[str, float] = field(default_factory=dict)
    relevant_total: int = 0
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The tasks of one data set at one list length, in a fixed order, with the hash of their content."""

    name: str
    tasks: tuple[Task, ...]
    sha256: str
    description: str = ""
