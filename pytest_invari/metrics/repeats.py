"""Repeats: how much a reranker differs from itself when it is asked the very same thing again."""

from __future__ import annotations

import numpy as np

from pytest_invari.metrics.arrays import Integers, PerQuery, require_shape, too_small
from pytest_invari.metrics.metric import TIES, RepeatMetric
from pytest_invari.metrics.preference import preference_counts
from pytest_invari.metrics.reasons import PAIRWISE


def repeat_difference(ranks: Integers) -> PerQuery:
    """The share of item pairs that two answers to one view do not order alike, in [0, 1]: the noise floor.

    The mean over the r(r−1)/2 pairs of repeats. Alike means above, tied or below in both, so that repeats
    without any difference have 0 even where they hold ties, which τ-a (LOC of the repeats) counts as half a
    disagreement. Without ties it is (1 − LOC)/2.

    Args:
        ranks: (N, r, K) output ranks of one input order of each query, asked r times, alone or in a batch
            (or both, to see whether the batch matters). Undefined for r or K below 2.
    """
    queries, repeats, items = require_shape(ranks)
    reason = too_small(repeats, items)
    if reason:
        return PerQuery.all_undefined(queries, reason)
    values = np.empty(queries)
    for chunk, *counts in preference_counts(ranks):
        above, below = (count.astype(np.int64) for count in counts)
        tied = repeats - above - below
        alike = (above**2 + tied**2 + below**2 - repeats).sum(axis=1)
        values[chunk] = 1 - alike / (above.shape[1] * repeats * (repeats - 1))
    return PerQuery.of(values)


METRICS = (
    RepeatMetric(
        family="repeat_difference",
        place=220,
        description=(
            "the share of item pairs that answers to the very same view order differently: the noise floor"
        ),
        direction="lower",
        source="counted, alone and in a batch",
        reasons=PAIRWISE,
        parameters=(TIES,),
        standing="repeats",
        function=repeat_difference,
    ),
)
