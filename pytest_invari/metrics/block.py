"""Blocks: the rankings of queries that have equally many views, as the arrays that kernels read."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_invari.metrics.arrays import Bools, Floats, Integers


@dataclass(frozen=True, eq=False)
class Block:
    """The rankings of n queries that have equally many valid views, M, of K items each.

    ``queries`` (n,) are their places among the tasks, ``query_ids`` and ``ids`` (n, K) the ids of queries and
    items. ``positions``, ``ranks`` and ``tied_ranks`` are int16 (n, M, K) as in
    :class:`~pytest_invari.metrics.arrays.QueryArrays`, and ``compared`` is the one of the two that
    preferences are read from. ``relevance`` (n, K) are the grades, and ``relevant_total`` (n,) counts the
    relevant items, retrieved or not; ``groups`` (n, K) are those of the items, or None. ``labels`` (n, M, K)
    is the 0-based label that each item bore; −1 where a view showed none.
    """

    queries: Integers
    query_ids: tuple[str, ...]
    ids: tuple[tuple[str, ...], ...]
    positions: Integers
    ranks: Integers
    tied_ranks: Integers
    compared: Integers
    relevance: Floats
    relevant_total: Integers
    groups: tuple[tuple[str | None, ...], ...]
    labels: Integers

    @property
    def relevant(self) -> Bools:
        """(n, K) true for the relevant candidates."""
        return self.relevance > 0
