"""One call for a block of P2: what aggregation does to its queries, and what routing them costs and gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_invari.metrics.arrays import Floats, Integers, PerQuery, require_shape
from pytest_invari.routing.benefit import summarise_benefit
from pytest_invari.routing.fairness import JudgedLists, Outcomes, outcomes
from pytest_invari.routing.frontier import Frontier, frontier
from pytest_invari.routing.policies import FRACTIONS, Aggregate, ViewRoles, make_policies, probe_instability
from pytest_invari.settings import IntervalMethod
from pytest_invari.statistics import Interval, Resamples


@dataclass(frozen=True, eq=False)
class Routing:
    """The outcomes of each query, the figures of ``BENEFIT_FIGURES`` over all, and the table of policies."""

    outcomes: Outcomes
    benefit: Mapping[str, Interval]
    frontier: Frontier


def evaluate_routing(
    query_ids: Sequence[str],
    ranks: Integers,
    roles: ViewRoles,
    lists: JudgedLists,
    costs: Floats,
    resamples: Resamples,
    *,
    entropy: PerQuery,
    margin: PerQuery,
    salt: str = "",
    fractions: Sequence[float] = FRACTIONS,
    aggregate: Aggregate = "target_only",
    method: IntervalMethod = "bca",
) -> Routing:
    """Aggregate the target views, route by each policy, and compare signed value with measured cost.

    Args:
        query_ids: (N,), each once; queries with a failed view must have been left out.
        ranks: (N, B, K) strict 0-based ranks in each view of the bank, items in the order of their ids.
        roles: of these views.
        lists: relevance and groups of the same queries and items.
        costs: (N, B, 6) of each view, in the order of ``frontier.COSTS``.
        resamples: of the N queries.
        entropy, margin: (N,) of the canonical ranking; undefined with a reason where there are no scores.
        salt: of the random policy.
        fractions: the shares of queries to route.
        aggregate: whether ``always_aggregate`` ranks the canonical view too.
        method: of the intervals of means.

    Raises:
        InvariError: the lists are not of the stratum controlled, or a query id stands there twice.
        ValueError: what is given is not of the same queries, views or items.
    """
    _, views, _ = require_shape(ranks)
    if max(roles.canonical, *roles.probe, *roles.target) >= views:
        raise ValueError(f"a bank of {views} views does not hold all of {roles}")
    found = outcomes(ranks[:, roles.canonical], ranks[:, roles.target], lists)
    instability = probe_instability(ranks, roles)
    policies, refused = make_policies(
        query_ids, roles, instability=instability, entropy=entropy, margin=margin, salt=salt
    )
    table = frontier(
        policies,
        roles,
        costs,
        found,
        resamples,
        refused=refused,
        fractions=fractions,
        aggregate=aggregate,
    )
    return Routing(found, summarise_benefit(found, instability, resamples, method=method), table)
