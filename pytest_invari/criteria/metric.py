"""The kind ``metric``: a metric's figure and one bound, and which bounds a metric leaves sense to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_invari.criteria.criterion import Comparison, Criterion
from pytest_invari.criteria.judgement import Judgement, Limit, judge
from pytest_invari.errors import InvariError
from pytest_invari.metrics.metric import FindingMetric

if TYPE_CHECKING:
    from pytest_invari.criteria.evidence import Evidence
    from pytest_invari.metrics import Metric
    from pytest_invari.observation.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricCriterion(Criterion):
    """A metric and one bound.

    ``value`` is the bound (of ``at_least``, ``at_most``; the text "k" stands for the list length), the
    margin (of ``not_worse_than``) or the least improvement (of ``better_than``). ``baseline`` names the
    other reranker of the latter two. ``regression_margin`` is how much worse than a stored baseline the
    metric may be.
    """

    metric: Metric
    comparison: Comparison
    value: float | Literal["k"]
    baseline: str = ""
    regression_margin: float = 0.0

    @property
    def kind(self) -> str:
        """See :class:`Criterion`."""
        return "metric"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """See :class:`Criterion`."""
        return (self.metric,)

    @property
    def is_relative(self) -> bool:
        """See :class:`Criterion`."""
        return self.comparison in ("not_worse_than", "better_than")

    @property
    def judges_failures(self) -> bool:
        """See :class:`Criterion`."""
        return self.metric.is_of_failures

    @property
    def why_not_stored(self) -> str:
        """See :class:`Criterion`."""
        is_finding = isinstance(self.metric, FindingMetric)
        return "a finding of an analysis has no value for each query" if is_finding else ""

    def bound(self, k: int) -> float:
        """See :class:`Criterion`."""
        return self.limit(k).value

    def facts(self) -> dict[str, str]:
        """See :class:`Criterion`."""
        return {"kind": self.kind, "metric": self.metric.name, "comparison": self.comparison}

    def limit(self, k: int) -> Limit:
        """What the interval must keep to for lists of *k* candidates.

        That of a relative criterion is for subject minus baseline: an improvement is positive where
        higher is better and negative where lower is.
        """
        value = float(k) if self.value == "k" else self.value
        if self.comparison in ("at_least", "at_most"):
            return Limit(self.comparison, value)
        improvement = value if self.comparison == "better_than" else -value
        strict = self.comparison == "better_than" and value == 0
        if self.metric.direction == "higher":
            return Limit("at_least", improvement, strict)
        return Limit("at_most", -improvement + 0.0, strict)

    def demand(self, k: int, baseline: str) -> str:
        """What is asked, with its bound: ``loc must be at least 0.75``."""
        limit = self.limit(k)
        side = "at least" if limit.side == "at_least" else "at most"
        if limit.strict:
            side = "above" if limit.side == "at_least" else "below"
        whose = f" minus {baseline}'s" if self.is_relative else ""
        return f"{self.metric.name}{whose} must be {side} {limit.value:g}"

    def judged(self, evidence: Evidence) -> Judgement:
        """See :class:`Criterion`; what cannot be measured fails."""
        try:
            return self.judge_figure(evidence)
        except InvariError as error:
            return Judgement("fail", self.bound(evidence.k), reason=f"nothing measured: {error}")

    def judge_figure(self, evidence: Evidence) -> Judgement:
        """The verdict on the metric's interval, or on that of its difference from the baseline's.

        Raises:
            InvariError: it cannot be measured.
        """
        measured, name = evidence.measured, self.metric.name
        interval = (
            measured.interval(name)
            if evidence.baseline is None
            else measured.difference(evidence.baseline, name)
        )
        why = None if interval.n else measured.why_undefined(name)
        return judge(
            self.limit(evidence.k),
            interval,
            min_queries=evidence.min_queries,
            max_undefined=evidence.max_undefined,
            excused=measured.excused(name),
            note=(
                measured.analyses.note(self.metric)
                if isinstance(self.metric, FindingMetric)
                else evidence.faults
            ),
            why=self.metric.meaning(why) if why else "",
        )


def why_no_bound(comparison: Comparison, value: float | str, metric: Metric) -> str:
    """Why a bound cannot be meant: no value of the metric meets it, or every one does. Empty if it can.

    A text is the length of the list.
    """
    if isinstance(value, str):
        is_of_lengths = math.isinf(metric.high)
        return "" if is_of_lengths else f'{comparison} = "{value}", the list length, {_not_meant(metric)}'
    if not metric.low <= value <= metric.high:
        return f"{comparison} = {value:g} {_not_meant(metric)}"
    if value == (metric.low if comparison == "at_least" else metric.high):
        return f"{comparison} = {value:g} demands nothing: {_range(metric)}"
    return ""


def why_no_bound_of(plan: Plan, comparison: Comparison, value: float | str, metric: Metric) -> str:
    """Why every query of *plan* meets a bound that makes sense elsewhere; empty if some may not."""
    # Views that may be dropped leave fewer of them, and more possible.
    if comparison != "at_least" or isinstance(value, str) or plan.on_failure == "drop":
        return ""
    least = metric.least(plan.views)
    if value > least:
        return ""
    range_of = f"of {plan.views} views {metric.name} lies between {least:.4g} and {metric.high:g}"
    return f"{comparison} = {value:g} demands nothing: {range_of}"


def why_no_distance(key: str, value: float, metric: Metric) -> str:
    """Why no two values of the metric differ by more than *value*, which *key* gives; empty if they may."""
    return f"{key} = {value:g} {_not_meant(metric)}" if value >= metric.high - metric.low else ""


def _not_meant(metric: Metric) -> str:
    return f"cannot be meant: {_range(metric)}"


def _range(metric: Metric) -> str:
    return f"{metric.name} lies between {metric.low:g} and {metric.high:g}"
