"""How a metric declares itself: what it is called, which way is better, where it lies, and its kernel.

A module of this folder that holds ``METRICS`` declares metrics; nothing else has to know of it. The class of
a metric says what its kernel takes. No array library is needed, since hooks name metrics before anything is
measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from pytest_invari.metrics.reasons import FAILED

if TYPE_CHECKING:
    from pytest_invari.metrics.arrays import Floats, Integers, PerQuery
    from pytest_invari.metrics.block import Block
    from pytest_invari.protocol import Ranking


MetricKind = Literal["per_query", "pooled", "analysis"]
Direction = Literal["lower", "higher"]
Analysis = Literal["independent_views", "routing"]
Standing = Literal["always", "redrawn_labels", "repeats"]
Null: TypeAlias = float | str | Callable[[int, int, int], float]

OWN_NAME = "[a-z][a-z0-9_]*"
"""The pattern of a name, without "@" and what follows."""

POSITION_BIAS = "P1: Position Bias Undermines Preference Consistency in Listwise LLM-Based Reranking"
INDEPENDENT_VIEWS = (
    "P2: When Does Permutation Instability Generalize? Independent-View Validation for Listwise LLM Reranking"
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A choice that a metric's value depends on, with its default as a suite would write it."""

    name: str
    default: str
    meaning: str


TIES = Parameter(
    "ties", "broken", "equal scores stand in an order that a hash of the ids decides, or count half"
)
BUCKETS = Parameter("buckets", "3", "input regions: head, middle, tail")
REGIONS = (
    BUCKETS,
    Parameter("min_observations", "1", "views that a pair of regions needs in order to count"),
    TIES,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """How a metric declares itself, whatever its kernel takes.

    Args:
        family: the word before "@".
        place: where its row stands among the others, the smallest number first.
        label: what its row is called; the word itself without one.
        description: what it is, in a line.
        direction: which is better.
        low, high: its values lie between these; it is a share unless it says otherwise.
        low_of_views: the least value of a query with this many views, where they leave less possible.
        source: where it is defined.
        null: what it is where there is nothing to find: a number, NaN where there is no such value or one
            that varies; the family of another metric; or a function of k, K and the number of views of all
            queries together.
        reasons: the codes of why it is undefined, each with its meaning, or nothing where it says all.
        has_cutoff: whether it is written with "@" and a number, ``k``, as a rule the length of the top.
        parameters: what else its value depends on besides ``k``.
        standing: when every subject's table has it, whatever the suite asks for.
        is_hidden_at_zero: whether its row is shown only where a figure is not 0.
        is_amount: whether its figures are amounts, such as tokens, and not shares.
        is_of_failures: whether it is about rankings that failed, also where a failure fails all others.
    """

    kind: ClassVar[MetricKind] = "per_query"

    family: str
    place: int = 0
    label: str = ""
    description: str
    direction: Direction
    low: float = 0.0
    high: float = 1.0
    low_of_views: Callable[[int], float] | None = None
    source: str
    null: Null = math.nan
    reasons: Mapping[str, str] = field(default_factory=dict, hash=False)
    has_cutoff: bool = False
    k: int | None = None
    parameters: tuple[Parameter, ...] = ()
    standing: Standing | None = None
    is_hidden_at_zero: bool = False
    is_amount: bool = False
    is_of_failures: bool = False

    @property
    def name(self) -> str:
        """The word that a suite uses: ``loc``, ``ndcg@5``."""
        return self.family + self._cutoff

    @property
    def row(self) -> str:
        """What its row of a table is called: ``LOC``, ``nDCG@5``."""
        return (self.label or self.family.replace("_", " ")) + self._cutoff

    @property
    def _cutoff(self) -> str:
        return f"@{self.k or 'k'}" if self.has_cutoff else ""

    @property
    def top(self) -> int | None:
        """How many places of a ranking it looks at; None where that is all of them."""
        return None if self.kind == "analysis" else self.k

    def least(self, views: int) -> float:
        """The least value of a query with this many views."""
        return self.low if self.low_of_views is None else self.low_of_views(views)

    def meaning(self, reason: str) -> str:
        """The code of a reason, and behind it what it means, where that is not said by the code alone."""
        meant = {**FAILED, **self.reasons}.get(reason)
        return f"{reason} ({meant})" if meant else reason


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryMetric(Metric):
    """A metric of the rankings of a query: ``function`` takes a block of them, and k or 0."""

    function: Callable[[Block, int], PerQuery]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewMetric(Metric):
    """The mean of what ``function`` says of each view of a query, valid or not; None says nothing."""

    function: Callable[[Ranking], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatMetric(Metric):
    """A metric of the ranks (1, r, K) of one input order, r times: ``function`` gives the query's value."""

    function: Callable[[Integers], PerQuery]


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledMetric(Metric):
    """A metric that only all queries together have: a statistic of counts that are pooled over them.

    Args:
        counts: numerators (n, K) and denominators (n,) of a block and k.
        statistic: of shares (..., K) and k.
        distance_from: the number that the statistic tells the distance from, by k and K.
    """

    kind: ClassVar[MetricKind] = "pooled"

    counts: Callable[[Block, int], tuple[Integers, Integers]]
    statistic: Callable[[Floats, int], Floats]
    distance_from: Callable[[int, int], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMetric(Metric):
    """A metric of a user's own: ``function`` and ``version`` are what they declared."""

    function: Callable[..., object]
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingMetric(Metric):
    """A figure of an analysis of a bank of views; *is_reused* marks one that a part of itself confirms."""

    kind: ClassVar[MetricKind] = "analysis"

    analysis: Analysis
    is_reused: bool = False


def least_mean_correlation(views: int) -> float:
    """The least mean of a correlation between the rankings of two of so many views.

    They cannot all be each other's reverse.
    """
    return -1 / max(1, views - 1)
