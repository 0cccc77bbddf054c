"""The metrics by name; each is declared beside its kernel, a pure function on integer arrays, in a module."""

from pytest_invari.metrics.catalog import (
    add_metrics,
    all_metrics,
    built_in_metrics,
    metric_names,
    parse_metric,
)
from pytest_invari.metrics.metric import Metric, Parameter

__all__ = [
    "Metric",
    "Parameter",
    "add_metrics",
    "all_metrics",
    "built_in_metrics",
    "metric_names",
    "parse_metric",
]
