"""Strategies for Hypothesis; it is imported only when one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_invari.data.tasks import Task
from pytest_invari.errors import InvariError
from pytest_invari.protocol import Candidate, Context

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["tasks"]


def tasks(
    *, min_candidates: int = 2, max_candidates: int = 6, max_tasks: int = 1
) -> SearchStrategy[list[Task]]:
    """Lists of 1 to *max_tasks* tasks, whose candidates have distinct ids and distinct texts.

    The order of the ids is drawn as well, and each task may have relevant candidates.

    Raises:
        InvariError: Hypothesis is not installed, or no list can have so many candidates.
    """
    try:
        from hypothesis import strategies
    except ImportError:
        raise InvariError("strategies need Hypothesis: pip install 'pytest-invari[hypothesis]'") from None
    if not 1 <= min_candidates <= max_candidates or max_tasks < 1:
        raise InvariError(
            f"tasks of {min_candidates} to {max_candidates} candidates, at most {max_tasks} of them, cannot "
            "be drawn; give 1 <= min_candidates <= max_candidates and max_tasks >= 1"
        )

    words = strategies.text(max_size=12)
    # In a new folder Hypothesis first makes its tables of Unicode, which takes a second or more. Within an
    # example that would be its complaint that examples are drawn too slowly.
    words.validate()

    @strategies.composite
    def one(draw: Any, query_id: str) -> Task:
        texts = draw(strategies.lists(words, min_size=min_candidates, max_size=max_candidates, unique=True))
        ids = draw(strategies.permutations([f"item{number}" for number in range(len(texts))]))
        relevant = draw(strategies.sets(strategies.sampled_from(ids)))
        candidates = tuple(Candidate(item, text) for item, text in zip(ids, texts, strict=True))
        relevance = {item: 1.0 for item in ids if item in relevant}
        return Task(query_id, Context(draw(words)), candidates, relevance, len(relevance))

    return strategies.integers(1, max_tasks).flatmap(
        lambda count: strategies.tuples(*(one(f"q{number}") for number in range(count))).map(list)
    )
