"""The validity of a block as JSON, and as tables for the terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_invari.errors import counted
from pytest_invari.independent_views.held_out import COLLINEAR_PROBES, EMPTY_FOLD, FEWER_THAN_5_QUERIES
from pytest_invari.independent_views.mechanical import Mechanical
from pytest_invari.independent_views.validity import Finding, Validity
from pytest_invari.observation.design import MEASURES, SINGLE_VIEW_PROBE, Design, Measure, prefixed
from pytest_invari.statistics.correlation import CONSTANT_VALUES, FEWER_THAN_3_QUERIES
from pytest_invari.statistics.interval import UNDEFINED_REPLICATES
from pytest_invari.text import number, printable

_WIDTH = 80
_DIGITS = 3
_REASONS = {
    SINGLE_VIEW_PROBE: "one view alone has no spread; give the probe two or more",
    CONSTANT_VALUES: "a probe or the target is the same for every query",
    FEWER_THAN_3_QUERIES: "fewer than 3 queries",
    FEWER_THAN_5_QUERIES: "fewer than 5 queries, one for each fold",
    EMPTY_FOLD: "one of the five folds has no query",
    COLLINEAR_PROBES: "one probe follows from the other, so that a fit cannot tell them apart",
    UNDEFINED_REPLICATES: "no value in more than 5% of the resamples",
}
_TITLES: dict[Measure, str] = {"exposure": "exposure variance", "ranking": "1 - mean Kendall tau"}
_LEGEND = (
    "chance: rho of a reranker that ranks at random, no R2, unrelated quarters. mechanical: the line above "
    "when all but the probe's own distances is another query's; the middle 95% of the permutations. p: "
    "one-sided, of being above 0."
)


def as_json(validity: Validity) -> dict[str, Any]:
    """All of the findings in types that JSON has; what is undefined is null and has a reason."""
    design = validity.design
    return {
        "bank": list(design.bank),
        "probe": list(design.probe),
        "target": list(design.target),
        "queries": validity.queries,
        "replicates": validity.replicates,
        "family": {"statistics": list(validity.family), "tests": validity.tests},
        "undefined": list(validity.undefined),
        "statistics": {name: _finding(found) for name, found in validity.findings.items()},
        "reliability": {
            measure: [
                {"calls": size, "rho": rho, "gain": gain} for size, rho, gain in _reliability(design, measure)
            ]
            for measure in MEASURES
        },
    }


def format_validity(validity: Validity) -> list[str]:
    """Lines of at most 80 columns: for each measure the correlations and what probes of more views add."""
    design = validity.design
    about = (
        f"independent views: {counted(validity.queries, 'query')}; probe {_names(design.probe)}; "
        f"fresh target {_names(design.target)}; "
        f"95% intervals of {counted(validity.replicates, 'paired resample')}"
    )
    lines = _wrapped(about)
    for measure in MEASURES:
        labels = _labels(design, measure)
        lines += ["", *_estimates_table(validity, measure, labels)]
        lines += ["", *_reliability_table(validity, measure)]
        lines += _undefined_lines(validity, labels | _size_labels(design, measure))
    holm = (
        f" In brackets: by Holm's method, among {counted(validity.tests, 'test')}." if validity.tests else ""
    )
    return [*lines, "", *_wrapped(_LEGEND + holm)]


def _estimates_table(validity: Validity, measure: Measure, labels: Mapping[str, str]) -> list[str]:
    rows = []
    for name, label in labels.items():
        found = validity.findings[name]
        rows.append([label, _figure(found), _chance(found), _p_value(found)])
        # The contrast with rho_0 has the level of rho_2, which stands two lines above.
        if found.mechanical is not None and name != prefixed(measure, "rho_2_minus_0"):
            permuted = f"mechanical, {found.mechanical.permutations:,} permuted"
            rows.append([permuted, _level(found.mechanical), "", ""])
    return _table([_TITLES[measure], "[95% interval]", "chance", "p (Holm)"], rows)


def _reliability_table(validity: Validity, measure: Measure) -> list[str]:
    design = validity.design
    rows = []
    for size, rho, gain in _reliability(design, measure):
        more = None if gain is None else validity.findings[gain]
        rows.append(
            [
                str(size),
                _figure(validity.findings[rho]),
                "" if more is None else _figure(more),
                "" if more is None else _p_value(more),
            ]
        )
    return _table(["calls", "rho with fresh target", f"more than with {len(design.probe)}", "p (Holm)"], rows)


def _undefined_lines(validity: Validity, labels: Mapping[str, str]) -> list[str]:
    """For each reason the rows that are undefined for it."""
    grouped: dict[str, list[str]] = {}
    for name, label in labels.items():
        if reason := validity.findings[name].interval.reason:
            grouped.setdefault(reason, []).append(label)
    lines = []
    for reason, rows in grouped.items():
        lines += _wrapped(f"undefined, because {_REASONS.get(reason, reason)}: {'; '.join(rows)}")
    return lines


def _labels(design: Design, measure: Measure) -> dict[str, str]:
    """What the statistics of a measure are called in its table."""
    base, largest = len(design.probe), design.largest_size
    labels = {
        "rho_0": "rho, no probe view reused",
        "rho_1": "rho, one reused",
        "rho_2": "rho, two reused",
        "rho_2_removed": "rho, own distance removed",
        "rho_2_minus_0": "two reused less none",
        f"r2_probe_{base}": f"held-out R2, probe of {base}",
    }
    if largest > base:
        labels |= {
            f"r2_probe_{base}_and_{largest}": f"held-out R2, {base} and {largest} views",
            "r2_gain": "held-out R2, gain",
            f"jaccard_probe_{base}_and_{largest}": f"top quarter of {base} and {largest}",
        }
    return {prefixed(measure, name): label for name, label in labels.items()}


def _size_labels(design: Design, measure: Measure) -> dict[str, str]:
    """What the figures of the probes of other sizes are called where they are undefined."""
    labels: dict[str, str] = {}
    for size, rho, gain in _reliability(design, measure):
        if gain is not None:
            labels |= {rho: f"rho with {size}", gain: f"{size} more than {len(design.probe)}"}
    return labels


def _reliability(design: Design, measure: Measure) -> list[tuple[int, str, str | None]]:
    """For each probe size, which is its cost in calls a query, the names of its rho_0 and of its gain."""
    base = len(design.probe)
    rows: list[tuple[int, str, str | None]] = [(base, prefixed(measure, "rho_0"), None)]
    for size in design.other_sizes:
        name = f"rho_0_probe_{size}"
        rows.append((size, prefixed(measure, name), prefixed(measure, f"{name}_minus_{base}")))
    return sorted(rows)


def _finding(found: Finding) -> dict[str, Any]:
    interval, level = found.interval, found.mechanical
    return {
        "estimate": _finite(interval.estimate),
        "low": _finite(interval.low),
        "high": _finite(interval.high),
        "n": interval.n,
        "reason": interval.reason,
        "undefined_replicates": interval.undefined_replicates,
        "chance": _finite(found.chance),
        "p": _finite(found.p_value),
        "p_holm": _finite(found.p_holm),
        "mechanical": None
        if level is None
        else {
            "mean": _finite(level.mean),
            "low": _finite(level.low),
            "high": _finite(level.high),
            "permutations": level.permutations,
            "reason": level.reason,
        },
    }


def _short(value: float) -> str:
    """Three decimals, and no sign where they are all 0."""
    return number(round(value, _DIGITS) + 0.0, _DIGITS)


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value


def _figure(found: Finding) -> str:
    interval = found.interval
    if math.isnan(interval.estimate):
        return "undefined"
    bounds = "[undefined]" if not interval.defined else _range(interval.low, interval.high)
    return f"{_short(interval.estimate)} {bounds}"


def _level(level: Mechanical) -> str:
    if level.reason is not None:
        return "undefined"
    return f"{_short(level.mean)} {_range(level.low, level.high)}"


def _range(low: float, high: float) -> str:
    return f"[{_short(low)}, {_short(high)}]"


def _chance(found: Finding) -> str:
    return "" if math.isnan(found.chance) else _short(found.chance)


def _p_value(found: Finding) -> str:
    if math.isnan(found.p_value):
        return ""
    adjusted = "" if math.isnan(found.p_holm) else f" ({_probability(found.p_holm)})"
    return _probability(found.p_value) + adjusted


def _probability(value: float) -> str:
    least = 10.0**-_DIGITS
    return f"<{least:.{_DIGITS}f}" if value < least / 2 else number(value, _DIGITS)


def _names(views: Sequence[str]) -> str:
    return ", ".join(map(printable, views))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent="  ")


def _table(headings: list[str], rows: list[list[str]]) -> list[str]:
    from tabulate import tabulate

    text = tabulate(
        rows, headers=headings, tablefmt="simple", disable_numparse=True, colalign=("left",) * len(headings)
    )
    return [line.rstrip() for line in str(text).splitlines()]
