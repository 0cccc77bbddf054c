"""The metrics by name; their kernels, pure functions on integer arrays, are the modules beside this one."""

from pytest_invari.metrics.catalog import (
    METRICS,
    Metric,
    Parameter,
    add_metrics,
    all_metrics,
    metric_names,
    parse_metric,
)

__all__ = ["METRICS", "Metric", "Parameter", "add_metrics", "all_metrics", "metric_names", "parse_metric"]
