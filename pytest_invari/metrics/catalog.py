"""Which metrics there are: the built-in ones, found by their modules, and those of the users' own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType

from pytest_invari.errors import InvariError, unknown_name
from pytest_invari.metrics.metric import FindingMetric, Metric

# Those of the users' own in the run that goes on, by their families.
_added: Mapping[str, Metric] = MappingProxyType({})


@cache
def built_in_metrics() -> Mapping[str, Metric]:
    """What the modules of this folder declare, by families and in the order of tables.

    The first call loads the kernels, and NumPy with them.
    """
    package = __name__.rpartition(".")[0]
    modules = [import_module(f"{package}.{each.name}") for each in iter_modules([str(Path(__file__).parent)])]
    declared = [metric for module in modules for metric in getattr(module, "METRICS", ())]
    return MappingProxyType(
        {metric.family: metric for metric in sorted(declared, key=lambda each: each.place)}
    )


def add_metrics(own: Mapping[str, Metric]) -> Callable[[], None]:
    """Let the *own* metrics of a run be known beside the built-in ones, in place of those of another run.

    Returns:
        What undoes it. Runs within runs undo theirs first.
    """
    global _added
    before = _added
    _added = MappingProxyType(dict(own))

    def undo() -> None:
        global _added
        _added = before

    return undo


def all_metrics() -> Mapping[str, Metric]:
    """The built-in metrics by their families, in the order of tables, then the users' own."""
    return {**built_in_metrics(), **_added}


def metric_names() -> dict[str, str]:
    """The words a suite may use ("@k" stands for a number) with their descriptions, sorted."""
    known = sorted(all_metrics().values(), key=lambda each: each.name)
    return {metric.name: metric.description for metric in known}


def parse_metric(text: str, where: str = "") -> Metric:
    """Read a metric's word: ``loc``, ``ndcg@5``.

    Args:
        text: the word.
        where: the place it was found at, put before the message of an error.

    Raises:
        InvariError: no such metric, no cutoff where one is needed, or one where none belongs.
    """
    family, at, cutoff = text.partition("@")
    prefix = f"{where}: " if where else ""
    found = all_metrics()
    metric = found.get(family)
    if metric is None:
        # Compared with the user's own cutoff, so that "nDCG@5" is close to "ndcg@5".
        known = [
            f"{each.family}{at}{cutoff}" if at and each.has_cutoff else each.name for each in found.values()
        ]
        raise unknown_name("metric", text, known, where)
    if not metric.has_cutoff:
        if at:
            raise InvariError(f"{prefix}metric {text!r}: {family} takes no @; write {family!r}.")
        return metric
    if not re.fullmatch(r"[1-9][0-9]{0,4}", cutoff):
        raise InvariError(
            f"{prefix}metric {text!r}: {family} needs the length of the top, a whole number from 1, after @; "
            f"write {family + '@5'!r}."
        )
    return replace(metric, k=int(cutoff))


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
    found = {each.name: each for each in (*standing, *suite_metrics) if not isinstance(each, FindingMetric)}
    return sorted(found, key=lambda name: (order.index(found[name].family), found[name].k or 0))
