"""Rows of estimates with intervals on one scale: the panels that a forest plot consists of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_invari.reports.html.canvas import BAND, BOUND, FAINT, INK, SERIES, WIDTH, picture, short
from pytest_invari.reports.html.parts import Picture, Table
from pytest_invari.reports.rows import in_brackets
from pytest_invari.text import figure

if TYPE_CHECKING:
    from pytest_invari.criteria.judgement import Side


# Heights in the units of the page: a heading, a row of words above its interval, and what an axis takes.
_HEADING, _ROW, _WORDS, _AXIS, _MARGIN = 20, 40, 15, 26, 22
_LABEL_LENGTH = 26
# More rows than this have the scale above them as well.
_LONG = 8
_DIGITS = 3
# A number of the scale that is longer than this leaves room for few; one that stands nearer to an end of the
# scale than this share of it would not fit into the margin.
_SHORT, _END = 6, 0.08


@dataclass(frozen=True, slots=True)
class DrawnBound:
    """What a criterion asks of a figure."""

    side: Side
    value: float


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """One estimate. ``null`` is what it would be if there were nothing to find, and ``spread`` its interval.

    ``group`` is what rows that stand together have in common. ``reason`` says why there is no estimate, and
    ``notes`` what must be known of it.
    """

    group: str
    name: str
    estimate: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    bounds: tuple[DrawnBound, ...] = ()
    null: float = math.nan
    spread: tuple[float, float] = (math.nan, math.nan)
    reason: str = ""
    notes: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[float]:
        """All that has to find room on the scale."""
        found = [self.estimate, self.low, self.high, self.null, *self.spread]
        return [each for each in (*found, *(bound.value for bound in self.bounds)) if math.isfinite(each)]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What stands below its name, each in a line of its own."""
        return tuple(filter(None, (self.reason, *self.notes)))

    @property
    def height(self) -> int:
        """What the row takes in its picture."""
        return _ROW + _WORDS * len(self.remarks)


@dataclass(frozen=True, slots=True)
class Panel:
    """Rows on one scale; a *counted* one has numbers without decimals."""

    title: str
    caption: str
    rows: Sequence[IntervalRow]
    counted: bool = False


def draw_panel(panel: Panel, name: str) -> Picture:
    """One panel, with its rows below each other; *name* is unique in the page."""
    from matplotlib.figure import Figure

    plot = len(_groups(panel.rows)) * _HEADING + sum(row.height for row in panel.rows)
    is_long = len(panel.rows) > _LONG
    height = plot + _AXIS * (1 + is_long)
    drawn = Figure((WIDTH / 72, height / 72))
    axes = drawn.add_axes((_MARGIN / WIDTH, _AXIS / height, 1 - 2 * _MARGIN / WIDTH, plot / height))
    axes.set_ylim(plot, 0)
    axes.set_xlim(*_scale(panel.rows))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.tick_params(color=FAINT, top=is_long, labeltop=is_long)
    _draw_scale(axes, all(number == round(number) for row in panel.rows for number in row.numbers))
    top = 0.0
    for group, rows in _groups(panel.rows).items():
        _words(axes, 0, top + _HEADING / 2, short(group, 46), weight="bold")
        top += _HEADING
        for row in rows:
            _draw_row(axes, row, top, panel.counted)
            top += row.height
    return picture(drawn, name, panel.title, _description(panel), panel.caption)


def panel_table(panel: Panel) -> Table:
    """The numbers of a panel."""
    has_nulls = any(not math.isnan(row.null) for row in panel.rows)
    headings = ["", "estimate [95% interval] n=queries", "bound", *(["null"] if has_nulls else [])]
    rows = []
    for row in panel.rows:
        nulls = [_null_text(row, panel.counted)] if has_nulls else []
        bounds = ", ".join(f"{_words_of(bound.side)} {bound.value:g}" for bound in row.bounds)
        rows.append((_full_name(row), _figure(row, panel.counted), bounds, *nulls))
    return Table(": ".join(filter(None, (panel.title, panel.caption))), headings, rows)


def _groups(rows: Sequence[IntervalRow]) -> dict[str, list[IntervalRow]]:
    found: dict[str, list[IntervalRow]] = {}
    for row in rows:
        found.setdefault(row.group, []).append(row)
    return found


def _scale(rows: Sequence[IntervalRow]) -> tuple[float, float]:
    numbers = [number for row in rows for number in row.numbers] or [0.0]
    low, high = min(numbers), max(numbers)
    margin = 0.04 * (high - low) or 0.05 * abs(high) or 0.5
    return low - margin, high + margin


def _draw_scale(axes: Any, whole: bool) -> None:
    """Numbers along the scale, fewer where they are long; those at its ends stand within the picture."""
    from matplotlib.ticker import MaxNLocator

    low, high = axes.get_xlim()
    for most in (5, 3):
        locator = MaxNLocator(most, steps=(1, 2, 2.5, 5, 10), integer=whole)
        ticks = [float(tick) + 0.0 for tick in locator.tick_values(low, high) if low <= tick <= high]
        # Matplotlib would take a power of ten out of all numbers, and has no room here to write it.
        labels = [f"{tick:g}" for tick in ticks]
        if max(map(len, labels), default=0) <= _SHORT:
            break
    axes.set_xticks(ticks, labels)
    for value, tick in zip(ticks, axes.xaxis.get_major_ticks(), strict=True):
        share = (value - low) / (high - low)
        aligned = "left" if share < _END else "right" if share > 1 - _END else "center"
        for label in (tick.label1, tick.label2):
            label.set_horizontalalignment(aligned)


def _draw_row(axes: Any, row: IntervalRow, top: float, counted: bool) -> None:
    _words(axes, 0, top + _WORDS / 2 + 1, short(row.name, _LABEL_LENGTH))
    shown = figure(row.estimate, row.low, row.high, row.n, _DIGITS, counted=counted).rpartition(" n=")[0]
    _words(axes, 1, top + _WORDS / 2 + 1, shown or "undefined")
    for remark in row.remarks:
        top += _WORDS
        _words(axes, 0, top + _WORDS / 2 + 1, short(remark))
    middle = top + _WORDS + 8
    if not math.isnan(row.spread[0]):
        axes.fill_between(row.spread, middle - 5, middle + 5, color=BAND, alpha=0.4, linewidth=0)
    if not math.isnan(row.low):
        axes.plot((row.low, row.high), (middle, middle), color=SERIES[0], linewidth=2)
        for end in (row.low, row.high):
            axes.plot((end, end), (middle - 3, middle + 3), color=SERIES[0], linewidth=2)
    if not math.isnan(row.estimate):
        axes.plot(row.estimate, middle, marker="o", color=SERIES[0], markersize=6)
    if not math.isnan(row.null):
        axes.plot(row.null, middle, marker="D", color=INK, markerfacecolor="none", markersize=7)
    leg = 0.02 * (axes.get_xlim()[1] - axes.get_xlim()[0])
    for bound in row.bounds:
        _bracket(axes, bound, middle, leg)


def _bracket(axes: Any, bound: DrawnBound, middle: float, leg: float) -> None:
    """A bracket at the bound that is open to the side where the figure may be."""
    inner = bound.value + (leg if bound.side == "at_least" else -leg)
    across = (inner, bound.value, bound.value, inner)
    down = (middle - 7, middle - 7, middle + 7, middle + 7)
    axes.plot(across, down, color=BOUND, linewidth=1.6, solid_joinstyle="miter")


def _words(axes: Any, side: int, middle: float, text: str, **style: Any) -> None:
    """Words at the left (0) or the right (1) end of a row."""
    aligned = ("left", "right")[side]
    place = axes.get_yaxis_transform()
    axes.text(side, middle, text, transform=place, ha=aligned, va="center", clip_on=False, **style)


def _description(panel: Panel) -> str:
    parts = [f"{_full_name(row)}: {_figure(row, panel.counted)}" for row in panel.rows[:12]]
    more = len(panel.rows) - len(parts)
    return "; ".join(parts) + (f"; and {more} more in the table" if more else "")


def _full_name(row: IntervalRow) -> str:
    return ", ".join(filter(None, (row.name, row.group)))


def _figure(row: IntervalRow, counted: bool) -> str:
    shown = figure(row.estimate, row.low, row.high, row.n, _DIGITS, counted=counted)
    return shown + in_brackets("; ".join(row.remarks))


def _null_text(row: IntervalRow, counted: bool) -> str:
    if math.isnan(row.null):
        return ""
    return figure(row.null, *row.spread, 0, _DIGITS, counted=counted).rpartition(" n=")[0]


def _words_of(side: Side) -> str:
    return "at least" if side == "at_least" else "at most"
