"""What may have become of a metric since its baseline, and how that is said; it needs no array library."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_invari.criteria.wording import what_would_decide
from pytest_invari.metrics.standing import COSTS
from pytest_invari.text import figure, harmless, number

if TYPE_CHECKING:
    from pytest_invari.baseline.changes import Change
    from pytest_invari.metrics.catalog import Direction


Outcome = Literal["improved", "same", "regressed", "undecided", "missing"]

FAILING: tuple[Outcome, ...] = ("regressed", "missing")

ROUNDING = 1e-12
"""Two machines may round the last digits of one value differently."""


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """What became of one metric: new minus stored, over the queries with a value in both.

    ``before`` and ``now`` are the metric over these queries. ``missing`` is the outcome where there is
    nothing to compare; the ``reason`` then says why. ``n_needed`` estimates the number of queries that would
    decide what is undecided.
    """

    outcome: Outcome
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    undefined: int = 0
    before: float = math.nan
    now: float = math.nan
    reason: str = ""
    n_needed: int | None = None


def missing(reason: str) -> BaselineComparison:
    """Nothing could be compared, which fails: a gate must not pass because there was nothing to look at."""
    return BaselineComparison("missing", reason=reason)


def classify(low: float, high: float, margin: float, direction: Direction) -> Outcome:
    """What an interval of new minus stored amounts to.

    It is a regression when the whole interval of the worsening is beyond the margin, an improvement when it
    is wholly on the better side of 0, and the same when it lies within the margin on both sides. An end that
    differs from a bound by rounding alone equals it. NaN decides nothing.
    """
    if math.isnan(low) or math.isnan(high):
        return "undecided"
    least, most = (low, high) if direction == "lower" else (-high, -low)
    if least > margin + ROUNDING:
        return "regressed"
    if most < -ROUNDING:
        return "improved"
    if least >= -margin - ROUNDING and most <= margin + ROUNDING:
        return "same"
    return "undecided"


def describe_change(change: Change, comparison: BaselineComparison) -> str:
    """One line that begins with the difference and goes on to both values, the margin and the reason."""
    metric = change.criterion.metric
    if math.isnan(comparison.difference):
        parts = [] if comparison.reason else ["no figure"]
    else:
        is_cost = metric.family in COSTS
        shown = figure(comparison.difference, comparison.low, comparison.high, comparison.n, counted=is_cost)
        before, now = (number(each, counted=is_cost) for each in (comparison.before, comparison.now))
        parts = [f"{shown}: {metric.name} was {before} and is {now} ({metric.direction} is better)"]
        if change.margin:
            parts.append(f"up to {change.margin:g} worse is no regression")
    return harmless("; ".join(filter(None, [*parts, *remarks(change, comparison)])))


def remarks(change: Change, comparison: BaselineComparison) -> list[str]:
    """The reason, and how many queries would decide, in the words that criteria have for it."""
    said = [comparison.reason] if comparison.reason else []
    if comparison.outcome == "undecided" and not math.isnan(comparison.difference):
        said += what_would_decide(
            comparison.n_needed, comparison.reason, bool(comparison.undefined), change.suite.min_queries
        )
    return said
