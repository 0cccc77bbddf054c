"""What each metric is called, which way is better, and where it is defined; it needs no array library."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from pytest_invari.errors import InvariError, unknown_name

if TYPE_CHECKING:
    from pytest_invari.metrics.custom import CustomMetric


MetricKind = Literal["per_query", "pooled", "analysis"]
Direction = Literal["lower", "higher"]
Analysis = Literal["independent_views", "routing"]

_INDEPENDENT_VIEWS = (
    "P2: When Does Permutation Instability Generalize? Independent-View Validation for Listwise LLM Reranking"
)
_POSITION_BIAS = "P1: Position Bias Undermines Preference Consistency in Listwise LLM-Based Reranking"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A choice that a metric's value depends on, with its default as a suite would write it."""

    name: str
    default: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Metric:
    """How a metric declares itself.

    ``family`` is the word before "@" and ``k`` the number after it (None where there is none).
    ``kind`` says whether the metric has a value for each query, averaged without weights, or one for all
    queries together, pooled or as the finding of an ``analysis``. ``is_reused`` marks one that a part of
    itself confirms. ``low`` and ``high`` bound its values. ``direction`` is the better one. ``custom`` is
    what a user declared of a metric of their own.
    """

    family: str
    direction: Direction
    low: float
    high: float
    description: str
    source: str
    kind: MetricKind = "per_query"
    has_cutoff: bool = False
    k: int | None = None
    parameters: tuple[Parameter, ...] = ()
    analysis: Analysis | None = None
    is_reused: bool = False
    custom: CustomMetric | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """The word that a suite uses: ``loc``, ``ndcg@5``."""
        if not self.has_cutoff:
            return self.family
        return f"{self.family}@{'k' if self.k is None else self.k}"

    def least(self, views: int) -> float:
        """The least value of a query with this many views: ``low``, or what they leave possible of it."""
        # M rankings cannot all be each other's reverse.
        return -1 / max(1, views - 1) if self.family == "loc" else self.low

    @property
    def top(self) -> int | None:
        """How many places of a ranking it looks at; None where that is all of them."""
        return None if self.kind == "analysis" else self.k


CUTOFF = Parameter("k", "none: write it after @", "the length of the top")
"""Of every metric that looks at the top of a ranking."""

_TIES = Parameter(
    "ties", "broken", "equal scores stand in an order that a hash of the ids decides, or count half"
)
_BUCKETS = Parameter("buckets", "3", "input regions: head, middle, tail")
_REGIONS = (
    _BUCKETS,
    Parameter("min_observations", "1", "views that a pair of regions needs in order to count"),
    _TIES,
)


def _cost(family: str, direction: Direction, description: str) -> Metric:
    return Metric(family, direction, 0.0, math.inf, description, "counted by the reranker")


def _finding(
    analysis: Analysis,
    family: str,
    direction: Direction,
    description: str,
    low: float = -1.0,
    *,
    is_reused: bool = False,
    has_cutoff: bool = False,
) -> Metric:
    return Metric(
        family,
        direction,
        low,
        1.0,
        description,
        _INDEPENDENT_VIEWS,
        kind="analysis",
        has_cutoff=has_cutoff,
        analysis=analysis,
        is_reused=is_reused,
    )


_DECLARED = (
    Metric(
        "ppi", "lower", 0.0, 1.0,
        "how much the preference between two items changes with the regions they are shown in",
        f"{_POSITION_BIAS}, section 3.2",
        parameters=(
            *_REGIONS,
            Parameter("single_cell", "zero", "item pairs seen in one pair of regions count 0 or are dropped"),
        ),
    ),
    Metric(
        "ppi_null", "lower", 0.0, 1.0,
        "the PPI to expect of these rankings if the places of the items did not matter",
        "the null of PPI: each input order with a random output of its query",
        parameters=_REGIONS,
    ),
    Metric(
        "ppi_excess", "lower", -1.0, 1.0,
        "PPI less its null",
        "PPI and its null",
        parameters=_REGIONS,
    ),
    Metric(
        "bucket_agreement_gap", "lower", -1.0, 1.0,
        "how much more often two views agree on two items when both show them in the same regions",
        "0 on average without position effects, for every number of views",
        parameters=(_BUCKETS, _TIES),
    ),
    Metric(
        "ppi_split", "lower", -1.0, 1.0,
        "PPI with the regions chosen on one half of the views and compared on the other",
        "cross-fitting of PPI; 0 on average without position effects",
        parameters=_REGIONS,
    ),
    Metric(
        "gpi", "lower", 0.0, 0.5,
        "the share of preferences that contradict the one ranking that fits them best",
        f"{_POSITION_BIAS}, section 3.3",
        parameters=(_TIES,),
    ),
    Metric(
        "gpi_exact", "lower", 0.0, 0.5,
        "GPI with the best ranking of all, not the one that swaps lead to",
        f"{_POSITION_BIAS}, section 3.3; Kemeny 1959",
        parameters=(_TIES,),
    ),
    Metric(
        "gpi_lower_bound", "lower", 0.0, 0.5,
        "the share of preferences that contradict the majority, pair by pair; no ranking contradicts fewer",
        "the mean of min(q, 1−q)",
        parameters=(_TIES,),
    ),
    Metric(
        "loc", "higher", -1.0, 1.0,
        "the mean Kendall tau between the rankings of the same items shown in two orders",
        f"{_POSITION_BIAS}, section 3.4",
        parameters=(_TIES,),
    ),
    Metric(
        "exposure_deviation", "lower", 0.0, 1.0,
        "the largest distance of a position's share of top-k places from k/K",
        f"{_POSITION_BIAS}, section 3.5",
        kind="pooled", has_cutoff=True, parameters=(CUTOFF,),
    ),
    Metric(
        "exposure_deviation_mean", "lower", 0.0, 1.0,
        "the mean distance of the positions' shares of top-k places from k/K",
        f"{_POSITION_BIAS}, section 3.5",
        kind="pooled", has_cutoff=True, parameters=(CUTOFF,),
    ),
    Metric(
        "hr", "higher", 0.0, 1.0,
        "the share of views with a relevant item in the top k",
        f"{_POSITION_BIAS}, section 4",
        has_cutoff=True, parameters=(CUTOFF,),
    ),
    Metric(
        "ndcg", "higher", 0.0, 1.0,
        "binary nDCG whose ideal holds min(k, all held-out positives), retrieved or not",
        f"{_POSITION_BIAS}, section 4; Järvelin and Kekäläinen 2002",
        has_cutoff=True, parameters=(CUTOFF,),
    ),
    Metric(
        "ndcg_candidates", "higher", 0.0, 1.0,
        "binary nDCG whose ideal holds min(k, relevant candidates)",
        "Järvelin and Kekäläinen 2002",
        has_cutoff=True, parameters=(CUTOFF,),
    ),
    _cost("calls", "lower", "model calls per ranking"),
    _cost("depth", "lower", "model calls per ranking that must wait for each other"),
    _cost("tokens_in", "lower", "prompt tokens per ranking"),
    _cost("tokens_cached", "higher", "prompt tokens per ranking that were not computed again"),
    _cost("tokens_out", "lower", "generated tokens per ranking"),
    _cost("seconds", "lower", "wall-clock seconds per ranking, its share of the batch"),
    Metric(
        "label_agreement_gap", "lower", -1.0, 1.0,
        "how much more often two views agree on two items when their labels stand in the same order",
        "as the bucket agreement gap, of labels; needs labels that are redrawn for each view",
        parameters=(_TIES,),
    ),
    Metric(
        "repeat_difference", "lower", 0.0, 1.0,
        "the share of item pairs that answers to the very same view order differently: the noise floor",
        "counted, alone and in a batch",
        parameters=(_TIES,),
    ),
    Metric("tie_rate", "lower", 0.0, 1.0, "the share of item pairs with equal scores", "counted"),
    Metric("invalid_view_rate", "lower", 0.0, 1.0, "the share of views without a valid ranking", "counted"),
    _finding("independent_views", "rho_0", "higher", "does a probe foretell the instability of fresh views?"),
    _finding(
        "independent_views", "rho_1", "higher", "the same for targets with one view of the probe",
        is_reused=True,
    ),
    _finding(
        "independent_views", "rho_2", "higher", "the same for targets with two views of the probe",
        is_reused=True,
    ),
    _finding("independent_views", "rho_2_minus_0", "lower", "how much reused views flatter a probe", -2.0),
    _finding("independent_views", "ranking_rho_0", "higher", "rho_0 of rankings alone, by Kendall's tau"),
    _finding(
        "independent_views", "r2_gain", "higher", "held-out R² that a probe of four adds to one of two",
        -math.inf,
    ),
    _finding("routing", "benefit", "higher", "how much nearer to its target aggregation brings exposure"),
    _finding("routing", "improved", "higher", "the share of queries that aggregation brings nearer", 0.0),
    _finding("routing", "rho_movement", "higher", "does instability foretell how far exposure moves?"),
    _finding("routing", "rho_benefit", "higher", "does instability foretell whom aggregation helps?"),
    _finding(
        "routing", "v2_dominated", "lower",
        "1 where another policy is as cheap and as good as routing @ % of the queries by V2, else 0", 0.0,
        has_cutoff=True,
    ),
)  # fmt: skip

METRICS: Mapping[str, Metric] = MappingProxyType({metric.family: metric for metric in _DECLARED})
"""The built-in metrics by their families."""

# Those of the users' own in the run that goes on, by their families.
_added: Mapping[str, Metric] = MappingProxyType({})


def add_metrics(own: Mapping[str, Metric]) -> Callable[[], None]:
    """Let the *own* metrics of a run be known beside the built-in ones, in place of those of another run.

    Returns:
        What undoes it. Runs within runs undo theirs first.
    """
    global _added
    before = _added
    _added = MappingProxyType(dict(own))

    def undo() -> None:
        global _added
        _added = before

    return undo


def all_metrics() -> Mapping[str, Metric]:
    """The built-in metrics by their families, in the order of tables, then the users' own."""
    return {**METRICS, **_added}


def metric_names() -> dict[str, str]:
    """The words a suite may use ("@k" stands for a number) with their descriptions, sorted."""
    known = sorted(all_metrics().values(), key=lambda each: each.name)
    return {metric.name: metric.description for metric in known}


def parse_metric(text: str, where: str = "") -> Metric:
    """Read a metric's word: ``loc``, ``ndcg@5``.

    Args:
        text: the word.
        where: the place it was found at, put before the message of an error.

    Raises:
        InvariError: no such metric, no cutoff where one is needed, or one where none belongs.
    """
    family, at, cutoff = text.partition("@")
    prefix = f"{where}: " if where else ""
    found = all_metrics()
    metric = found.get(family)
    if metric is None:
        # Compared with the user's own cutoff, so that "nDCG@5" is close to "ndcg@5".
        known = [
            f"{each.family}{at}{cutoff}" if at and each.has_cutoff else each.name for each in found.values()
        ]
        raise unknown_name("metric", text, known, where)
    if not metric.has_cutoff:
        if at:
            raise InvariError(f"{prefix}metric {text!r}: {family} takes no @; write {family!r}.")
        return metric
    if not re.fullmatch(r"[1-9][0-9]{0,4}", cutoff):
        raise InvariError(
            f"{prefix}metric {text!r}: {family} needs the length of the top, a whole number from 1, after @; "
            f"write {family + '@5'!r}."
        )
    return replace(metric, k=int(cutoff))
