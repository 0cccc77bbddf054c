"""One-call uncertainty: how sure a reranker is of its answer to the canonical view (P2).

Entropy and top-two margin are controls: they cost no other call, and say nothing of other orders.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

from pytest_invari.observation.views import CANONICAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_invari.metrics.arrays import PerQuery
    from pytest_invari.observation.observation import Observation


NO_CANONICAL_VIEW = "no_canonical_view"
NO_SCORES = "no_scores"
FAILED_VIEW = "failed_views"

ENTROPY, MARGIN = "entropy", "top_two_margin"


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Of each query's canonical view, (N,) each.

    ``entropy`` is in nats: the larger, the less sure. ``margin`` is the difference of the two largest
    probabilities: the smaller, the less sure.
    """

    entropy: PerQuery
    margin: PerQuery


def canonical_uncertainty(query_ids: Sequence[str], observations: Iterable[Observation]) -> Uncertainty:
    """Entropy and top-two margin of the answers to the canonical view, aligned with *query_ids*.

    Each is what the reranker itself reports in its diagnostics, ``entropy`` and ``top_two_margin``, or else
    that of the softmax of its scores. It is undefined where the view is missing (``no_canonical_view``) or
    has no valid ranking (``failed_views``), and where there are neither diagnostics nor scores
    (``no_scores``).
    """
    seen = {each.query_id: each for each in observations if each.view == CANONICAL}
    found = [_of_one(seen.get(query_id)) for query_id in query_ids]
    return Uncertainty(_per_query(found, ENTROPY), _per_query(found, MARGIN))


def certainty(scores: Sequence[float]) -> dict[str, float]:
    """Entropy in nats and top-two margin of the softmax of *scores*, under their names in diagnostics.

    A single score is sure: entropy 0, margin 1.
    """
    best = max(scores)
    weights = sorted((math.exp(score - best) for score in scores), reverse=True)
    total = math.fsum(weights)
    probabilities = [weight / total for weight in weights]
    entropy = -math.fsum(p * math.log(p) for p in probabilities if p > 0)
    margin = probabilities[0] - probabilities[1] if len(probabilities) > 1 else 1.0
    return {ENTROPY: entropy + 0.0, MARGIN: margin}


def _of_one(seen: Observation | None) -> Mapping[str, float] | str:
    """The values that one view has, by name; or why it has none."""
    if seen is None:
        return NO_CANONICAL_VIEW
    ranking = seen.ranking
    if not ranking.is_valid:
        return FAILED_VIEW
    own = {name: value for name, value in ranking.diagnostics.items() if _is_number(value)}
    scores = ranking.scores or ()
    return (certainty(scores) if scores and all(map(math.isfinite, scores)) else {}) | own


def _per_query(found: Sequence[Mapping[str, float] | str], name: str) -> PerQuery:
    import numpy as np

    from pytest_invari.metrics.arrays import PerQuery

    values = [math.nan if isinstance(each, str) else float(each.get(name, math.nan)) for each in found]
    reasons = [each if isinstance(each, str) else None if name in each else NO_SCORES for each in found]
    return PerQuery(np.array(values, np.float64), tuple(reasons))


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
