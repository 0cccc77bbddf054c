"""What each routing policy costs and gives, and which of them another one beats outright."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pytest_invari.metrics.arrays import Floats
from pytest_invari.metrics.costs import COSTS
from pytest_invari.routing.domination import domination_frequencies, dominations
from pytest_invari.routing.fairness import Outcomes
from pytest_invari.routing.policies import (
    ALWAYS_AGGREGATE,
    CANONICAL_ONLY,
    FRACTIONS,
    Aggregate,
    Policy,
    Refusal,
    ViewRoles,
    endpoints,
    routed_copies,
    routed_count,
)
from pytest_invari.statistics import Resamples
from pytest_invari.statistics.bootstrap import UNDEFINED_SHARE
from pytest_invari.statistics.interval import NO_DEFINED_QUERY, UNDEFINED_REPLICATES

_CALLS, _DEPTH = COSTS.index("calls"), COSTS.index("depth")


@dataclass(frozen=True, slots=True)
class PolicyPoint:
    """A policy at one fraction: means over all queries, and over those with a value for L_F and NDCG@10.

    ``views_before_routing`` views are ranked of every query, and the target views of the ``routed`` ones on
    top: ``views`` a query, whatever a view costs. ``costs`` are measured. ``dominators`` names the points
    that take no more calls, are no worse in L_F and NDCG@10, and better in one of the three; None where that
    cannot be told. ``domination_frequency`` is the share of resamples, each routed anew, in which there is
    one.
    """

    policy: str
    fraction: float
    routed: int
    views_before_routing: int
    views: float
    costs: Mapping[str, float]
    loss: float
    ndcg: float
    dominators: tuple[str, ...] | None
    domination_frequency: float

    @property
    def name(self) -> str:
        """The policy's, with the fraction after @: ``V2@0.25``."""
        return _point_name(self.policy, self.fraction)


@dataclass(frozen=True, slots=True)
class Frontier:
    """The points of all policies between the two endpoints, which come first and last.

    ``loss_queries`` and ``ndcg_queries`` of the ``queries`` have a value. ``reason`` says why domination is
    undefined, ``frequency_reason`` why its frequency is. ``refused`` policies could not be tried.
    """

    points: tuple[PolicyPoint, ...]
    refused: tuple[Refusal, ...]
    aggregate: Aggregate
    queries: int
    loss_queries: int
    ndcg_queries: int
    replicates: int
    undefined_replicates: int
    reason: str | None
    frequency_reason: str | None

    def dominated(self, policy: str) -> tuple[int, int] | None:
        """How many of a policy's points an endpoint or another policy dominates, and how many it has.

        P2 counts so: a policy's other fractions are no rivals of a point. None where domination is undefined.
        """
        if self.reason is not None:
            return None
        own = [point for point in self.points if point.policy == policy]
        names = {point.name for point in own}
        return sum(not set(point.dominators or ()) <= names for point in own), len(own)


def frontier(
    policies: Sequence[Policy],
    roles: ViewRoles,
    costs: Floats,
    outcomes: Outcomes,
    resamples: Resamples,
    *,
    refused: Sequence[Refusal] = (),
    fractions: Sequence[float] = FRACTIONS,
    aggregate: Aggregate = "target_only",
) -> Frontier:
    """Put every policy at every fraction, and the endpoints, into one table of cost and utility.

    A query that is not routed has its canonical ranking's L_F and NDCG@10 and costs what the policy needs to
    know of it; a routed one has the aggregate's and costs the target views on top (P2, cost-utility test).

    Args:
        policies: of the N queries.
        roles: of the views in the bank.
        costs: (N, V, 6) what each view of the bank cost, in the order of ``COSTS``.
        outcomes: of the same queries; they exist for controlled lists only.
        resamples: of the N queries, for the frequencies.
        refused: policies to be named as left out.
        fractions: the shares of queries to route.
        aggregate: whether ``always_aggregate`` ranks the canonical view too.

    Raises:
        ValueError: what is given is not of the same queries or views, or a cost is negative or no number.
    """
    table = _PolicyTable(policies, roles, costs, outcomes, fractions, aggregate)
    queries = len(outcomes.borda)
    if resamples.count != queries:
        raise ValueError(f"resamples of {resamples.count} queries do not fit outcomes of {queries}")
    (spent,), (gained,) = table.means(np.ones((1, queries)))
    reason = NO_DEFINED_QUERY if np.isnan(gained).any() else None
    dominators = [None] * len(table.names) if reason else _dominators(table.names, spent, gained)
    shares, undefined = np.full(len(table.names), np.nan), 0
    frequency_reason = reason
    if reason is None:
        shares, undefined = domination_frequencies(table.replicates(resamples))
        if undefined > UNDEFINED_SHARE * resamples.replicates:
            shares, frequency_reason = np.full(len(table.names), np.nan), UNDEFINED_REPLICATES
    points = [
        PolicyPoint(
            policy=policy.name,
            fraction=fraction,
            routed=routed_count(queries, fraction),
            views_before_routing=len(policy.first),
            views=policy.views(routed_count(queries, fraction) / queries),
            costs=dict(zip(COSTS, spent[place].tolist(), strict=True)),
            loss=float(gained[place, 0]),
            ndcg=float(gained[place, 1]),
            dominators=dominators[place],
            domination_frequency=float(shares[place]),
        )
        for place, (policy, fraction) in enumerate(table.tried)
    ]
    return Frontier(
        points=tuple(points),
        refused=tuple(refused),
        aggregate=aggregate,
        queries=queries,
        loss_queries=int(outcomes.loss_canonical.defined.sum()),
        ndcg_queries=int(outcomes.ndcg_canonical.defined.sum()),
        replicates=resamples.replicates,
        undefined_replicates=undefined,
        reason=reason,
        frequency_reason=frequency_reason,
    )


def stage_cost(costs: Floats) -> Floats:
    """What views beside each other cost together: the sum of all but the depth, of which the largest counts.

    Args:
        costs: (N, V, 6) of each view, in the order of ``COSTS``; seconds are each view's share of its batch.

    Returns:
        (N, 6), zeros for no views. Stages that wait for each other add up, in depth too.
    """
    total = np.asarray(costs.sum(axis=1))
    total[:, _DEPTH] = costs[:, :, _DEPTH].max(axis=1, initial=0.0)
    return total


class _PolicyTable:
    """Every policy at every fraction, between the endpoints, and what resampling the queries makes of it."""

    def __init__(
        self,
        policies: Sequence[Policy],
        roles: ViewRoles,
        costs: Floats,
        outcomes: Outcomes,
        fractions: Sequence[float],
        aggregate: Aggregate,
    ) -> None:
        queries = len(outcomes.borda)
        nothing, everything = endpoints(queries, roles, aggregate)
        _check(queries, [nothing, *policies, everything], costs)
        between = [(policy, float(fraction)) for policy in policies for fraction in fractions]
        self.tried = [(nothing, 0.0), *between, (everything, 1.0)]
        self.names = [_point_name(policy.name, fraction) for policy, fraction in self.tried]
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"a policy or fraction stands there twice: {', '.join(self.names)}")
        self._stages = [
            _Stages(stage_cost(costs[:, policy.first]), stage_cost(costs[:, policy.then]))
            for policy, _ in self.tried
        ]
        self._utilities = _Utilities.of(outcomes)

    def means(self, copies: Floats) -> tuple[Floats, Floats]:
        """Costs (b, P, 6), and L_F with NDCG@10 (b, P, 2), of b resamples, each routed anew.

        Resample b holds query n *copies* [b, n] times.
        """
        spent, gained = [], []
        for (policy, fraction), stages in zip(self.tried, self._stages, strict=True):
            routed = routed_copies(policy, fraction, copies)
            spent.append((copies @ stages.first + routed @ stages.then) / copies.shape[1])
            gained.append(self._utilities.means(copies, routed))
        return np.stack(spent, axis=1), np.stack(gained, axis=1)

    def replicates(self, resamples: Resamples) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Calls, L_F and NDCG@10, (b, P) each, block by block."""
        for copies in resamples.blocks():
            spent, gained = self.means(copies)
            yield spent[..., _CALLS], gained[..., 0], gained[..., 1]


class _Stages(NamedTuple):
    """What each query costs before routing, (N, 6), and what it costs on top when it is routed."""

    first: Floats
    then: Floats


class _Utilities(NamedTuple):
    """L_F and NDCG@10 of each query, (N, 2) each: not routed, routed, and 1.0 where there is a value."""

    canonical: Floats
    borda: Floats
    defined: Floats

    @classmethod
    def of(cls, outcomes: Outcomes) -> _Utilities:
        canonical = np.stack([outcomes.loss_canonical.values, outcomes.ndcg_canonical.values], axis=1)
        borda = np.stack([outcomes.loss_borda.values, outcomes.ndcg_borda.values], axis=1)
        return cls(np.nan_to_num(canonical), np.nan_to_num(borda), (~np.isnan(canonical)).astype(np.float64))

    def means(self, copies: Floats, routed: Floats) -> Floats:
        """(b, 2) over the queries with a value, of which *routed* (b, N) copies have the aggregate's."""
        total = (copies - routed) @ self.canonical + routed @ self.borda
        with np.errstate(invalid="ignore"):
            means: Floats = total / (copies @ self.defined)
        return means


def _dominators(names: Sequence[str], spent: Floats, gained: Floats) -> list[tuple[str, ...] | None]:
    beaten = dominations(spent[:, _CALLS], gained[:, 0], gained[:, 1])
    return [tuple(name for name, beats in zip(names, row, strict=True) if beats) for row in beaten.tolist()]


def _point_name(policy: str, fraction: float) -> str:
    return policy if policy in (CANONICAL_ONLY, ALWAYS_AGGREGATE) else f"{policy}@{fraction:g}"


def _check(queries: int, policies: Sequence[Policy], costs: Floats) -> None:
    """Refuse what is not of the same queries, or cannot be a cost."""
    for policy in policies:
        if not np.array_equal(np.sort(policy.order), np.arange(queries)):
            raise ValueError(f"{policy.name} does not put {queries} queries into an order")
    if costs.ndim != 3 or costs.shape[0] != queries or costs.shape[2] != len(COSTS):
        raise ValueError(f"costs must be ({queries}, views, {len(COSTS)}), not {costs.shape}")
    if any(max((*policy.first, *policy.then)) >= costs.shape[1] for policy in policies):
        raise ValueError(f"costs of {costs.shape[1]} views do not hold all views of the policies")
    if not (np.isfinite(costs).all() and (costs >= 0).all()):
        raise ValueError("every cost must be a finite number, at least 0")
