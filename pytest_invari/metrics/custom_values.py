"""The values of a metric of a user's own: its function is called, and what it returns is checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_invari.errors import InvariError, counted
from pytest_invari.metrics.arrays import Floats, PerQuery, query_chunks
from pytest_invari.metrics.block import Block
from pytest_invari.metrics.custom import HOOK, UNDEFINED_BY_METRIC, RankedLists
from pytest_invari.metrics.metric import OwnMetric
from pytest_invari.protocol.usercode import shortened, unawaited, user_code

# A mean of values that lie in a range may miss its ends by this.
_ROUNDING = 1e-12


def custom_values(metric: OwnMetric, block: Block) -> PerQuery:
    """What the metric's function makes of the lists of *block*; NaN is undefined.

    It is called for some queries at a time, so that its arrays do not grow with the data set.

    Raises:
        InvariError: the function raises, or returns anything but one number a query in the metric's range.
    """
    _, views, items = block.ranks.shape
    parts = [
        _values(metric, _ranked_lists(block, rows, metric.k))
        for rows in query_chunks(len(block.queries), views * items)
    ]
    values = np.concatenate(parts)
    return PerQuery.of(values, np.isnan(values), UNDEFINED_BY_METRIC)


def _ranked_lists(block: Block, rows: slice, k: int | None) -> RankedLists:
    return RankedLists(
        query_ids=block.query_ids[rows],
        ids=block.ids[rows],
        # int64, whose sums and products in a user's function do not overflow.
        positions=block.positions[rows].astype(np.int64),
        ranks=block.compared[rows].astype(np.int64),
        relevance=block.relevance[rows].copy(),
        relevant_total=block.relevant_total[rows].astype(np.int64),
        groups=block.groups[rows],
        k=k,
    )


def _values(metric: OwnMetric, lists: RankedLists) -> Floats:
    who = f"metric {metric.name!r} of {HOOK}"
    with user_code("its function", who):
        returned = metric.function(lists)
        values = _numbers(returned, len(lists.query_ids))
    low, high = metric.low - _ROUNDING, metric.high + _ROUNDING
    odd = np.isinf(values) | (values < low) | (values > high)
    if odd.any():
        place = int(odd.argmax())
        raise InvariError(
            f"{who}: its function returned {values[place]:g} for query {lists.query_ids[place]!r}; values "
            f"must lie between {metric.low:g} and {metric.high:g}, and NaN stands for none"
        )
    return np.clip(values, metric.low, metric.high)


def _numbers(returned: Any, queries: int) -> Floats:
    """What was returned, as float64 (*queries*,)."""
    if fault := unawaited(returned):
        raise InvariError(f"its function {fault}")
    try:
        found = np.asarray(returned)
    except ValueError:
        # Sequences of different lengths.
        found = np.empty((), np.object_)
    if isinstance(returned, np.ma.MaskedArray):
        raise InvariError("its function returned a masked array; put NaN where a query has no value")
    if found.dtype.kind not in "biuf":
        what = f"{shortened(returned)} ({type(returned).__name__})"
        raise InvariError(f"its function returned {what}; it must return numbers, one a query")
    if found.shape != (queries,):
        raise InvariError(
            f"its function returned an array of shape {found.shape}; it must return one number a query, here "
            f"{counted(queries, 'number')}"
        )
    return found.astype(np.float64)
