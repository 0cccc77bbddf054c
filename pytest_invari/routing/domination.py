"""When one way to rank beats another outright: no dearer, nowhere worse, somewhere better."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pytest_invari.metrics.arrays import Bools, Floats

TOLERANCE = 1e-12
"""Figures this close are equal."""


def dominations(calls: Floats, loss: Floats, ndcg: Floats) -> Bools:
    """Which points strictly dominate which (P2, cost-utility test).

    Args:
        calls, loss, ndcg: (..., P) each point's calls, L_F and NDCG@10.

    Returns:
        (..., P, P), true at [a, b] where b has no more calls than a, no larger L_F and no smaller NDCG@10,
        and is better in one of the three by more than ``TOLERANCE``. What is undefined neither dominates nor
        is dominated.
    """
    ahead = np.stack(
        [
            calls[..., :, None] - calls[..., None, :],
            loss[..., :, None] - loss[..., None, :],
            ndcg[..., None, :] - ndcg[..., :, None],
        ]
    )
    return np.asarray((ahead >= -TOLERANCE).all(axis=0) & (ahead > TOLERANCE).any(axis=0))


def domination_frequencies(blocks: Iterable[tuple[Floats, Floats, Floats]]) -> tuple[Floats, int]:
    """In which share of the resamples each point has a dominator, and how many resamples do not count.

    Args:
        blocks: calls, L_F and NDCG@10, (b, P) each, of b resamples. One in which a figure is undefined says
            nothing.

    Returns:
        (P,) shares of the resamples that count, NaN when none does, and the number of the others.
    """
    beaten, counted, undefined = np.zeros(1), 0, 0
    for calls, loss, ndcg in blocks:
        is_defined = np.isfinite(calls + loss + ndcg).all(axis=1)
        beaten = beaten + (dominations(calls, loss, ndcg).any(axis=2) & np.expand_dims(is_defined, 1)).sum(
            axis=0
        )
        counted += int(is_defined.sum())
        undefined += int(np.sum(~is_defined))
    shares = beaten / counted if counted else np.full(beaten.shape, np.nan)
    return shares, undefined
