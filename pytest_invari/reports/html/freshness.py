"""What a probe foretells of fresh views, beside what reused ones would show by algebra (P2, Figure 2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_invari.reports.html.canvas import INK, SERIES, chart, drawing, named, picture, series
from pytest_invari.reports.html.intervals import IntervalRow, Panel, draw_panel, panel_table
from pytest_invari.reports.html.parts import Absent, Picture, Section, Table
from pytest_invari.reports.rows import failed_views, in_brackets
from pytest_invari.reports.subjects import Summary
from pytest_invari.text import figure, number, printable

_DIGITS = 3
_TITLE = "Would fresh views agree?"
_TEXT = (
    "Does the instability of a probe of few views foretell that of other views? Only the association with a "
    "target of fresh views, which share none with the probe, answers that. Where the target reuses views of "
    "the probe, a part of it is compared with itself: the grey band is the middle 95% of what this part "
    "alone gives, the hollow diamond its mean. Elsewhere the diamond is what chance gives."
)
# By the analysis' names, with what is drawn of each.
_TARGETS = {
    "rho_0": "no probe view reused",
    "rho_1": "one reused",
    "rho_2": "two reused",
    "rho_2_removed": "two, own distance removed",
}
_MEASURES = {"": "by exposure variance", "ranking_": "by Kendall's tau"}

_Findings = Mapping[str, Any]


def section(subjects: Sequence[Summary]) -> Section | Absent:
    """The section of the page, or why there is none."""
    having = [each for each in subjects if _analysis(each)]
    if not having:
        is_asked = any("independent_views" in each.analyses for each in subjects)
        why = "found no query to analyse" if is_asked else "is asked for by no suite of the run"
        return Absent(_TITLE, f"the analysis independent_views {why}")
    pictures, tables = [], []
    with drawing():
        for count, panel in enumerate(associations(having), 1):
            pictures.append(draw_panel(panel, f"fresh{count}"))
            tables.append(panel_table(panel))
        for measure in _MEASURES:
            drawn = [
                each for each in having if any(math.isfinite(rho) for _, rho, *_ in _sizes(each, measure))
            ]
            for start in range(0, len(drawn), len(SERIES)):
                some = drawn[start : start + len(SERIES)]
                pictures.append(_draw_sizes(some, measure, f"sizes{measure}{start}"))
            tables.append(_sizes_table(having, measure))
    return Section("fresh-views", _TITLE, _TEXT, pictures, tables)


def associations(subjects: Sequence[Summary]) -> Iterator[Panel]:
    """For each measure the associations of each subject with targets that reuse none, one and two views."""
    for prefix, measure in _MEASURES.items():
        rows = [
            _row(each, words, _analysis(each)["statistics"][prefix + name])
            for each in subjects
            for name, words in _TARGETS.items()
        ]
        yield Panel("Disjoint against reused targets", f"Spearman's rho, {measure}", rows)


def _row(summary: Summary, name: str, found: _Findings) -> IntervalRow:
    level = found["mechanical"]
    null, spread = _number(found["chance"]), (math.nan, math.nan)
    if level is not None:
        null, spread = _number(level["mean"]), (_number(level["low"]), _number(level["high"]))
    return IntervalRow(
        _subject(summary),
        name,
        _number(found["estimate"]),
        _number(found["low"]),
        _number(found["high"]),
        found["n"],
        null=null,
        spread=spread,
        reason=printable(found["reason"] or ""),
        notes=tuple(filter(None, [failed_views(summary)])),
    )


def _draw_sizes(subjects: Sequence[Summary], prefix: str, name: str) -> Picture:
    drawn, axes = chart(len(subjects), "views in the probe", "rho with fresh views")
    axes.axhline(0, color=INK, linestyle="--", linewidth=1)
    middle = (len(subjects) - 1) / 2
    for count, each in enumerate(subjects):
        points = [point for point in _sizes(each, prefix) if not math.isnan(point[1])]
        across = [size + 0.05 * (count - middle) for size, *_ in points]
        ends = [[point[1] - point[2] for point in points], [point[3] - point[1] for point in points]]
        rhos = [point[1] for point in points]
        axes.errorbar(across, rhos, ends, label=named(_subject(each)), capsize=2.5, **series(count))
    axes.set_xticks(sorted({size for each in subjects for size, *_ in _sizes(each, prefix)}))
    text = "; ".join(
        f"{_subject(each)}: "
        + ", ".join(f"{number(rho, _DIGITS)} of {size}" for size, rho, *_ in _sizes(each, prefix))
        for each in subjects
    )
    return picture(drawn, name, "Does a larger probe foretell more?", text, _MEASURES[prefix])


def _sizes_table(subjects: Sequence[Summary], prefix: str) -> Table:
    rows = [
        (_subject(each), str(size), figure(rho, low, high, n, _DIGITS) + in_brackets(failed_views(each)))
        for each in subjects
        for size, rho, low, high, n in _sizes(each, prefix)
    ]
    caption = f"Association of probes with fresh views, {_MEASURES[prefix]}"
    return Table(caption, ("subject", "views in the probe", "rho [95% interval] n=queries"), rows)


def _sizes(summary: Summary, prefix: str) -> list[tuple[int, float, float, float, int]]:
    """For each probe size rho with the fresh target, its interval and its number of queries."""
    analysis = _analysis(summary)
    found = []
    for each in analysis["reliability"]["ranking" if prefix else "exposure"]:
        value = analysis["statistics"][each["rho"]]
        rho, low, high = (_number(value[name]) for name in ("estimate", "low", "high"))
        found.append((each["calls"], rho, low, high, value["n"]))
    return found


def _analysis(summary: Summary) -> _Findings:
    """Empty where there is none, or no query to analyse."""
    found = summary.analyses.get("independent_views", {})
    return found if "statistics" in found else {}


def _subject(summary: Summary) -> str:
    return printable(f"{summary.reranker}, {summary.dataset}, lists of {summary.k}")


def _number(value: float | None) -> float:
    return math.nan if value is None else value
