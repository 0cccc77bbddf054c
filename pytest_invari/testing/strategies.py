"""Strategies for Hypothesis; it is imported only when one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_invari.errors import InvariError
from pytest_invari.protocol import Candidate, Context
from pytest_invari.tasks.task import Task

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


# A single candidate has no order.
_FEWEST = 2


def tasks(
    *, min_candidates: int = _FEWEST, max_candidates: int = 6, max_tasks: int = 1
) -> SearchStrategy[list[Task]]:
    """Lists of 1 to *max_tasks* tasks, whose candidates have distinct ids and distinct texts.

    The order of the ids is drawn as well, and each task may have relevant candidates. A task file could hold
    all that is drawn: no text of a candidate is blank.

    Raises:
        InvariError: Hypothesis is not installed, or no list can have so many candidates.
    """
    try:
        from hypothesis import strategies
    except ImportError:
        raise InvariError("strategies need Hypothesis: pip install 'pytest-invari[hypothesis]'") from None
    if max_candidates < min_candidates == _FEWEST:
        raise InvariError(
            f"max_candidates = {max_candidates}: lists have at least {_FEWEST} candidates, unless "
            f"min_candidates says otherwise; give max_candidates of {_FEWEST} or more, or min_candidates=1"
        )
    if not 1 <= min_candidates <= max_candidates or max_tasks < 1:
        raise InvariError(
            f"tasks of {min_candidates} to {max_candidates} candidates, at most {max_tasks} of them, cannot "
            "be drawn; give 1 <= min_candidates <= max_candidates and max_tasks >= 1"
        )

    # Half of a surrogate pair is drawn by no strategy of texts.
    words = strategies.text(max_size=12)
    said = words.filter(str.strip)
    # In a new folder Hypothesis first makes its tables of Unicode, which takes a second or more. Within an
    # example that would be its complaint that examples are drawn too slowly.
    words.validate()

    @strategies.composite
    def one(draw: Any, query_id: str) -> Task:
        texts = draw(strategies.lists(said, min_size=min_candidates, max_size=max_candidates, unique=True))
        ids = draw(strategies.permutations([f"item{number}" for number in range(len(texts))]))
        relevant = draw(strategies.sets(strategies.sampled_from(ids)))
        candidates = tuple(Candidate(item, text) for item, text in zip(ids, texts, strict=True))
        relevance = {item: 1.0 for item in ids if item in relevant}
        return Task(query_id, Context(draw(words)), candidates, relevance, len(relevance))

    return strategies.integers(1, max_tasks).flatmap(
        lambda count: strategies.tuples(*(one(f"q{number}") for number in range(count))).map(list)
    )
