"""The kind ``metric``: a metric's figure and one bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_invari.criteria.criterion import Comparison, Criterion
from pytest_invari.criteria.judgement import Judgement, Limit, judge
from pytest_invari.errors import InvariError

if TYPE_CHECKING:
    from pytest_invari.criteria.evidence import Evidence
    from pytest_invari.metrics import Metric


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
        return self.metric.family == "invalid_view_rate"

    @property
    def why_not_stored(self) -> str:
        """See :class:`Criterion`."""
        is_finding = self.metric.kind == "analysis"
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
        return judge(
            self.limit(evidence.k),
            interval,
            min_queries=evidence.min_queries,
            max_undefined=evidence.max_undefined,
            excused=measured.excused(name),
            note=measured.analyses.note(self.metric) if self.metric.kind == "analysis" else evidence.faults,
            why=None if interval.n else measured.why_undefined(name),
        )
