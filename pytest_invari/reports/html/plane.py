"""The cost–utility plane: what each subject, and each routing policy, costs and gives, and who is beaten."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean
from typing import Any

from pytest_invari.reports.html.canvas import PAPER, chart, drawing, named, picture, series
from pytest_invari.reports.html.data import exposure_top
from pytest_invari.reports.html.parts import Absent, Picture, Section, Table, not_drawn
from pytest_invari.reports.rows import row_name, shown_name
from pytest_invari.reports.subjects import Summary
from pytest_invari.text import number, printable

_DIGITS = 3
# The size of a marker, by how much a lower one is larger, and by how much together, in the picture's units.
_MARKER, _RIM, _RIMS = 7, 4, 16
# Markers closer than this are a heap, in shares of the picture: about the size of a marker with its number.
_NEAR_ACROSS, _NEAR_UP = 0.03, 0.08
_TOLERANCE = 1e-12
_TITLE = "Cost and utility"
_TEXT = (
    "Model calls a ranking against what they buy; the arrow in a title says which way is better. A hollow "
    "marker is dominated: another one takes no more calls, is no worse in both utilities, and is "
    "better in one of the three. The table names it. The numbers are those of the legend; markers at one "
    "place are drawn one inside the other."
)
_ROUTING = (
    "Of routing, a marker is a policy at a share of routed queries. L_F is how far head and tail items are "
    "from the exposure that their relevance deserves."
)


@dataclass(frozen=True, slots=True)
class Point:
    """One way to rank: its ``calls``, and a value for each of its plane's utilities.

    ``series`` is what is drawn in one look. ``dominators`` are the names of those that beat it outright; None
    where that cannot be told.
    """

    name: str
    series: str
    calls: float
    values: tuple[float, ...]
    dominators: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Marker:
    """A point in a picture, drawn in the look of the series of this number from 0."""

    series: int
    calls: float
    value: float
    is_dominated: bool


@dataclass(frozen=True, slots=True)
class Plane:
    """Points that may be compared; ``utilities`` are drawn against calls, true where higher is better."""

    title: str
    utilities: tuple[tuple[str, bool], ...]
    points: Sequence[Point]
    joined: bool = False


def planes(subjects: Sequence[Summary]) -> Iterator[Plane]:
    """The subjects on the same lists, by nDCG and by LOC; those that report no calls are left out."""

    def lists(each: Summary) -> tuple[str, int, int]:
        return each.dataset, each.k, each.views

    counted = filter(_has_calls, subjects)
    for (dataset, k, _), found in groupby(sorted(counted, key=lists), lists):
        metrics = (f"ndcg@{exposure_top(k)}", "loc")
        points = []
        for each in found:
            values = tuple(_number(each.metrics[name].estimate) for name in metrics)
            name = shown_name(each)
            points.append(Point(name, name, _number(each.cost["calls"]), values))
        utilities = tuple((row_name(name), True) for name in metrics)
        if len(points) > 1:
            yield Plane(printable(f"{dataset}, lists of {k}"), utilities, with_dominators(points))


def routing_planes(subjects: Sequence[Summary]) -> Iterator[Plane]:
    """The policies of each subject whose analysis is there, with the dominators that it found."""
    for each in subjects:
        found = each.analyses.get("routing", {}).get("points", ())
        points = [
            Point(
                printable(point["name"]),
                printable(point["policy"]),
                point["cost"]["calls"],
                (_number(point["loss"]), _number(point["ndcg@10"])),
                None if point["dominators"] is None else tuple(map(printable, point["dominators"])),
            )
            for point in found
        ]
        if points:
            title = f"routing of {shown_name(each)}, {printable(each.dataset)}, lists of {each.k}"
            yield Plane(title, (("L_F", False), ("NDCG@10", True)), points, joined=True)


def with_dominators(points: Sequence[Point]) -> list[Point]:
    """The same *points*, whose values are all better when higher, with those that dominate each.

    A utility that one of them lacks compares nobody.
    """
    usable = [
        place
        for place in range(len(points[0].values))
        if all(math.isfinite(point.values[place]) for point in points)
    ]

    def ahead(other: Point, point: Point) -> list[float]:
        gains = [other.values[place] - point.values[place] for place in usable]
        return [point.calls - other.calls, *gains]

    def beats(other: Point, point: Point) -> bool:
        found = ahead(other, point)
        return min(found) >= -_TOLERANCE and max(found) > _TOLERANCE

    if not usable:
        return list(points)
    return [
        replace(point, dominators=tuple(other.name for other in points if beats(other, point)))
        for point in points
    ]


def section(subjects: Sequence[Summary]) -> Section | Absent:
    """The section of the page, or why there is none."""
    found = [*planes(subjects), *routing_planes(subjects)]
    if not found:
        return Absent(_TITLE, "no two subjects on the same lists report their calls")
    with drawing():
        pictures = [
            _draw(plane, place, f"plane{count}-{place}")
            for count, plane in enumerate(found, 1)
            for place in range(len(plane.utilities))
            if any(math.isfinite(point.values[place]) for point in plane.points)
        ]
    text = _TEXT + not_drawn("it reports no calls", [each for each in subjects if not _has_calls(each)])
    if any(plane.joined for plane in found):
        text += f" {_ROUTING}"
    return Section("plane", _TITLE, text, pictures, [_table(each) for each in found])


def _draw(plane: Plane, place: int, name: str) -> Picture:
    utility, is_higher_better = plane.utilities[place]
    names = list(dict.fromkeys(point.series for point in plane.points))
    drawn = [
        Marker(count, point.calls, point.values[place], bool(point.dominators))
        for count, label in enumerate(names)
        for point in plane.points
        if point.series == label and math.isfinite(point.values[place])
    ]
    figure, axes = chart(len(names), "calls a ranking", utility)
    for count, label in enumerate(names):
        look = series(count)
        if plane.joined:
            line = [marker for marker in drawn if marker.series == count]
            calls, values = [marker.calls for marker in line], [marker.value for marker in line]
            axes.plot(calls, values, color=look["color"], linewidth=0.8)
        text = named(f"{count + 1} {label}")
        axes.plot([], [], linestyle="none", markersize=_MARKER, label=text, **look)
    axes.margins(0.12)
    axes.set_xlim(0, 1.1 * max(point.calls for point in plane.points))
    found = heaps(drawn)
    for heap in found:
        _draw_heap(axes, heap)
    if plane.joined:
        # The lines tell whose the other markers are.
        shared = [heap for heap in found if len({marker.series for marker in heap}) > 1]
        for count, heap in enumerate(sorted(shared, key=lambda heap: heap[0].calls)):
            _number_heap(axes, heap, (0, 1 if count % 2 else -1))
    else:
        middle = sum(axes.get_xlim()) / 2
        for heap in found:
            _number_heap(axes, heap, (-1 if heap[0].calls > middle else 1, 0))
    text = "; ".join(
        f"{point.name}: {number(point.calls, _DIGITS, counted=True)} calls, "
        f"{number(point.values[place], _DIGITS)}{', dominated' if point.dominators else ''}"
        for point in plane.points
    )
    better = "↑ is better" if is_higher_better else "↓ is better"
    return picture(figure, name, f"{utility} against calls ({better})", text, plane.title)


def heaps(markers: Sequence[Marker]) -> list[list[Marker]]:
    """The *markers* in heaps of those that would cover one another, each in the order of the series."""
    across = max(marker.calls for marker in markers)
    values = [marker.value for marker in markers]
    up = max(values) - min(values)

    def touch(one: Marker, other: Marker) -> bool:
        return (
            abs(one.calls - other.calls) <= _NEAR_ACROSS * across
            and abs(one.value - other.value) <= _NEAR_UP * up
        )

    found: list[list[Marker]] = []
    for marker in markers:
        near = [heap for heap in found if any(touch(marker, other) for other in heap)]
        apart = [heap for heap in found if heap not in near]
        found = [*apart, [*(other for heap in near for other in heap), marker]]
    return [sorted(heap, key=lambda marker: marker.series) for heap in found]


def _draw_heap(axes: Any, heap: Sequence[Marker]) -> None:
    """Markers one inside the other."""
    for inside, marker in enumerate(heap):
        look = series(marker.series)
        face = PAPER if marker.is_dominated else look["color"]
        size = _MARKER + _rim(heap) * (len(heap) - 1 - inside)
        axes.plot(marker.calls, marker.value, markersize=size, markerfacecolor=face, **look)


def _number_heap(axes: Any, heap: Sequence[Marker], side: tuple[int, int]) -> None:
    """Beside the markers the numbers that they have in the legend: right or left of them, above or below."""
    across, up = side
    gap = _MARKER + _rim(heap) * len(heap) / 2
    axes.annotate(
        ", ".join(dict.fromkeys(str(marker.series + 1) for marker in heap)),
        (fmean(marker.calls for marker in heap), fmean(marker.value for marker in heap)),
        (across * gap, up * gap),
        textcoords="offset points",
        ha=("center", "left", "right")[across],
        va=("center", "bottom", "top")[up],
        fontsize="small",
    )


def _rim(heap: Sequence[Marker]) -> float:
    """By how much each marker of a heap is larger than the one in it."""
    return min(_RIM, _RIMS / len(heap))


def _table(plane: Plane) -> Table:
    rows = [
        (
            point.name,
            number(point.calls, _DIGITS, counted=True),
            *(number(value, _DIGITS) for value in point.values),
            "cannot be told" if point.dominators is None else ", ".join(point.dominators) or "nobody",
        )
        for point in plane.points
    ]
    headings = ("", "calls", *(name for name, _ in plane.utilities), "dominated by")
    return Table(f"Cost and utility, {plane.title}", headings, rows)


def _has_calls(summary: Summary) -> bool:
    return math.isfinite(_number(summary.cost["calls"]))


def _number(value: float | None) -> float:
    return math.nan if value is None else value
