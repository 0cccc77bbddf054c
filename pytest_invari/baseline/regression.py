"""The criterion that a metric is not worse than its stored values: improved, same, regressed or undecided."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pytest_invari.baseline.file import Entry
from pytest_invari.baseline.outcomes import Outcome, missing
from pytest_invari.criteria.criterion import Criterion
from pytest_invari.criteria.judgement import Judgement, Wording, remarks_of
from pytest_invari.errors import InvariError
from pytest_invari.metrics.costs import COSTS
from pytest_invari.suitefile.suite import AT_BASELINE
from pytest_invari.text import figure, number

if TYPE_CHECKING:
    from pytest_invari.criteria.evidence import Evidence
    from pytest_invari.metrics import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionCriterion(Criterion):
    """A metric may be worse than its stored values by ``margin``.

    ``entry`` holds these, and is called ``entry_id`` in the file at ``path``; None where the file has none.
    The judgement's interval is that of new minus stored, and ``details`` has the outcome and both values.
    """

    metric: Metric
    margin: float
    path: Path
    entry_id: str
    entry: Entry | None = field(hash=False, compare=False, repr=False)

    @property
    def kind(self) -> str:
        """That of the criteria on metrics, as the properties of its items say."""
        return "metric"

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """See :class:`Criterion`."""
        return (self.metric,)

    @property
    def judges_failures(self) -> bool:
        """See :class:`Criterion`."""
        return self.metric.is_of_failures

    @property
    def why_not_stored(self) -> str:
        """See :class:`Criterion`."""
        return ""

    @property
    def item_name(self) -> str:
        """What its items are called: ``loc@baseline``."""
        return f"{self.name}{AT_BASELINE}"

    @property
    def fault(self) -> str:
        """See :class:`Criterion`."""
        if self.entry is not None:
            return ""
        return f"{self.path} has no entry {self.entry_id}; add it with --invari-save={self.path}"

    @property
    def demanded(self) -> str:
        """What is asked."""
        return f"up to {self.margin:g} worse is no regression" if self.margin else "must not be worse"

    def facts(self) -> dict[str, str]:
        """See :class:`Criterion`."""
        return {"kind": self.kind, "metric": self.metric.name}

    def demand(self, k: int, baseline: str) -> str:
        """See :class:`Criterion`."""
        return self.demanded

    def judged(self, evidence: Evidence) -> Judgement:
        """See :class:`Criterion`; a gate must not pass because there was nothing to compare."""
        # Here, because collecting checks must not load NumPy.
        from pytest_invari.baseline.comparison import compare

        assert self.entry is not None
        try:
            return compare(self.metric, self.margin, evidence, self.entry)
        except InvariError as error:
            return missing(f"{self.path}: {self.entry_id}: {error}")

    def outcome(self, judgement: Judgement) -> Outcome:
        """See :class:`Criterion`; where nothing was compared, the verdict decides."""
        if judgement.verdict == "undecided":
            return "undecided"
        return cast(Outcome, judgement.details.get("outcome", "missing"))

    def before_and_now(self, judgement: Judgement) -> str:
        """Both values of the metric over the queries that are compared; empty where there are none."""
        if not judgement.is_measured:
            return ""
        counted = self.metric.family in COSTS
        before, now = (number(judgement.details[name], counted=counted) for name in ("before", "now"))
        return f"{self.metric.name} was {before} and is {now}"

    def difference(self, judgement: Judgement) -> str:
        """The figure: the metric now minus the stored one; empty where there is none."""
        if not judgement.is_measured:
            return ""
        counted = self.metric.family in COSTS
        return figure(judgement.estimate, judgement.low, judgement.high, judgement.n, counted=counted)

    def wording(self, judgement: Judgement, *, k: int, baseline: str, min_queries: int) -> Wording:
        """The difference, then both values, the margin and the reason."""
        remarks = remarks_of(judgement, min_queries)
        if not judgement.is_measured:
            return Wording("" if remarks else "no figure", "", tuple(remarks))
        said = f"{self.before_and_now(judgement)} ({self.metric.direction} is better)"
        margin = [self.demanded] if self.margin else []
        return Wording(self.difference(judgement), said, (*margin, *remarks))

    def properties(self, judgement: Judgement) -> dict[str, object]:
        """The outcome in plain types, and what there is of its figures; None is left out."""
        values: dict[str, object] = {
            "outcome": self.outcome(judgement),
            "margin": self.margin,
            "n": judgement.n,
            "n_needed": judgement.n_needed,
            "reason": judgement.reason or None,
        }
        if judgement.n:
            before_and_now = {name: judgement.details[name] for name in ("before", "now")}
            values |= {**before_and_now, "difference": judgement.estimate}
            if not math.isnan(judgement.low):
                values |= {"low": judgement.low, "high": judgement.high}
        return values
