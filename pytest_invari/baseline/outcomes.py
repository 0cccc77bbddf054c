"""What may have become of a metric since its baseline; it needs no array library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pytest_invari.criteria.judgement import Judgement, Verdict

if TYPE_CHECKING:
    from pytest_invari.metrics.metric import Direction

Outcome = Literal["improved", "same", "regressed", "undecided", "missing"]

VERDICTS: Mapping[Outcome, Verdict] = {
    "improved": "pass",
    "same": "pass",
    "regressed": "fail",
    "undecided": "undecided",
    "missing": "fail",
}
"""What an outcome amounts to."""

ROUNDING = 1e-12
"""Two machines may round the last digits of one value differently."""


def missing(reason: str) -> Judgement:
    """Nothing could be compared, which fails: a gate must not pass because there was nothing to look at."""
    return Judgement("fail", math.nan, reason=reason)


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
