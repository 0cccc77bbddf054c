"""PPI and GPI across list lengths (P1, Figure 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_invari.reports.html.canvas import SERIES, chart, drawing, named, picture, series
from pytest_invari.reports.html.parts import Absent, Picture, Section, Table
from pytest_invari.reports.rows import failed_views, in_brackets, row_name
from pytest_invari.reports.subjects import Summary
from pytest_invari.text import figure, number, printable

_METRICS = ("ppi", "gpi")
_DIGITS = 3
_TITLE = "Across list lengths"
_TEXT = (
    "Lower is more consistent. Bars are 95% intervals over queries. The dotted line with hollow markers is "
    "PPI's null, what noise alone makes of it at this list length and number of views: only what lies above "
    "it depends on positions."
)


@dataclass(frozen=True, slots=True)
class Curve:
    """One reranker: for each list length estimate, ends of the interval, number of queries, and the null.

    ``failed`` says for each list length how many views failed, where some did.
    """

    name: str
    points: Sequence[tuple[int, float, float, float, int, float]]
    failed: Sequence[str]


@dataclass(frozen=True, slots=True)
class Lengths:
    """A metric on one data set across list lengths, a curve for each reranker."""

    metric: str
    dataset: str
    curves: Sequence[Curve]


def lengths(subjects: Sequence[Summary]) -> list[Lengths]:
    """What was measured at several list lengths, a few rerankers in each picture."""
    found = []
    for dataset in sorted({each.dataset for each in subjects}):
        of_dataset = [each for each in subjects if each.dataset == dataset]
        names = list(dict.fromkeys(each.reranker for each in of_dataset))
        if len({each.k for each in of_dataset}) < 2:
            continue
        for start in range(0, len(names), len(SERIES)):
            chosen = names[start : start + len(SERIES)]
            for metric in _METRICS:
                curves = [_curve(metric, name, of_dataset) for name in chosen]
                if any(math.isfinite(point[1]) for curve in curves for point in curve.points):
                    found.append(Lengths(metric, printable(dataset), curves))
    return found


def section(subjects: Sequence[Summary]) -> Section | Absent:
    """The section of the page, or why there is none."""
    found = lengths(subjects)
    if not found:
        return Absent(_TITLE, "no data set has figures at several list lengths")
    with drawing():
        pictures = [_draw(each, f"lengths{count}") for count, each in enumerate(found, 1)]
    return Section("lengths", _TITLE, _TEXT, pictures, [_table(each) for each in found])


def _curve(metric: str, name: str, subjects: Sequence[Summary]) -> Curve:
    points = []
    own = sorted((each for each in subjects if each.reranker == name), key=lambda each: each.k)
    for each in own:
        value = each.metrics[metric]
        null = each.metrics["ppi_null"].estimate if metric == "ppi" else math.nan
        points.append((each.k, value.estimate, value.low, value.high, value.n, null))
    return Curve(printable(name), points, [failed_views(each) for each in own])


def _draw(found: Lengths, name: str) -> Picture:
    drawn, axes = chart(len(found.curves), "candidates in the list")
    places = {k: place for place, k in enumerate(sorted({p[0] for c in found.curves for p in c.points}))}
    middle = (len(found.curves) - 1) / 2
    for count, curve in enumerate(found.curves):
        # Side by side, so that intervals do not hide each other.
        across = [places[point[0]] + 0.06 * (count - middle) for point in curve.points]
        look = series(count)
        estimates = [point[1] for point in curve.points]
        below = [point[1] - point[2] for point in curve.points]
        above = [point[3] - point[1] for point in curve.points]
        axes.errorbar(across, estimates, (below, above), label=named(curve.name), capsize=2.5, **look)
        nulls = [point[5] for point in curve.points]
        axes.plot(across, nulls, linewidth=0.8, linestyle=":", markerfacecolor="none", **look)
    axes.set_xticks(list(places.values()), [str(k) for k in places])
    axes.set_xlim(-0.4, len(places) - 0.6)
    axes.set_ylim(bottom=0)
    text = "; ".join(
        f"{curve.name}: {', '.join(f'{number(p[1], _DIGITS)} at {p[0]}' for p in curve.points)}"
        for curve in found.curves
    )
    return picture(drawn, name, f"{row_name(found.metric)} by list length", text, found.dataset)


def _table(found: Lengths) -> Table:
    rows = []
    for curve in found.curves:
        for (k, estimate, low, high, n, null), failed in zip(curve.points, curve.failed, strict=True):
            shown = figure(estimate, low, high, n, _DIGITS) + in_brackets(failed)
            nulls = [] if found.metric != "ppi" else [number(null, _DIGITS)]
            rows.append((curve.name, str(k), shown, *nulls))
    headings = ["reranker", "K", "estimate [95% interval] n=queries"]
    if found.metric == "ppi":
        headings.append("null")
    return Table(f"{row_name(found.metric)} by list length, {found.dataset}", headings, rows)
