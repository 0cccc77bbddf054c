"""The best order of items that beat each other in cycles, by linear programming (Grötschel et al. 1984).

One variable a pair says which of the two is above; a row forbids one cycle of three. Few of the rows matter,
so they are added when a solution breaks them. Only where the relaxed solutions leave open whether there is a
better order than the best one met, the integer programme is solved, and over the open pairs alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pytest_invari.metrics.arrays import Floats, Integers
from pytest_invari.metrics.packed import item_pairs

# Within these a component takes some seconds at most, beyond any of them up to minutes: with views in random
# order (M = 20) some components of 70 items, and all of 100.
_MOST_ROWS = 12_000
_MOST_OPEN_PAIRS = 1_000
_MOST_NODES = 100

# What the rounding of the solver may amount to, in a share and in a multiple of the programme's step.
_SLACK = 1e-6

# What the solver may answer.
_SOLVED, _INFEASIBLE = 0, 2

# How far, in places, the orders lie from the relaxed solution that the search starts again from.
_DISTURBANCE = 3.0


class Ordering(NamedTuple):
    """``order`` (s,): item indices, best first. ``optimal``: whether it is proven that none is better."""

    order: NDArray[np.intp]
    optimal: bool


class _Relaxed(NamedTuple):
    """A solved relaxation.

    ``shares`` (s, s): how far i is above j, in [0, 1]. ``bound``: no order costs less. ``penalties`` (L,):
    what the bound rises by if the pair i < j is decided for i where positive, for j where negative.
    """

    shares: Floats
    bound: float
    penalties: Floats


def best_order(margins: Integers) -> Ordering:
    """Order the items so that the margins of each item over those below it add up to the most.

    Args:
        margins: (s, s) integers, skew-symmetric: by how much i is preferred to j.

    Returns:
        A best order; of a problem that is too large, a good one that is not proven to be the best.
    """
    programme, search = _Programme(margins), _OrderSearch(margins)
    try:
        _prove(programme, search)
    except _TooLargeError:
        return Ordering(search.order, False)
    return Ordering(search.order, True)


class _TooLargeError(Exception):
    """It would take too long to prove an order the best."""


def _prove(programme: _Programme, search: _OrderSearch) -> None:
    """Raise the bound and improve the order until they meet."""
    while True:
        relaxed = programme.relaxed()
        cycles = _cycles(relaxed.shares, _MOST_ROWS - programme.rows)
        search.improve_from(_by_score(relaxed.shares))
        if search.cost <= programme.attainable(relaxed.bound):
            return
        if not len(cycles):
            break
        programme.forbid(cycles)
    for start in _disturbed(relaxed.shares):
        search.improve_from(start)
        if search.cost <= programme.attainable(relaxed.bound):
            return
    while True:
        shares = programme.integral(search.cost - programme.step, relaxed)
        if shares is None:
            return
        search.improve_from(_by_score(shares))
        cycles = _cycles(shares, _MOST_ROWS - programme.rows)
        if not len(cycles):
            return
        programme.forbid(cycles)


class _Programme:
    """Choose x_ij in [0, 1] for the pairs i < j, 1 if i is above j, so that −Σ a_ij·x_ij is the least."""

    def __init__(self, margins: Integers) -> None:
        self._items = len(margins)
        self._pairs = item_pairs(self._items)
        self._costs = -margins[self._pairs].astype(np.float64)
        # What an order costs is a multiple of this.
        self.step = int(np.gcd.reduce(margins, axis=None)) or 1
        self._variable = np.zeros(margins.shape, np.intp)
        self._variable[self._pairs] = np.arange(len(self._costs))
        self._variable.T[self._pairs] = self._variable[self._pairs]
        self._signs, self._columns = np.empty((0, 3)), np.empty((0, 3), np.intp)
        self._limits = np.empty(0)

    @property
    def rows(self) -> int:
        """How many cycles are forbidden."""
        return len(self._limits)

    def forbid(self, cycles: Integers) -> None:
        """Add a row x_ij + x_jk + x_ki ≤ 2 for each (i, j, k) of *cycles* (n, 3), x_ji being 1 − x_ij."""
        upper, lower = cycles, np.roll(cycles, -1, axis=1)
        self._signs = np.concatenate([self._signs, np.where(upper < lower, 1.0, -1.0)])
        self._columns = np.concatenate([self._columns, self._variable[upper, lower]])
        self._limits = np.concatenate([self._limits, 2.0 - (upper > lower).sum(axis=1)])

    def attainable(self, bound: float) -> int:
        """The least cost of an order that is not below *bound*."""
        return self.step * int(np.ceil(bound / self.step - _SLACK))

    def relaxed(self) -> _Relaxed:
        """Solve the linear programme with the rows so far."""
        from scipy.optimize import linprog

        if not self.rows:
            decided = np.where(self._costs == 0, 0.5, self._costs < 0)
            return _Relaxed(self._shares(decided), float(np.minimum(self._costs, 0).sum()), self._costs)
        matrix = self._matrix()
        found = linprog(self._costs, A_ub=matrix, b_ub=self._limits, bounds=(0, 1), method="highs-ds")
        if found.status != _SOLVED:
            raise _TooLargeError
        # Weak duality: with any multipliers of one sign this is a bound, however near the solver came.
        multipliers = np.minimum(found.ineqlin.marginals, 0)
        penalties = self._costs - matrix.T @ multipliers
        bound = float(multipliers @ self._limits + np.minimum(penalties, 0).sum())
        return _Relaxed(self._shares(found.x), bound, penalties)

    def integral(self, target: int, relaxed: _Relaxed) -> Floats | None:
        """The shares of the best solution in whole numbers, or None where none costs as little as *target*.

        A pair that would cost too much the other way round is decided already.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array, vstack

        is_open = np.abs(relaxed.penalties) <= target - relaxed.bound + _SLACK
        if is_open.sum() > _MOST_OPEN_PAIRS:
            raise _TooLargeError
        decided = relaxed.penalties < 0
        found = milp(
            self._costs,
            integrality=np.ones(len(self._costs)),
            bounds=Bounds(np.where(is_open, 0.0, decided), np.where(is_open, 1.0, decided)),
            constraints=LinearConstraint(
                vstack([self._matrix(), csr_array(self._costs[None])], format="csr"),
                ub=np.append(self._limits, target),
            ),
            options={"mip_rel_gap": 0.0, "node_limit": _MOST_NODES},
        )
        if found.status == _INFEASIBLE:
            return None
        if found.status != _SOLVED:
            raise _TooLargeError
        return self._shares(np.round(found.x))

    def _matrix(self) -> Any:
        from scipy.sparse import csr_array

        starts = np.arange(0, 3 * self.rows + 1, 3)
        shape = (self.rows, len(self._costs))
        return csr_array((self._signs.ravel(), self._columns.ravel(), starts), shape=shape)

    def _shares(self, values: Floats) -> Floats:
        shares = np.zeros((self._items, self._items))
        shares[self._pairs] = values
        shares.T[self._pairs] = 1 - values
        return shares


class _OrderSearch:
    """The best order met; each start is improved by moving the item that helps most, while one helps."""

    def __init__(self, margins: Integers) -> None:
        self._margins = margins.astype(np.int64)
        self.order = _by_score((margins > 0).astype(np.float64))
        self.cost = self._cost(self.order)

    def improve_from(self, order: NDArray[np.intp]) -> None:
        """Search from *order* (s,), and keep what is found if it is better."""
        places = np.arange(len(order))
        before = places < places[:, None]
        while True:
            current = self._margins[np.ix_(order, order)]
            sums = np.zeros((len(order), len(order) + 1), np.int64)
            np.cumsum(current, axis=1, out=sums[:, 1:])
            # What the item at a place passes when it moves to another: those between, that one included.
            gains = np.diagonal(sums)[:, None] - np.where(before, sums[:, :-1], sums[:, 1:])
            origin, target = divmod(int(gains.argmax()), len(order))
            if gains[origin, target] <= 0:
                break
            order = np.insert(np.delete(order, origin), target, order[origin])
        cost = self._cost(order)
        if cost < self.cost:
            self.order, self.cost = order, cost

    def _cost(self, order: NDArray[np.intp]) -> int:
        place = np.argsort(order)
        first, second = item_pairs(len(order))
        return -int(self._margins[first, second][place[first] < place[second]].sum())


def _cycles(shares: Floats, most: int) -> Integers:
    """The cycles (n, 3) whose shares pass 2, each from its smallest item on; there may be *most*."""
    found = [np.empty((0, 3), np.intp)]
    for item in range(len(shares) - 2):
        rest = slice(item + 1, None)
        total = shares[item, rest, None] + shares[rest, rest] + shares[rest, item]
        second, third = np.nonzero(total > 2 + _SLACK)
        most -= len(second)
        if most < 0:
            raise _TooLargeError
        found.append(np.stack([np.full(len(second), item), second + item + 1, third + item + 1], axis=1))
    return np.concatenate(found)


def _by_score(shares: Floats) -> NDArray[np.intp]:
    """Items by falling sum of their shares, then by index."""
    return np.argsort(-shares.sum(axis=1), kind="stable")


def _disturbed(shares: Floats) -> Iterator[NDArray[np.intp]]:
    """Orders near that of *shares*, two for each item; the same ones every time."""
    random, score = np.random.default_rng(0), shares.sum(axis=1)
    for _ in range(2 * len(shares)):
        yield np.argsort(-(score + _DISTURBANCE * random.normal(size=len(score))), kind="stable")
