"""Which queries each bootstrap replicate draws: the same on every machine and for every version of NumPy."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["resample_weights", "seed_from"]

# Draws (replicates x queries) held at once.
_CHUNK_DRAWS = 1 << 20


def seed_from(text: str) -> int:
    """A seed of 256 bits from a text that names what is resampled."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


def resample_weights(count: int, replicates: int, seed_id: str) -> Iterator[NDArray[np.float64]]:
    """Draw *count* queries with replacement, *replicates* times.

    Yields float64 (b, count) blocks, *replicates* rows in all: how often each query was drawn. One
    *seed_id* and *count* always give the same rows, so statistics that share both are paired. Only the raw
    stream of PCG64 is used, which NumPy promises to keep; its distributions it may change.
    """
    if count < 1 or count >= 1 << 32 or replicates < 1:
        raise ValueError("resampling needs between 1 and 2**32 - 1 queries and at least 1 replicate")
    stream = np.random.PCG64(seed_from(seed_id))
    step = max(1, _CHUNK_DRAWS // count)
    for start in range(0, replicates, step):
        rows = min(step, replicates - start)
        raw = stream.random_raw(rows * count).reshape(rows, count)
        # The high half of each word, scaled to 0 … count-1; uneven by less than count / 2**32.
        drawn = (raw >> np.uint64(32)) * np.uint64(count) >> np.uint64(32)
        slots = drawn.astype(np.int64) + np.arange(rows)[:, None] * count
        yield np.bincount(slots.ravel(), minlength=rows * count).reshape(rows, count).astype(np.float64)
