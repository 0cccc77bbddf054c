"""The metrics that are measured of every subject, whatever its suite asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pytest_invari.metrics.catalog import all_metrics
from pytest_invari.metrics.metric import Finding, Metric


def table_metrics(
    suite_metrics: Iterable[Metric], *, k: int, has_repeats: bool, redraws_labels: bool
) -> list[str]:
    """The rows of a subject's table, in the order of the catalogue: the standing ones and the suite's.

    Lists have *k* items; findings of analyses have tables of their own.
    """
    known = all_metrics()
    reasons = {"always": True, "repeats": has_repeats, "redrawn_labels": redraws_labels}
    top = 5 if k > 5 else 1
    standing = [
        replace(each, k=top) if each.has_cutoff else each
        for each in known.values()
        if each.standing and reasons[each.standing]
    ]
    order = list(known)
    found = {each.name: each for each in (*standing, *suite_metrics) if not isinstance(each, Finding)}
    return sorted(found, key=lambda name: (order.index(found[name].family), found[name].k or 0))
