"""Which bounds a metric leaves sense to, whether a suite gives them or a test."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_invari.criteria.criterion import Comparison
    from pytest_invari.metrics import Metric
    from pytest_invari.observation.plan import Plan


def why_no_bound(comparison: Comparison, value: float | str, metric: Metric) -> str:
    """Why a bound cannot be meant: no value of the metric meets it, or every one does. Empty if it can.

    A text is the length of the list.
    """
    if isinstance(value, str):
        is_of_lengths = math.isinf(metric.high)
        return "" if is_of_lengths else f'{comparison} = "{value}", the list length, {_not_meant(metric)}'
    if not metric.low <= value <= metric.high:
        return f"{comparison} = {value:g} {_not_meant(metric)}"
    if value == (metric.low if comparison == "at_least" else metric.high):
        return f"{comparison} = {value:g} demands nothing: {_range(metric)}"
    return ""


def why_no_bound_of(plan: Plan, comparison: Comparison, value: float | str, metric: Metric) -> str:
    """Why every query of *plan* meets a bound that makes sense elsewhere; empty if some may not."""
    # Views that may be dropped leave fewer of them, and more possible.
    if comparison != "at_least" or isinstance(value, str) or plan.on_failure == "drop":
        return ""
    least = metric.least(plan.views)
    if value > least:
        return ""
    range_of = f"of {plan.views} views {metric.name} lies between {least:.4g} and {metric.high:g}"
    return f"{comparison} = {value:g} demands nothing: {range_of}"


def why_no_distance(key: str, value: float, metric: Metric) -> str:
    """Why no two values of the metric differ by more than *value*, which *key* gives; empty if they may."""
    return f"{key} = {value:g} {_not_meant(metric)}" if value >= metric.high - metric.low else ""


def _not_meant(metric: Metric) -> str:
    return f"cannot be meant: {_range(metric)}"


def _range(metric: Metric) -> str:
    return f"{metric.name} lies between {metric.low:g} and {metric.high:g}"
