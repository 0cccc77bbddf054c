"""Views: the seeded random orders in which a task's candidates are shown."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_invari.errors import InvariError, counted
from pytest_invari.protocol.seeding import shuffled

CANONICAL = "canonical"
"""The name of the view in the data set's own order."""

_SEED = re.compile("0|[1-9][0-9]*")
_DRAW = re.compile(r"seed([0-9]+)\.([0-9]+)")
# A view that was asked again has a word behind its name.
_ANY = re.compile(rf"({CANONICAL}|{_SEED.pattern}|{_DRAW.pattern})(\.[a-z]+)?")
# A bank is refused when more than one query in this many would be shown one order under two names.
_QUERIES_PER_COINCIDENCE = 100


@dataclass(frozen=True, slots=True)
class View:
    """One serialization of a candidate set: its name in the records, and the ids in order."""

    name: str
    order: tuple[str, ...]


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


def bank_views(query_id: str, ids: Sequence[str], names: Sequence[str]) -> list[View]:
    """The views of one query that a bank names: ``canonical`` is the data set's own order, ``13`` a seed.

    The order of a seed depends on the seed, the query and the candidates alone, so that a bank can grow
    later and leave its first views as they are. Two names therefore share an order by chance, once in K!
    pairs; it is then shown under both, because another draw would tie one view to the other.
    """
    return [
        View(name, tuple(ids) if name == CANONICAL else shuffled(ids, "bank", int(name), query_id))
        for name in names
    ]


def is_bank_name(name: str) -> bool:
    """Whether a bank may hold a view of this name: ``canonical``, or a seed without leading zeros."""
    return name == CANONICAL or _SEED.fullmatch(name) is not None


def is_view_name(name: str) -> bool:
    """Whether records may hold a view of this name, in a bank or drawn, also one that was asked again."""
    return _ANY.fullmatch(name) is not None


def view_order(name: str) -> tuple[bool, list[str | int]]:
    """A key that sorts views as people would: canonical first, then by name, numbers in it as numbers."""
    parts = re.split("([0-9]+)", name)
    return name != CANONICAL, [int(part) if place % 2 else part for place, part in enumerate(parts)]


def described(name: str) -> str:
    """A view's name in a message, with what it means: ``view 'seed0.9' (draw 9 of seed 0)``."""
    meaning = ""
    if drawn := _DRAW.fullmatch(name):
        meaning = f" (draw {drawn[2]} of seed {drawn[1]})"
    elif _SEED.fullmatch(name):
        meaning = f" (the order of seed {name})"
    elif name == CANONICAL:
        meaning = " (the data set's own order)"
    return f"view {name!r}{meaning}"


def require_orders(query_id: str, items: int, count: int, *, include_canonical: bool = False) -> None:
    """Refuse more views than a list of *items* has orders, without drawing any.

    Raises:
        InvariError: there are not *count* distinct orders.
    """
    possible = math.factorial(items) - (not include_canonical)
    if count > possible:
        hint = "" if include_canonical else " besides the data set's own"
        have = "has" if items == 1 else "have"
        remedy = "ask for fewer views or longer lists"
        if not include_canonical and count == possible + 1:
            remedy = f"show that one too (include_canonical = true), or {remedy}"
        raise InvariError(
            f"query {query_id!r}: {counted(count, 'view')} asked for, but {counted(items, 'candidate')} "
            f"{have} only {counted(possible, 'order')}{hint}; {remedy}"
        )


def require_bank_orders(items: int, views: int) -> None:
    """Refuse a bank of *views* on lists of *items* so short that its orders would often coincide.

    Of C(views, 2) pairs of names, each shares its order for one query in K!. More than one such pair in
    100 queries is refused.

    Raises:
        InvariError: there are more.
    """
    pairs, orders = math.comb(views, 2), math.factorial(items)
    if pairs * _QUERIES_PER_COINCIDENCE > orders:
        raise InvariError(
            f"lists of {items} have {counted(orders, 'order')}, too few for a bank of {views} views, whose "
            f"orders are drawn independently: {counted(pairs, 'pair')} of views would each share an order in "
            f"one query of {orders:,}; use longer lists or fewer views"
        )
