"""A witness of order dependence as people read it: the candidates, two orders, and their rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_invari.protocol.usercode import shortened

if TYPE_CHECKING:
    from pytest_invari.observation.witness import Witness
    from pytest_invari.tasks.task import Task


MOST_TEXTS = 8
"""Of a longer list only the two candidates whose preference turns round are shown with their texts."""


def witness_lines(task: Task, witness: Witness) -> list[str]:
    """The lines of a witness, one fact each; they hold the ids and texts as they are.

    Args:
        task: the query, with all its candidates.
        witness: orders of some of them.
    """
    one = witness.orders[0]
    pair = f"{witness.preferred!r} above {witness.other!r}"
    if witness.is_noise:
        lines = [f"query {task.query_id!r}: the same order is ranked in two ways, once with {pair}"]
    else:
        lines = [
            f"query {task.query_id!r}: {len(one)} candidates in two orders that differ at {witness.moved} "
            f"positions, and only one ranking has {pair}"
        ]
    texts = {candidate.id: candidate.text for candidate in task.candidates}
    shown = one if len(one) <= MOST_TEXTS else (witness.preferred, witness.other)
    lines += [f"  {item!r}: {shortened(texts[item])}" for item in shown]
    lines += [
        f"  {list(order)} is ranked {list(ranking)}"
        for order, ranking in zip(witness.orders, witness.rankings, strict=True)
    ]
    if witness.is_noise:
        lines.append("  this is noise and no effect of order: fix the seed, or the temperature, first")
    elif witness.is_smallest and len(one) > 2:
        lines.append("  every shorter list is ranked alike in all its orders")
    return lines
