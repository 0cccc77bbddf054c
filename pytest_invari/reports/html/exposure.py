"""Exposure by input position, with what chance alone would give (P1, Figure 1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from pytest_invari.reports.html.canvas import BAND, INK, SERIES, chart, drawing, named, picture, series
from pytest_invari.reports.html.parts import Absent, Picture, Section, Table, not_drawn
from pytest_invari.reports.rows import shown_name
from pytest_invari.reports.subjects import Summary
from pytest_invari.text import printable

_LEVEL = 0.95
_TITLE = "Exposure by input position"
_TEXT = (
    "The share of views in which the item shown at a position comes out in the top. A reranker that ignores "
    "positions has the same share everywhere (the dashed line). The dark band holds 95% of what chance alone "
    "does at one position, the light one 95% of what it does at all of them together: a point beyond the "
    "light band is hardly chance. Views in the data set's own order do not count here."
)


@dataclass(frozen=True, slots=True)
class Exposure:
    """What subjects on the same lists have in common: a line each, and the level and bands of chance.

    ``shares`` has for each of ``names`` the share E_k(p) for the positions p from 1. ``band`` holds one
    position with probability 95%, ``wide`` all of them.
    """

    title: str
    top: int
    names: Sequence[str]
    shares: Sequence[Sequence[float]]
    level: float
    band: tuple[float, float]
    wide: tuple[float, float]


def exposures(subjects: Iterable[Summary]) -> list[Exposure]:
    """The pictures' data: one for each data set, list length and number of views, of a few lines each."""
    return [
        _exposure(key, group[start : start + len(SERIES)])
        for key, found in groupby(sorted(filter(_has_views, subjects), key=_lists), _lists)
        for group in [list(found)]
        for start in range(0, len(group), len(SERIES))
    ]


def chance_band(level: float, views: int, coverage: float) -> tuple[float, float]:
    """Within which shares chance keeps a position of expected share *level* over *views* views.

    Whatever decides the ranking, if it is not the position, the item of a position gets into the top with
    the same probability in each view, independently: their number is binomial.
    """
    from scipy.special import bdtr, bdtrik

    if level in (0, 1):
        return level, level
    ends = []
    for probability in ((1 - coverage) / 2, (1 + coverage) / 2):
        # The least count that is not exceeded with this probability; bdtrik is exact up to rounding.
        count = max(0, round(float(bdtrik(probability, views, level))) - 1)
        while bdtr(count, views, level) < probability:
            count += 1
        ends.append(count / views)
    return ends[0], ends[1]


def section(subjects: Sequence[Summary]) -> Section | Absent:
    """The section of the page, or why there is none."""
    found = exposures(subjects)
    if not found:
        return Absent(_TITLE, "no subject has a valid ranking of a random order")
    with drawing():
        pictures = [_draw(each, f"exposure{number}") for number, each in enumerate(found, 1)]
    tables = [_table(each) for each in found]
    without = not_drawn("none of its rankings counts", [each for each in subjects if not _has_views(each)])
    return Section("exposure", _TITLE, _TEXT + without, pictures, tables)


def _lists(summary: Summary) -> tuple[str, int, int]:
    return summary.dataset, summary.k, summary.views


def _has_views(summary: Summary) -> bool:
    return bool(summary.pictures["exposure"]["views"])


def _exposure(key: tuple[str, int, int], subjects: Sequence[Summary]) -> Exposure:
    dataset, k, _ = key
    counted = [each.pictures["exposure"] for each in subjects]
    top = counted[0]["top"]
    # Where rankings failed, the widest band is the one that misleads nobody.
    views = min(each["views"] for each in counted)
    return Exposure(
        printable(f"{dataset}, lists of {k}"),
        top,
        [shown_name(each) for each in subjects],
        [[hits / each["views"] for hits in each["hits"]] for each in counted],
        min(top, k) / k,
        _band(top, k, views, _LEVEL),
        _band(top, k, views, 1 - (1 - _LEVEL) / k),
    )


def _band(top: int, items: int, views: int, coverage: float) -> tuple[float, float]:
    """What chance does where a share may be expected anywhere between the least and the most."""
    least, most = expected_shares(top, items)
    return chance_band(least, views, coverage)[0], chance_band(most, views, coverage)[1]


def expected_shares(top: int, items: int) -> tuple[float, float]:
    """The least and the most that a position may expect of a reranker that ignores positions.

    Views are drawn from all orders but the data set's own. An item of the top that stands at the position in
    that one stands there in fewer of the others, (K − 1)! − 1 of K! − 1: of lists of three in one of five.
    """
    top = min(top, items)
    orders, each = math.factorial(items), math.factorial(items - 1)
    if orders < 2:
        return top / items, top / items
    return (top * each - 1) / (orders - 1), min(1.0, top * each / (orders - 1))


def _draw(found: Exposure, name: str) -> Picture:
    figure, axes = chart(len(found.names), "input position", f"share in the top {found.top}")
    positions = range(1, len(found.shares[0]) + 1)
    for band, opacity in ((found.wide, 0.25), (found.band, 0.4)):
        axes.axhspan(*band, color=BAND, alpha=opacity, linewidth=0)
    axes.axhline(found.level, color=INK, linestyle="--", linewidth=1)
    for number, (label, shares) in enumerate(zip(found.names, found.shares, strict=True)):
        axes.plot(positions, shares, label=named(label), **series(number))
    step = next(each for each in (1, 2, 5, 10, 20, 50, len(positions)) if len(positions) <= 10 * each)
    axes.set_xticks(positions[::step])
    text = (
        f"Lines of {', '.join(found.names)} over {len(positions)} positions; chance alone keeps a position "
        f"between {found.band[0]:.3f} and {found.band[1]:.3f}."
    )
    return picture(figure, name, f"Top-{found.top} exposure", text, found.title)


def _table(found: Exposure) -> Table:
    rows = [
        (str(position), *(f"{shares[position - 1]:.3f}" for shares in found.shares))
        for position in range(1, len(found.shares[0]) + 1)
    ]
    level, band, wide = found.level, found.band, found.wide
    caption = (
        f"Share in the top {found.top} by input position, {found.title}; expected {level:.3f}, chance "
        f"{band[0]:.3f} to {band[1]:.3f}, at all positions {wide[0]:.3f} to {wide[1]:.3f}"
    )
    return Table(caption, ("position", *found.names), rows)
