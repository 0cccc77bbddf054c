"""The smallest witness of order dependence: two orders of the fewest candidates that flip a preference.

A pure search over a function that ranks. Two facts make it short. Any two orders are joined by swaps of
neighbours, and the preference that differs between their ends changes at one of the swaps, which bisection
finds; so two moved positions always suffice. And a list is invariant exactly when all its orders are ranked
alike; so trying every order of every shorter list, where the budget allows it, proves that none is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations

Order = tuple[str, ...]
_Pair = tuple[Order, Order]

Rank = Callable[[Order], Order | None]
"""From the ids of some candidates in the order shown to the same ids, best first; None where that failed."""


LEAST_CALLS = 3
"""What a search takes at the least: to rank two orders, and to see whether the first ranking repeats."""


class _OutOfCallsError(Exception):
    """The budget of calls is used up."""


@dataclass(frozen=True, slots=True)
class Witness:
    """Two orders of the same candidates, and the rankings that came back.

    ``preferred`` and ``other`` are the pair whose preference flips: the first ranking has *preferred* above
    *other*, the second below. Where both orders are the same, the ranking of one order does not repeat.
    ``is_smallest``: all orders of all shorter lists were tried, and none depends on the order.
    ``calls`` is the number of rankings that the search took.
    """

    orders: tuple[Order, Order]
    rankings: tuple[Order, Order]
    preferred: str
    other: str
    is_smallest: bool
    calls: int

    @classmethod
    def of(cls, orders: _Pair, rankings: _Pair, *, is_smallest: bool = False, calls: int = 0) -> Witness:
        """The witness that two different rankings are, with the first preference that flips."""
        preferred, other = _flipped(*rankings)
        return cls(orders, rankings, preferred, other, is_smallest, calls)

    @property
    def is_noise(self) -> bool:
        """Whether one and the same order was ranked in two ways."""
        return self.orders[0] == self.orders[1]

    @property
    def moved(self) -> int:
        """The number of positions at which the two orders differ."""
        return sum(one != other for one, other in zip(*self.orders, strict=True))


def find_witness(
    rank: Rank,
    first: Sequence[str],
    second: Sequence[str],
    max_calls: int,
    known: Mapping[Order, Order] | None = None,
) -> Witness | None:
    """Shrink two orders whose rankings differ to a witness of the fewest candidates.

    The same arguments give the same witness, if *rank* gives the same rankings.

    Args:
        rank: called at most *max_calls* times, never twice with one order but to see whether it repeats.
        first: an order of the ids.
        second: another order of the same ids, or the same one, to see whether its ranking repeats.
        max_calls: ``LEAST_CALLS`` at least, unless both orders are *known*; when they are used up, the
            smallest witness so far is returned.
        known: rankings of the two orders, and others, where these were asked before.

    Returns:
        None when the two are ranked alike, or not at all.

    Raises:
        ValueError: fewer calls, or orders of different ids.
    """
    pair = (tuple(first), tuple(second))
    are_known = known is not None and all(order in known for order in pair)
    if max_calls < (0 if are_known else LEAST_CALLS) or sorted(first) != sorted(second):
        raise ValueError(f"a witness takes at least {LEAST_CALLS} calls, and two orders of the same ids")
    search = _WitnessSearch(rank, max_calls, known or {})
    for order in pair:
        if search.repeats_otherwise(order):
            return search.noise(order)
    if not search.flips(pair):
        return None
    is_smallest = False
    try:
        pair = search.nearest(pair)
        pair = search.without_needless(pair)
        pair, is_smallest = search.smaller(pair, tuple(first))
    except _OutOfCallsError:
        pair = search.best or pair
    return search.witness(pair, is_smallest or len(pair[0]) == 2)


class _WitnessSearch:
    """Rankings that are known, the calls that are left, and the smallest pair of orders so far."""

    def __init__(self, rank: Rank, max_calls: int, known: Mapping[Order, Order]) -> None:
        self._rank, self._max_calls = rank, max_calls
        self._known: dict[Order, Order | None] = dict(known)
        self._again: dict[Order, Order | None] = {}
        self.calls = 0
        self.best: _Pair | None = None

    @property
    def left(self) -> int:
        return self._max_calls - self.calls

    def ranking(self, order: Order) -> Order | None:
        if order not in self._known:
            self._known[order] = self._ask(order)
        return self._known[order]

    def _ask(self, order: Order) -> Order | None:
        if not self.left:
            raise _OutOfCallsError
        self.calls += 1
        return self._rank(order)

    def repeats_otherwise(self, order: Order) -> bool:
        """Whether the same order, asked again, is ranked otherwise; it is asked again once."""
        first = self.ranking(order)
        if order not in self._again and self.left > 1:
            self._again[order] = self._ask(order)
        again = self._again.get(order, first)
        return first is not None and again is not None and first != again

    def flips(self, pair: _Pair) -> bool:
        """Whether the two orders are ranked differently; such a pair is kept as the best so far."""
        one, other = map(self.ranking, pair)
        found = one is not None and other is not None and one != other
        if found:
            self.best = pair
        return found

    def nearest(self, pair: _Pair) -> _Pair:
        """Two neighbours on the way from one order to the other, between which a preference flips.

        The way goes by swaps of neighbours. A ranking that failed on it ends the search: no neighbours then.
        """
        preferred, other = _flipped(*map(self._certain, pair))
        way = list(_swaps(*pair))
        low, high = 0, len(way) - 1
        while high - low > 1:
            middle = (low + high) // 2
            ranking = self.ranking(way[middle])
            if ranking is None:
                return pair
            if ranking.index(preferred) < ranking.index(other):
                low = middle
            else:
                high = middle
        self.best = way[low], way[high]
        return self.best

    def without_needless(self, pair: _Pair) -> _Pair:
        """Leave out candidates, halves before single ones, as long as a preference still flips (ddmin)."""
        size = max(1, len(pair[0]) // 2)
        while True:
            pair, has_shrunk = self._without_chunks(pair, size)
            if size == 1 and not has_shrunk:
                return pair
            if not has_shrunk:
                size = max(1, size // 2)

    def _without_chunks(self, pair: _Pair, size: int) -> tuple[_Pair, bool]:
        has_shrunk, start = False, 0
        while start < len(pair[0]):
            gone = set(pair[0][start : start + size])
            less = (
                tuple(item for item in pair[0] if item not in gone),
                tuple(item for item in pair[1] if item not in gone),
            )
            if less[0] != less[1] and self.flips(less):
                pair, has_shrunk = less, True
            else:
                start += size
        return pair, has_shrunk

    def smaller(self, pair: _Pair, items: Order) -> tuple[_Pair, bool]:
        """Try the orders of every shorter list of *items*, and say whether all of these were tried.

        Where there are too many, half of the calls that are left go to the lists that are nearest to *pair*.
        """
        flipped = set(_flipped(*map(self._certain, pair)))
        are_all_tried = True
        for size in range(2, len(pair[0])):
            known = sum(len(order) == size for order in self._known)
            is_affordable = math.perm(len(items), size) - known <= self.left
            keep = 0 if is_affordable else self.left // 2
            for subset in _nearest_first(items, size, pair[0], flipped):
                for order in permutations(subset):
                    if self.flips((subset, order)):
                        return self.nearest((subset, order)), are_all_tried
                if self.left <= keep:
                    break
            are_all_tried &= is_affordable
        return pair, are_all_tried

    def witness(self, pair: _Pair, is_smallest: bool) -> Witness:
        """The pair as a witness; as noise where one of its orders, asked again, is ranked otherwise."""
        for order in pair:
            if self.repeats_otherwise(order):
                return self.noise(order)
        return self._made(pair, (self._certain(pair[0]), self._certain(pair[1])), is_smallest)

    def noise(self, order: Order) -> Witness:
        again = self._again[order]
        assert again is not None
        return self._made((order, order), (self._certain(order), again), is_smallest=False)

    def _made(self, orders: _Pair, rankings: _Pair, is_smallest: bool) -> Witness:
        return Witness.of(orders, rankings, is_smallest=is_smallest, calls=self.calls)

    def _certain(self, order: Order) -> Order:
        ranking = self.ranking(order)
        assert ranking is not None
        return ranking


def _flipped(one: Order, other: Order) -> tuple[str, str]:
    """The first two neighbours in the first ranking that the second has the other way round."""
    place = {item: rank for rank, item in enumerate(other)}
    return next(pair for pair in pairwise(one) if place[pair[0]] > place[pair[1]])


def _swaps(start: Order, end: Order) -> Iterator[Order]:
    """The orders on the way from one to the other by swaps of neighbours, both ends among them."""
    way = list(start)
    yield start
    for place, item in enumerate(end):
        for at in range(way.index(item), place, -1):
            way[at - 1], way[at] = way[at], way[at - 1]
            yield tuple(way)


def _nearest_first(items: Order, size: int, shown: Order, flipped: set[str]) -> Iterator[Order]:
    """The lists of this size: those with most of the *flipped* items first, then those with most *shown*."""
    preferred = [item for item in items if item in flipped]
    near = [item for item in shown if item not in flipped]
    others = [item for item in items if item not in shown]
    for first in range(min(size, len(preferred)), -1, -1):
        for second in range(min(size - first, len(near)), -1, -1):
            for one in combinations(preferred, first):
                for two in combinations(near, second):
                    for three in combinations(others, size - first - second):
                        yield one + two + three
