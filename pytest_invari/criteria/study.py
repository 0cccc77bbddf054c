"""A study: one reranker on one task set in several orders, its figures, and assertions about them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_invari.criteria.criterion import Comparison, Place
from pytest_invari.criteria.evidence import DecisionRules, Evidence, describe_failures
from pytest_invari.criteria.judgement import Judgement
from pytest_invari.criteria.metric import MetricCriterion, why_no_bound, why_no_bound_of, why_no_distance
from pytest_invari.criteria.outcomes import CriterionNotMetError, InvariUndecidedWarning, WithoutInternals
from pytest_invari.errors import InvariError, counted
from pytest_invari.metrics import Metric, parse_metric
from pytest_invari.metrics.catalog import table_metrics
from pytest_invari.observation.plan import dataset_label
from pytest_invari.protocol.usercode import shortened
from pytest_invari.text import harmless

if TYPE_CHECKING:
    import pandas as pd

    from pytest_invari.measure.measured import Measured
    from pytest_invari.observation.plan import Plan
    from pytest_invari.statistics import Interval


# A failing assertion is shown at its line by pytest itself.
_IN_A_TEST = Place(Path("test"), 1)
# Nobody to compare with. None may be a mistake of the test.
_NOBODY = object()


@dataclass(frozen=True)
class Rules(DecisionRules):
    """When a criterion is decided, as a suite's keys say it; where it is *strict*, undecided fails."""

    strict: bool = False


class Study:
    """What the fixture ``invari`` gives. It ranks when the first figure is asked for, and only then.

    ``is_measured`` says whether anybody has asked for one; an assertion does.

    Args:
        measure: gives what was measured, and measures when it is first called.
        reranker: the reranker's name, without secrets in its options.
        plan: on what it is measured.
        rules: when a criterion is decided.
        note: called with each verdict, a line and plain values.
    """

    def __init__(
        self,
        measure: Callable[[], Measured],
        reranker: str,
        plan: Plan,
        rules: Rules,
        note: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._measure, self.reranker, self.plan = measure, reranker, plan
        self._rules, self._note = rules, note
        self.is_measured = False

    def __repr__(self) -> str:
        return f"<study of {harmless(self.name)}; see interval(metric) and frame()>"

    @property
    def name(self) -> str:
        """What was measured, for people: ``zero_shot on tasks, 20 views of lists of 6``."""
        dataset = dataset_label(self.plan.dataset)
        return f"{self.reranker} on {dataset}, {counted(self.plan.views, 'view')} of lists of {self.plan.k}"

    @property
    def measured(self) -> Measured:
        """Everything that was measured.

        Raises:
            InvariError: the reranker or the tasks cannot be loaded.
        """
        __tracebackhide__ = True
        self.is_measured = True
        with WithoutInternals():
            return self._measure()

    def interval(self, metric: str) -> Interval:
        """A metric's estimate over queries with its 95 % interval.

        Raises:
            InvariError: there is no such metric, or as :attr:`measured`.
        """
        __tracebackhide__ = True
        with WithoutInternals():
            self._metric(metric)
            return self.measured.interval(metric)

    def frame(self, *metrics: str) -> pd.DataFrame:
        """The metrics of each query: a row a query, by its id; a column a metric, NaN where it is undefined.

        Without *metrics* those are taken that every suite reports. Metrics that have one value for all
        queries together, as exposure deviation, have no column.

        Raises:
            InvariError: pandas is missing, a metric has no value per query, or as :attr:`measured`.
        """
        __tracebackhide__ = True
        try:
            import pandas as pd
        except ImportError:
            raise InvariError("frame() needs pandas: pip install 'pytest-invari[analysis]'") from None
        with WithoutInternals():
            for name in metrics:
                if self._metric(name).kind != "per_query":
                    raise InvariError(f"{name} has no value per query; interval({name!r}) has the one of all")
            chosen = metrics or [
                name
                for name in table_metrics((), **self.plan.table)
                if parse_metric(name).kind == "per_query"
            ]
            measured = self.measured
            columns = {name: measured.metric(name).values for name in chosen}  # type: ignore[union-attr]
            return pd.DataFrame(columns, index=pd.Index(measured.query_ids, name="query_id"))

    def assert_at_least(self, metric: str, bound: float, *, strict: bool | None = None) -> None:
        """Fail unless the metric may be *bound* or more; see :meth:`assert_better_than` for the verdicts."""
        __tracebackhide__ = True
        self._assert("at_least", metric, bound, _NOBODY, strict)

    def assert_at_most(self, metric: str, bound: float, *, strict: bool | None = None) -> None:
        """Fail unless the metric may be *bound* or less; see :meth:`assert_better_than` for the verdicts."""
        __tracebackhide__ = True
        self._assert("at_most", metric, bound, _NOBODY, strict)

    def assert_not_worse_than(
        self, other: Study, metric: str, *, margin: float, strict: bool | None = None
    ) -> None:
        """Fail when the metric is worse than *other*'s by over *margin*; see :meth:`assert_better_than`."""
        __tracebackhide__ = True
        self._assert("not_worse_than", metric, margin, other, strict)

    def assert_better_than(
        self, other: Study, metric: str, *, by: float = 0.0, strict: bool | None = None
    ) -> None:
        """Fail when the metric is not better than *other*'s by *by*, on the same queries and views.

        The 95 % interval decides, here that of the paired difference. Wholly on the right side of the bound
        it passes, wholly on the wrong one it fails, as it does when nothing was measured. Where it holds the
        bound, the assertion is undecided: it passes with an :class:`InvariUndecidedWarning`, or fails if it
        is *strict*, which is by default what the run is (``--invari-strict``).

        Raises:
            CriterionNotMetError: it fails; an AssertionError whose line begins with the figure.
            InvariError: there is no such metric, it looks at more places than the lists have, the bound is
                no number or out of the metric's range, *other* is no study, or the two differ in more than
                the reranker.
        """
        __tracebackhide__ = True
        self._assert("better_than", metric, by, other, strict)

    def _assert(
        self, comparison: Comparison, metric: str, value: float, other: object, strict: bool | None
    ) -> None:
        __tracebackhide__ = True
        with WithoutInternals():
            other = None if other is _NOBODY else _require_study(comparison, other)
            if strict is not None and not isinstance(strict, bool):
                raise InvariError(f"strict must be True, False or None, not {shortened(strict)}")
            criterion = self._criterion(comparison, metric, value)
            if other is not None:
                self._require_same_plan(other)
            judgement = self._judge(criterion, other)
        line = criterion.wording(
            judgement,
            k=self.plan.k,
            baseline=other.reranker if other else "",
            min_queries=self._rules.min_queries,
        ).line
        self._keep_verdict(line, self._values(criterion, judgement, other))
        if judgement.verdict == "fail":
            raise CriterionNotMetError(line)
        if judgement.verdict == "undecided":
            if self._rules.strict if strict is None else strict:
                raise CriterionNotMetError(f"{line}; undecided fails where it is strict")
            self._leave_undecided(line)

    def _keep_verdict(self, line: str, values: dict[str, Any]) -> None:
        """Pass a verdict on to whoever reports it."""
        self._note(harmless(f"{values['verdict']}: {self.name}: {line}"), values)

    def _leave_undecided(self, line: str) -> None:
        """Let an assertion pass that is undecided and not strict."""
        # At the line of the test: of this method, _assert and the assertion it is the caller.
        warnings.warn(InvariUndecidedWarning(line), stacklevel=4)

    def _judge(self, criterion: MetricCriterion, other: Study | None) -> Judgement:
        for study in filter(None, (self, other)):
            faults = study._faults()
            if faults and self.plan.on_failure == "strict" and not criterion.judges_failures:
                bound = criterion.bound(self.plan.k)
                return Judgement("fail", bound, reason=f"nothing measured: {faults}")
        faults = self._faults()
        return criterion.judge_figure(
            Evidence(
                self.measured,
                other.measured if other else None,
                self._rules.min_queries,
                self._rules.max_undefined,
                f"{faults}; on_failure = {self.plan.on_failure}" if faults else "",
            )
        )

    def _faults(self) -> str:
        return describe_failures(self.measured, self.reranker, ellipsis="")

    def _metric(self, name: str) -> Metric:
        if not isinstance(name, str):
            raise InvariError(f"a metric's name is text, as in 'loc', not {shortened(name)}")
        metric = parse_metric(name)
        if metric.top is not None and metric.top > self.plan.k:
            raise InvariError(
                f"{name} looks at the top {metric.top}, but the lists have {self.plan.k} candidates"
            )
        return metric

    def _criterion(self, comparison: Comparison, metric: str, value: float) -> MetricCriterion:
        known = self._metric(metric)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InvariError(f"{metric}: the bound must be a number, not {shortened(value)}")
        if comparison == "at_least" or comparison == "at_most":
            why_not = why_no_bound(comparison, value, known)
            why_not = why_not or why_no_bound_of(self.plan, comparison, value, known)
        elif value < 0:
            why_not = f"a difference of {value!r} asked for; it must not be negative"
        else:
            why_not = why_no_distance("margin" if comparison == "not_worse_than" else "by", value, known)
        if why_not:
            raise InvariError(f"{metric}: {why_not}")
        return MetricCriterion(
            name=metric,
            place=_IN_A_TEST,
            metric=known,
            comparison=comparison,
            value=float(value),
        )

    def _require_same_plan(self, other: Study) -> None:
        differ = [
            field.name
            for field in fields(self.plan)
            if getattr(self.plan, field.name) != getattr(other.plan, field.name)
        ]
        if differ:
            raise InvariError(
                f"{self.name} and {other.name} differ in {' and '.join(differ)}; compare studies that "
                "differ in the reranker alone"
            )

    def _values(
        self, criterion: MetricCriterion, judgement: Judgement, other: Study | None
    ) -> dict[str, Any]:
        """The verdict in plain types, as JSON has them; what is undefined is left out."""
        plain = judgement.plain()
        values = {
            "reranker": self.reranker,
            "baseline": other.reranker if other else None,
            "dataset": dataset_label(self.plan.dataset),
            "k": self.plan.k,
            "views": self.plan.views,
            "metric": criterion.metric.name,
            "comparison": criterion.comparison,
            **{name: plain[name] for name in ("bound", "verdict", "n", "reason", "estimate", "low", "high")},
        }
        return {name: value for name, value in values.items() if value is not None}


def _require_study(comparison: Comparison, other: object) -> Study:
    if not isinstance(other, Study):
        raise InvariError(
            f"assert_{comparison} compares with another study, not with {shortened(other)}; give it one, as "
            "in invari.study('random', tasks, views)"
        )
    return other
