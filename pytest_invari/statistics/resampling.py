"""Which queries each bootstrap replicate draws, kept so that every statistic sees the same draws."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Counts: TypeAlias = NDArray[np.integer[Any]]

REPLICATES = 9999
"""B by default; the 2.5 % quantile is then off by about 3 % of a standard error, at 1,000 by 9 %."""

# Draws (replicates x queries) made at once: about what stays in a core's cache.
_CHUNK_DRAWS = 1 << 18
# Bytes of counts kept for the next statistic: those of up to 13,423 queries at B = 9,999.
_KEPT_BYTES = 1 << 27


class Resamples:
    """B resamples of *count* queries with replacement: how often each replicate draws each query.

    All statistics computed from one instance are paired: replicate b draws the same queries for each. A query
    without a value keeps its place, so that what is undefined does not change the draws.

    Args:
        count: N, the number of queries.
        replicates: B.
        draw: starts the draws afresh and yields blocks (b, N) of counts, B rows in all, always the same.
    """

    def __init__(self, count: int, replicates: int, draw: Callable[[], Iterator[Counts]]) -> None:
        if not 1 <= count < 1 << 32 or replicates < 1:
            raise ValueError("resampling needs between 1 and 2**32 - 1 queries and at least 1 replicate")
        self.count = count
        self.replicates = replicates
        self._draw = draw
        self._kept: list[Counts] | None = None

    def blocks(self) -> Iterator[NDArray[np.float64]]:
        """Yield the counts as float64 blocks (b, N), B rows in all.

        Counts of up to 128 MiB are kept as bytes; more are drawn again each time, so that memory stays flat.
        """
        if self._kept is None and self.count * self.replicates <= _KEPT_BYTES:
            self._kept = [_smallest(block) for block in self._draw()]
        for block in self._draw() if self._kept is None else self._kept:
            yield block.astype(np.float64)


def seed_from(text: str) -> int:
    """A seed of 256 bits from a text that names what is resampled."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


@lru_cache(maxsize=2)
def seeded_resamples(count: int, seed_id: str, replicates: int = REPLICATES) -> Resamples:
    """The resamples of the queries that *seed_id* names, the same on every machine.

    Only the raw stream of PCG64 is used, which NumPy promises to keep; its distributions it may change. The
    last two are kept, so that subjects measured on the same lists share their draws.
    """
    return Resamples(count, replicates, lambda: _from_stream(count, replicates, seed_id))


def paper_resamples(count: int) -> Resamples:
    """The 1,000 resamples of P2, whose seeds are 2401 … 3400: one generator for each replicate.

    P2, section 3, gives the seeds but no generator; NumPy's default one is this implementation's choice.
    """
    return Resamples(count, 1000, lambda: _from_generators(count, range(2401, 3401)))


def _from_stream(count: int, replicates: int, seed_id: str) -> Iterator[Counts]:
    stream = np.random.PCG64(seed_from(seed_id))
    # Two draws from each word; a row begins with a word of its own, so that blocks do not change it.
    words = (count + 1) // 2
    for rows in _block_sizes(count, replicates):
        raw = stream.random_raw(rows * words).astype("<u8", copy=False).view("<u4")
        halves = raw.reshape(rows, 2 * words)[:, :count]
        # Scaled to 0 … count-1; uneven by less than count / 2**32.
        yield _tally(halves * np.uint64(count) >> np.uint64(32))


def _from_generators(count: int, seeds: range) -> Iterator[Counts]:
    start = 0
    for rows in _block_sizes(count, len(seeds)):
        drawn = [
            np.random.default_rng(seed).integers(0, count, count) for seed in seeds[start : start + rows]
        ]
        yield _tally(np.stack(drawn))
        start += rows


def _block_sizes(count: int, replicates: int) -> Iterator[int]:
    step = max(1, _CHUNK_DRAWS // count)
    for start in range(0, replicates, step):
        yield min(step, replicates - start)


def _tally(drawn: NDArray[np.integer[Any]]) -> Counts:
    """How often each of N queries is in each row of the draws (b, N)."""
    rows, count = drawn.shape
    slots = drawn.astype(np.int64) + np.arange(rows)[:, None] * count
    return np.bincount(slots.ravel(), minlength=rows * count).reshape(rows, count)


def _smallest(block: Counts) -> Counts:
    return block.astype(np.min_scalar_type(int(block.max())))
