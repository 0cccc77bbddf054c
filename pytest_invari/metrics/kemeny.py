"""The ranking that contradicts the fewest preferences of all rankings (Kemeny 1959), proven to be so.

An item that a strict majority prefers, directly or along a chain, to another that is not so preferred to it
stands above it in a best ranking (the extended Condorcet criterion; Truchon 1998). What is left to search is
the order within each strongly connected component of the majorities.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from pytest_invari.metrics.arrays import Bools, Integers, query_chunks
from pytest_invari.metrics.linear_ordering import best_order
from pytest_invari.metrics.preference import margins, minority

# Entries (queries x items x items) that are worked on at once.
_CHUNK_ENTRIES = 1 << 19

# Up to so many items, all subsets of a component (2 ms for 15) are done before a linear programme is (4 ms).
_MOST_ITEMS_OF_SUBSETS = 15

# Entries (components x subsets x items) that are worked on at once.
_SUBSET_ENTRIES = 1 << 20


@dataclass(frozen=True, eq=False)
class Kemeny:
    """The best ranking of each query, and what proves it.

    ``order`` intp (N, K): item indices, best first. ``disagreement`` int64 (N,): 2M·D(σ), the doubled number
    of (view, item pair) that contradict the order, a tie counting half; ``lower_bound`` the same for the
    minorities alone, attained where the majorities have no cycle. ``optimal`` bool (N,): whether it is proven
    that no ranking is better; false where a component is too large, and then the order is only good.
    """

    order: Integers
    disagreement: Integers
    lower_bound: Integers
    optimal: Bools


def kemeny(counts: Integers, views: int, items: int) -> Kemeny:
    """Find the ranking with the least D(σ) (P1 section 3.3) of each query.

    Of several best rankings it is the same one every time; where nothing else decides, by item index.

    Args:
        counts: (N, L) doubled win counts as :func:`pytest_invari.metrics.preference.wins` gives them.
        views: M, the number of views they count.
        items: K.
    """
    queries = len(counts)
    order = np.empty((queries, items), np.intp)
    disagreement = np.empty(queries, np.int64)
    optimal = np.empty(queries, np.bool_)
    for chunk in query_chunks(queries, items * items, _CHUNK_ENTRIES):
        preferred = margins(counts[chunk], views, items)
        key, optimal[chunk] = _places(preferred)
        above = key[:, None] < key[None]
        agreement = (preferred * above).sum(axis=(0, 1), dtype=np.int64)
        disagreement[chunk] = views * items * (items - 1) // 2 - agreement
        order[chunk] = np.argsort(key, axis=0).T
    return Kemeny(order, disagreement, minority(counts, views), optimal)


def _places(preferred: Integers) -> tuple[Integers, Bools]:
    """A number for each item (K, n), all different, falling towards the best; and whether it is optimal."""
    items, _, queries = preferred.shape
    reaches = _reachable(preferred > 0)
    mutual = reaches & reaches.transpose(1, 0, 2)
    # Who reaches more stands above; a component is named by its first item.
    reached = reaches.sum(axis=1, dtype=np.int64)
    component = mutual.argmax(axis=0)
    within = np.zeros((items, queries), np.int64)
    optimal = np.ones(queries, np.bool_)
    size = mutual.sum(axis=0, dtype=np.int64)
    named = (component == np.arange(items)[:, None]) & (size > 1)
    for count in np.unique(size[named]).tolist():
        first, query = np.nonzero(named & (size == count))
        members = np.nonzero(mutual[first, :, query])[1].reshape(-1, count)
        rows = members[:, :, None], members[:, None, :], query[:, None, None]
        orders, proven = _orders(preferred[rows])
        best_first = np.take_along_axis(members, orders, axis=1)
        within[best_first, query[:, None]] = np.arange(count)
        optimal[query[~proven]] = False
    return ((items - reached) * items + component) * items + within, optimal


def _reachable(edges: Bools) -> Bools:
    """The transitive closure of *edges* (K, K, n), each item reaching itself (Warshall 1962)."""
    reaches = edges.copy()
    items = len(edges)
    reaches[np.arange(items), np.arange(items)] = True
    for through in range(items):
        reaches |= reaches[:, through, None] & reaches[through]
    return reaches


def _orders(components: Integers) -> tuple[Integers, Bools]:
    """The best orders (n, s) of components of one size with the margins *components* (n, s, s)."""
    if components.shape[1] <= _MOST_ITEMS_OF_SUBSETS:
        return orders_by_subsets(components), np.ones(len(components), np.bool_)
    found = [best_order(component) for component in components]
    return np.stack([each.order for each in found]), np.array([each.optimal for each in found])


def orders_by_subsets(components: Integers) -> Integers:
    """Of the best orders of each component the first one by item index, by dynamic programming over subsets.

    Args:
        components: (n, s, s) margins, skew-symmetric; time and memory grow with 2^s.

    Returns:
        intp (n, s), best first.
    """
    count, items = components.shape[:2]
    orders = np.empty((count, items), np.intp)
    for chunk in query_chunks(count, items << items, _SUBSET_ENTRIES):
        orders[chunk] = _first_best_orders(components[chunk])
    return orders


def _first_best_orders(components: Integers) -> Integers:
    count, items = components.shape[:2]
    # What it costs to put item i above each of a set: how far they are preferred to it, (s, 2^s, n).
    against = np.maximum(components.transpose(2, 1, 0), 0)
    above = np.zeros((items, 1 << items, count), np.int32)
    for item in range(items):
        above[:, 1 << item : 2 << item] = above[:, : 1 << item] + against[:, item, None]
    # What the best order of each set costs (2^s, n).
    least = np.zeros((1 << items, count), np.int32)
    for sets, members in _sets_by_size(items):
        rest = sets[:, None] ^ (1 << members)
        least[sets] = (above[members, rest] + least[rest]).min(axis=1)
    orders = np.empty((count, items), np.intp)
    each, every = np.arange(count), np.arange(items)[:, None]
    left = np.full(count, (1 << items) - 1)
    for place in range(items):
        rest = left & ~(1 << every)
        cost = np.where(rest < left, above[every, rest, each] + least[rest, each], np.iinfo(np.int32).max)
        orders[:, place] = cost.argmin(axis=0)
        left &= ~(1 << orders[:, place])
    return orders


@cache
def _sets_by_size(items: int) -> list[tuple[Integers, Integers]]:
    """For each size from 1 the subsets of *items* items, as bits (C,), and their members (C, size)."""
    sets = np.arange(1 << items, dtype=np.int32)
    sizes = np.bitwise_count(sets)
    found = []
    for size in range(1, items + 1):
        chosen = sets[sizes == size]
        members = np.nonzero(chosen[:, None] >> np.arange(items) & 1)[1]
        found.append((chosen, members.reshape(-1, size).astype(np.int32)))
    return found
