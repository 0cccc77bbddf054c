"""Candidate lists, three ways to take them from the first stage's order of the items unseen by a user.

Each function is given ``ranked``, all items that the user had not rated before the held-out part, best
first, and returns *k* of them in that same order, or None where the user has no such list. So the order of
a list is the first stage's alone; which items are relevant cannot change it.

The last two are the strata of the independent-view paper (P2, section on its data). Where the paper is
silent, on how a controlled list is composed and which hash chooses users, the rules below are ours.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LEAST_CONTROLLED = 4
"""The shortest controlled list: its half has room for a relevant head and a relevant tail item."""

UNTOUCHED_USERS = 300
"""P2 takes so many users of a data set."""

Items = npt.NDArray[np.integer]


def with_a_positive(ranked: Items, positives: Items, k: int) -> Items | None:
    """The first stage's top *k*, if a held-out positive is among them; none is put in."""
    found = untouched(ranked, k)
    return found if found is not None and np.isin(found, positives).any() else None


def untouched(ranked: Items, k: int) -> Items | None:
    """The first stage's top *k*, whatever they turn out to be."""
    return ranked[:k] if len(ranked) >= k else None


def controlled(ranked: Items, drawn: Items, head: npt.NDArray[np.bool_], k: int) -> Items | None:
    """Held-out positives of head and tail, put in by hand, and the first stage's best items to fill up.

    Put in are up to ⌊k/2⌋ positives: the first of the head, the first of the tail, then the others as
    drawn, so that the shares of head and tail follow the user's own. The rest of the list is the first
    stage's best; a positive that it found itself is relevant too, so that more than half may be.

    Args:
        ranked: the user's unseen items, best first.
        drawn: all held-out positives of the user, in an order that does not depend on the first stage.
        head: which items (I,) are the head.
        k: at least ``LEAST_CONTROLLED``.
    """
    in_head = head[drawn]
    if in_head.all() or not in_head.any():
        return None
    one_of_each = [int(in_head.argmax()), int((~in_head).argmax())]
    others = np.delete(drawn, one_of_each)
    by_hand = np.concatenate((drawn[one_of_each], others))[: k // 2]
    put_in = np.isin(ranked, by_hand)
    # Of the items not put in, the first that are needed.
    filling = ~put_in & (np.cumsum(~put_in) <= k - len(by_hand))
    found = ranked[put_in | filling]
    return found if len(found) == k else None
