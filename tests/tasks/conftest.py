"""One task with everything that a task can have."""

from typing import Any

from pytest_invari.protocol import Candidate, Context
from pytest_invari.tasks.task import Task


def sample_task(**changes: Any) -> Task:
    parts: dict[str, Any] = {
        "query_id": "q",
        "context": Context("crime"),
        "candidates": tuple(Candidate(item, item.upper()) for item in "abcd"),
        "relevance": {"a": 1.0, "d": 1.0},
        "relevant_total": 5,
        "groups": {"a": "head", "d": "tail"},
    }
    return Task(**(parts | changes))
