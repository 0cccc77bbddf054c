"""The values of a metric of a user's own: its function is called, and what it returns is checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_invari.errors import InvariError, counted
from pytest_invari.metrics.arrays import Floats, PerQuery
from pytest_invari.metrics.custom import HOOK
from pytest_invari.protocol.usercode import shortened, unawaited, user_code

if TYPE_CHECKING:
    from pytest_invari.metrics.catalog import Metric
    from pytest_invari.metrics.custom import RankedLists


UNDEFINED_BY_METRIC = "undefined_by_metric"

# A mean of values that lie in a range may miss its ends by this.
_ROUNDING = 1e-12


def custom_values(metric: Metric, lists: RankedLists) -> PerQuery:
    """What the metric's function makes of *lists*; NaN is undefined.

    Raises:
        InvariError: the function raises, or returns anything but one number a query in the metric's range.
    """
    assert metric.custom is not None
    who = f"metric {metric.name!r} of {HOOK}"
    with user_code("its function", who):
        returned = metric.custom.function(lists)
        values = _numbers(returned, len(lists.query_ids))
    low, high = metric.low - _ROUNDING, metric.high + _ROUNDING
    odd = np.isinf(values) | (values < low) | (values > high)
    if odd.any():
        place = int(odd.argmax())
        raise InvariError(
            f"{who}: its function returned {values[place]:g} for query {lists.query_ids[place]!r}; values "
            f"must lie between {metric.low:g} and {metric.high:g}, and NaN stands for none"
        )
    return PerQuery.of(np.clip(values, metric.low, metric.high), np.isnan(values), UNDEFINED_BY_METRIC)


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
