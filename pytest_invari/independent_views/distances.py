"""How far any two views of a query are apart, in the exposure of items and in their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_invari.metrics.arrays import Floats, Integers, query_chunks, require_shape, require_strict_ranks

TOP = 10


@dataclass(frozen=True, eq=False)
class ViewDistances:
    """The distances between each two of B views, pairs (s, t) in the order of ``combinations(range(B), 2)``.

    ``exposure`` float64 (N, B(B−1)/2): ‖x_s − x_t‖², of exposure vectors.
    ``disagreement`` int64 (N, B(B−1)/2): L − Σ sign·sign over the L item pairs, which is L times 1 − tau and
    twice the number of discordant pairs. Whole numbers, so that what is equal is equal exactly.
    """

    exposure: Floats
    disagreement: Integers
    views: int
    item_pairs: int


def exposure_weights(items: int) -> Floats:
    """The exposure (K,) that a list of K items gives to each rank, adding up to 1 (P2 section 2).

    1 / log2(1 + rank) in the top 10, or in the whole list where that is shorter; 0 below.
    """
    top = min(TOP, items)
    weights = np.zeros(items)
    weights[:top] = 1 / np.log2(np.arange(2, top + 2))
    shares: Floats = weights / weights.sum()
    return shares


def exposure_vectors(ranks: Integers) -> Floats:
    """The exposure x of each item in each view, float64 (N, B, K), from strict 0-based *ranks* (N, B, K)."""
    _, _, items = require_shape(ranks)
    require_strict_ranks(ranks)
    vectors: Floats = exposure_weights(items)[ranks]
    return vectors


def view_distances(ranks: Integers) -> ViewDistances:
    """Compare each two views of each query.

    Args:
        ranks: (N, B, K) strict output ranks, 0-based.
    """
    queries, views, items = require_shape(ranks)
    first, second = np.triu_indices(views, 1)
    above, below = np.triu_indices(items, 1)
    exposure = np.empty((queries, len(first)))
    disagreement = np.empty((queries, len(first)), np.int64)
    for chunk in query_chunks(queries, max(views * len(above), len(first) * items)):
        vectors = exposure_vectors(ranks[chunk])
        between = vectors[:, first] - vectors[:, second]
        exposure[chunk] = np.einsum("npk,npk->np", between, between)
        # Sums of ±1 are whole in float64 too, where the product is fast.
        signs = np.where(ranks[chunk][..., above] < ranks[chunk][..., below], 1.0, -1.0)
        agreement = (signs @ signs.transpose(0, 2, 1))[:, first, second]
        disagreement[chunk] = len(above) - agreement.astype(np.int64)
    return ViewDistances(exposure, disagreement, views, len(above))
