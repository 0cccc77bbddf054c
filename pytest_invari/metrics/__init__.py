"""The metrics by name; their kernels, pure functions on integer arrays, are the modules beside this one."""

from pytest_invari.metrics.catalog import METRICS, Metric, Parameter, metric_names, parse_metric

__all__ = ["METRICS", "Metric", "Parameter", "metric_names", "parse_metric"]
