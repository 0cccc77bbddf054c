"""The metrics that are measured of every subject, whatever its suite asks for."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_invari.metrics.catalog import Metric, all_metrics, parse_metric

STANDING = (
    *("ppi", "ppi_null", "bucket_agreement_gap", "gpi", "gpi_lower_bound", "loc"),
    *("exposure_deviation@{}", "hr@{}", "ndcg@{}", "tie_rate", "invalid_view_rate"),
)
"""Measured of every subject; ``{}`` stands for the length of the top."""

TOKENS = ("tokens_in", "tokens_cached", "tokens_out")
COSTS = ("calls", "depth", *TOKENS, "seconds")


def table_metrics(
    suite_metrics: Iterable[Metric], *, k: int, has_repeats: bool, redraws_labels: bool
) -> list[str]:
    """The rows of a subject's table, in the order of the catalogue: the standing ones and the suite's.

    Lists have *k* items; findings of analyses have tables of their own.
    """
    top = 5 if k > 5 else 1
    standing = [parse_metric(word.format(top)) for word in (*STANDING, *COSTS)]
    if has_repeats:
        standing.append(parse_metric("repeat_difference"))
    if redraws_labels:
        standing.append(parse_metric("label_agreement_gap"))
    order = list(all_metrics())
    found = {each.name: each for each in (*standing, *suite_metrics) if each.kind != "analysis"}
    return sorted(found, key=lambda name: (order.index(found[name].family), found[name].k or 0))
