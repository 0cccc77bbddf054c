"""Sets of views as machine words: one bit a view, so that counting views is a population count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pytest_invari.metrics.arrays import Bools, Integers, query_chunks

Words: TypeAlias = NDArray[np.unsignedinteger[Any]]

# Words, or numbers of 8 bytes, for the pairs of one slice of queries: a few such arrays fit the cache.
_CHUNK_ENTRIES = 1 << 16


def pair_chunks(queries: int, views: int, items: int) -> Iterator[slice]:
    """Cut the queries so that some arrays with a set of views for each item pair fit the cache."""
    words = -(-views // 64)
    return query_chunks(queries, items * (items - 1) // 2 * words, _CHUNK_ENTRIES)


def item_pairs(items: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The L = K(K−1)/2 pairs i < j, in the order of ``triu_indices(K, 1)``."""
    first, second = np.triu_indices(items, 1)
    return first, second


def views_last(values: Integers) -> Integers:
    """Bring (n, M, K) values in 0 … K−1 to (K, n, M'), the views padded with −1 to whole words."""
    queries, views, items = values.shape
    narrow = np.int8 if items <= np.iinfo(np.int8).max else np.int16
    padded = np.full((items, queries, _padded(views)), -1, narrow)
    padded[:, :, :views] = values.transpose(2, 0, 1)
    return padded


def views_where(flags: Bools) -> Words:
    """Pack flags (..., M'), M' as :func:`views_last` pads it, into words (..., words of one view set)."""
    size = flags.shape[-1]
    word: np.dtype[np.unsignedinteger[Any]] = np.dtype(f"u{min(size, 64) // 8}")
    # Whole bytes a set of views, so that all of them pack in one pass over the flags.
    shape = (*flags.shape[:-1], size // (8 * word.itemsize))
    return np.packbits(flags.reshape(-1)).view(word).reshape(shape)


def pairs_where(compare: np.ufunc, rows: Integers) -> Words:
    """For each pair i < j the views where *compare* holds of their values, (L, n, words).

    Args:
        compare: ``np.less``, ``np.greater`` or ``np.equal``.
        rows: (K, n, M') as :func:`views_last` gives them.
    """
    # One i at a time: flags of all pairs would be many times the words, and not fit the cache.
    return np.concatenate([views_where(compare(rows[i], rows[i + 1 :])) for i in range(len(rows))])


def count_views(words: Words) -> Integers:
    """The number of views in each set (..., words), as int16 or, for more than 255 words, int64."""
    ones = np.bitwise_count(words)
    total: Integers = ones[..., 0].astype(np.int16 if words.shape[-1] < 256 else np.int64)
    # Word by word, along memory; a sum over so short an axis takes ten times as long.
    for word in range(1, words.shape[-1]):
        total += ones[..., word]
    return total


def has_ties(ranks: Integers) -> bool:
    """Whether any view of *ranks* (n, M, K) gives two items one rank."""
    ordered = np.sort(ranks, axis=-1)
    return bool((ordered[..., 1:] == ordered[..., :-1]).any())


def _padded(views: int) -> int:
    for size in (8, 16, 32):
        if views <= size:
            return size
    return -(-views // 64) * 64
