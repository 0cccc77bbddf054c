"""What views that were ranked again show: how much a reranker differs from itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytest_invari.metrics.arrays import PerQuery, merge, query_arrays
from pytest_invari.metrics.reasons import FAILED_VIEWS
from pytest_invari.observation.observation import is_valid

if TYPE_CHECKING:
    from pytest_invari.metrics.metric import RepeatMetric
    from pytest_invari.observation.observation import Observation
    from pytest_invari.settings import Ties


NOT_REPEATED = "not_repeated"


def repeat_values(
    metric: RepeatMetric,
    answers: Mapping[str, Sequence[Observation]],
    repeats: Sequence[Observation],
    ties: Ties,
) -> PerQuery:
    """Of each query whose first view was ranked again; no value where one of the answers failed.

    Args:
        metric: what is computed of them.
        answers: the observations of each query, by its id.
        repeats: those of the views that were ranked again.
        ties: how equal scores count.
    """
    repeats_of: dict[str, list[Observation]] = {}
    for seen in repeats:
        repeats_of.setdefault(seen.query_id, []).append(seen)
    results = []
    for place, (query_id, views) in enumerate(answers.items()):
        if again := repeats_of.get(query_id):
            first = [seen for seen in views if seen.shown == again[0].shown]
            results.append((np.array([place]), _value(metric, query_id, [*first, *again], ties)))
    values = merge(len(answers), results)
    reasons = (NOT_REPEATED if reason == "not_observed" else reason for reason in values.reasons)
    return PerQuery(values.values, tuple(reasons))


def _value(metric: RepeatMetric, query_id: str, observations: Sequence[Observation], ties: Ties) -> PerQuery:
    if not all(map(is_valid, observations)):
        return PerQuery.all_undefined(1, FAILED_VIEWS)
    arrays = query_arrays(
        query_id,
        [seen.shown for seen in observations],
        [seen.ranking.order for seen in observations],
        [seen.ranking.scores for seen in observations],
    )
    ranks = arrays.tied_ranks if ties == "half" else arrays.ranks
    return metric.function(ranks[None])
