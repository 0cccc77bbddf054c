"""Groups of tied items as a top k meets them: their mean over all orders of tied items, in closed form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pytest_invari.metrics.arrays import Bools, Floats, Integers


class TieGroups(NamedTuple):
    """The groups of tied items of each view by their rank r, the first of the places that they take.

    ``size`` and ``relevant`` are integers (n, M, K): how many items share rank r and how many of these are
    relevant; 0 where no group begins. A group takes the places r … r + size − 1.
    """

    size: Integers
    relevant: Integers

    @classmethod
    def of(cls, ranks: Integers, relevant: Bools) -> TieGroups:
        """Group the items of *ranks* (n, M, K) by rank; *relevant* is (n, K).

        Raises:
            ValueError: a rank is not the number of items above.
        """
        queries, views, items = ranks.shape
        if ranks.size and (ranks.min() < 0 or ranks.max() >= items):
            raise ValueError("ranks must be 0 … K-1")
        slots = (np.arange(0, ranks.size, items).reshape(queries, views, 1) + ranks).ravel()
        hits = np.broadcast_to(relevant[:, None], ranks.shape).ravel()
        size, of_relevant = (
            np.bincount(each, minlength=ranks.size).reshape(ranks.shape) for each in (slots, slots[hits])
        )
        above = size.cumsum(axis=2) - size
        if ((above != np.arange(items)) & (size > 0)).any():
            raise ValueError("a rank must be the number of items above: 0, 1, 1, 3 and not 0, 1, 1, 2")
        return cls(size, of_relevant)

    def relevance_of_places(self, k: int) -> Floats:
        """(n, M, min(k, K)) the chance that each of the first places holds a relevant item."""
        first = self._first_places(k)
        return np.take_along_axis(self.relevant, first, 2) / np.take_along_axis(self.size, first, 2)

    def any_relevant(self, k: int) -> Floats:
        """(n, M) the chance that the first k places hold a relevant item."""
        first = self._first_places(k)
        top = first.shape[2]
        last = first[:, :, -1:]
        size, relevant = (np.take_along_axis(each, last, 2)[:, :, 0] for each in self)
        # The last group gives the top so many of its items, drawn without replacement.
        drawn = top - last[:, :, 0]
        all_missed = np.ones(size.shape)
        for already in range(int(drawn.max(initial=0))):
            missed = np.maximum(size - relevant - already, 0) / np.maximum(size - already, 1)
            all_missed *= np.where(already < drawn, missed, 1.0)
        sooner = self.relevant[:, :, :top].sum(axis=2) > relevant
        return np.where(sooner, 1.0, 1.0 - all_missed)

    def _first_places(self, k: int) -> Integers:
        """(n, M, min(k, K)) for each of the first places, the first one of the group that takes it."""
        begins = self.size[:, :, :k] > 0
        return np.maximum.accumulate(np.where(begins, np.arange(begins.shape[2]), 0), axis=2)
