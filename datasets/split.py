"""Chronological splits of a user's ratings, and the history that comes before the held-out part.

Every user's ratings are put in order of time, those of the same second by item id, and cut after 70%
and 80% of them: training, validation, held out. A rating of 4 or more is positive. This is the protocol
of the position-bias paper's data pipeline; as the cut is made per user, another user's training part
may be later in time than this user's held-out part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pytest_invari.errors import InvariError

POSITIVE = 4.0
"""The least rating that counts as liked."""

# Integer arithmetic, because 0.7 * 90 is less than 63 in floating point.
TRAINING_TENTHS = 7
BEFORE_HELD_OUT_TENTHS = 8


@dataclass(frozen=True, slots=True)
class Ratings:
    """Who rated what, when: four arrays of one length, in any order.

    ``user`` and ``item`` hold the data set's own ids, ``timestamp`` seconds.
    """

    user: npt.NDArray[np.int64]
    item: npt.NDArray[np.int64]
    rating: npt.NDArray[np.float32]
    timestamp: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.user)


@dataclass(frozen=True, slots=True)
class Split:
    """Ratings in order of user, time and item, with each user's two cuts.

    ``users`` (U,) and ``items`` (I,) are the original ids, ascending; everything else refers to their
    positions. The ratings of user u are ``item[first[u]:last[u]]`` and ``rating[first[u]:last[u]]``,
    oldest first; training ends at ``training_end[u]`` and the held-out part begins at ``held_out[u]``.
    """

    users: npt.NDArray[np.int64]
    items: npt.NDArray[np.int64]
    item: npt.NDArray[np.int32]
    rating: npt.NDArray[np.float32]
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    training_end: npt.NDArray[np.int64]
    held_out: npt.NDArray[np.int64]

    def seen(self, user: int) -> npt.NDArray[np.int32]:
        """The items that the user rated before the held-out part, oldest first."""
        return self.item[self.first[user] : self.held_out[user]]

    def liked(self, user: int) -> npt.NDArray[np.int32]:
        """Those of ``seen`` with a positive rating."""
        part = slice(self.first[user], self.held_out[user])
        return self.item[part][self.rating[part] >= POSITIVE]

    def held_out_positives(self, user: int) -> npt.NDArray[np.int32]:
        """The distinct items with a positive rating in the held-out part that were not rated before."""
        part = slice(self.held_out[user], self.last[user])
        return np.setdiff1d(self.item[part][self.rating[part] >= POSITIVE], self.seen(user))

    def history(self, user: int, length: int, liked_only: bool = False) -> list[tuple[int, float]]:
        """The most recent (item, rating) pairs before the held-out part, newest first, at most *length*."""
        part = slice(self.first[user], self.held_out[user])
        item, rating = self.item[part], self.rating[part]
        if liked_only:
            item, rating = item[rating >= POSITIVE], rating[rating >= POSITIVE]
        newest = slice(None, -length - 1, -1)
        return [(int(i), float(r)) for i, r in zip(item[newest], rating[newest], strict=True)]

    def training_positives(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The items of all positive ratings in the training parts, by user, and row offsets (U + 1,)."""
        training = np.arange(len(self.item)) < np.repeat(self.training_end, self.last - self.first)
        chosen = training & (self.rating >= POSITIVE)
        offsets = np.concatenate(([0], np.cumsum(chosen, dtype=np.int64)))[np.append(self.first, len(chosen))]
        return self.item[chosen], offsets


def split_by_time(ratings: Ratings, minimum: int = 10) -> Split:
    """Cut every user's ratings by time; users with fewer than *minimum* ratings are left out.

    Raises:
        InvariError: no user has that many.
    """
    users, user = np.unique(ratings.user, return_inverse=True)
    enough = np.bincount(user, minlength=len(users)) >= minimum
    if not enough.any():
        raise InvariError(f"no user has {minimum} ratings or more; a split by time needs them")
    kept = np.flatnonzero(enough[user])
    items, item = np.unique(ratings.item[kept], return_inverse=True)
    user = user[kept]
    order = np.lexsort((item, ratings.timestamp[kept], user))
    count = np.bincount(user, minlength=len(users))[enough]
    last = np.cumsum(count)
    first = last - count
    return Split(
        users[enough],
        items,
        item[order].astype(np.int32),
        ratings.rating[kept][order],
        first,
        last,
        first + count * TRAINING_TENTHS // 10,
        first + count * BEFORE_HELD_OUT_TENTHS // 10,
    )
