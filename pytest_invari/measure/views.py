"""Views: the seeded random orders in which a task's candidates are shown."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_invari.errors import InvariError, counted
from pytest_invari.protocol import seeded_hash

__all__ = ["CANONICAL", "View", "described", "require_orders", "sample_views", "shuffled"]

CANONICAL = "canonical"


@dataclass(frozen=True, slots=True)
class View:
    """One serialization of a candidate set: its name in the records, and the ids in order."""

    name: str
    order: tuple[str, ...]


def shuffled(ids: Sequence[str], *seed: object) -> tuple[str, ...]:
    """A uniformly random order of *ids* that depends on the seed and the set, not on the given order.

    Each id is sorted by a hash of (seed, id). No library's generator is involved, so the order is
    the same on every machine, and for every version of Python and NumPy.
    """
    return tuple(sorted(ids, key=lambda item: seeded_hash(*seed, item)))


def sample_views(
    query_id: str, ids: Sequence[str], count: int, *, seed: int = 0, include_canonical: bool = False
) -> list[View]:
    """Draw *count* distinct views of one query, independent of every other query's.

    With *include_canonical* the first view is the data set's own order; without it that order is
    never drawn, because it carries the retriever's opinion.

    Raises:
        InvariError: there are not that many distinct orders.
    """
    require_orders(query_id, len(ids), count, include_canonical=include_canonical)
    canonical = tuple(ids)
    views = [View(CANONICAL, canonical)] if include_canonical and count else []
    taken = {canonical}
    draw = 0
    while len(views) < count:
        order = shuffled(canonical, "view", seed, query_id, draw)
        if order not in taken:
            taken.add(order)
            views.append(View(f"seed{seed}.{draw}", order))
        draw += 1
    return views


def described(name: str) -> str:
    """A view's name in a message, with what it means: ``view 'seed0.9' (draw 9 of seed 0)``."""
    drawn = re.fullmatch(r"seed(\d+)\.(\d+)", name)
    if drawn:
        return f"view {name!r} (draw {drawn[2]} of seed {drawn[1]})"
    return f"view {name!r}" + (" (the data set's own order)" if name == CANONICAL else "")


def require_orders(query_id: str, items: int, count: int, *, include_canonical: bool = False) -> None:
    """Refuse more views than a list of *items* has orders, without drawing any.

    Raises:
        InvariError: there are not *count* distinct orders.
    """
    possible = math.factorial(items) - (not include_canonical)
    if count > possible:
        hint = "" if include_canonical else " besides the data set's own"
        have = "has" if items == 1 else "have"
        raise InvariError(
            f"query {query_id!r}: {counted(count, 'view')} asked for, but {counted(items, 'candidate')} "
            f"{have} only {counted(possible, 'order')}{hint}; ask for fewer views or longer lists"
        )
