"""Which queries a routing policy sends on to more views, when only a fixed share of them may be.

P2, routing as a cost-utility test: some views of every query are ranked, the queries are put into an order by
what these say, and the first ones have the target views ranked too. No policy sees relevance or groups.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pytest_invari.errors import InvariError, counted
from pytest_invari.independent_views.distances import view_distances
from pytest_invari.independent_views.targets import pairs_within, rounded, weigh, weighted_distances
from pytest_invari.metrics.arrays import Bools, Floats, Integers, PerQuery
from pytest_invari.observation.design import SINGLE_VIEW_PROBE, Design
from pytest_invari.observation.views import CANONICAL

FRACTIONS = (0.10, 0.25, 0.50)
"""The shares of queries that P2 routes."""

CANONICAL_ONLY = "canonical_only"
ALWAYS_AGGREGATE = "always_aggregate"

Aggregate: TypeAlias = Literal["target_only", "with_canonical"]
"""Whether always aggregating ranks the target views alone or the canonical view as well; P2 does not say."""


@dataclass(frozen=True, slots=True)
class ViewRoles:
    """What the views of a bank are for, each by its 0-based place there.

    The ``canonical`` ranking is shown to the user of a query that is not routed, ``probe`` tells how unstable
    a query is, and ``target`` is aggregated for a routed one.

    Raises:
        ValueError: a view is named twice, the target holds another role's view, or a role has none.
    """

    canonical: int
    probe: tuple[int, ...]
    target: tuple[int, ...]

    def __post_init__(self) -> None:
        places = (self.canonical, *self.probe, *self.target)
        if not self.probe or not self.target or min(places) < 0:
            raise ValueError(f"probe and target need views, named by their places in the bank: {self}")
        for role in (self.probe, self.target):
            if len(set(role)) < len(role):
                raise ValueError(f"a view cannot be named twice in one role: {self}")
        if set(self.target) & {self.canonical, *self.probe}:
            raise ValueError(f"the target's views must be neither canonical nor in the probe: {self}")

    @classmethod
    def of(cls, design: Design) -> ViewRoles:
        """The roles that *design* gives to the views of its bank.

        Raises:
            InvariError: the bank has no canonical view, or it is in the target.
        """
        if CANONICAL not in design.bank or CANONICAL in design.target:
            raise InvariError(
                f"a query that is not routed has the ranking of the view {CANONICAL!r}: name it in the bank "
                "and not in the target"
            )
        return cls(design.bank.index(CANONICAL), design.probe_views, design.target_views)

    @property
    def before_routing(self) -> tuple[int, ...]:
        """The views that a policy by the probe needs of every query: the probe's and the canonical one."""
        return tuple(sorted({self.canonical, *self.probe}))


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """An order in which queries are routed, and the views that it takes.

    ``order`` (N,) holds the queries' places, the first to be routed first. The views ``first`` are ranked of
    every query and those in ``then`` of the routed ones as well, both by their places in the bank.
    """

    name: str
    order: NDArray[np.intp]
    first: tuple[int, ...]
    then: tuple[int, ...]

    def views(self, routed: float) -> float:
        """How many views are ranked a query when the share *routed* is: 2 + 4r or 1 + 4r in P2."""
        return len(self.first) + len(self.then) * routed


@dataclass(frozen=True, slots=True)
class Refusal:
    """A policy that cannot be tried: ``reasons`` counts the codes of the queries without a score."""

    policy: str
    queries: int
    reasons: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        missing = sum(count for _, count in self.reasons)
        why = ", ".join(f"{code} {count}" for code, count in self.reasons)
        return f"{self.policy}: no score for {missing} of {counted(self.queries, 'query')} ({why})"


def make_policies(
    query_ids: Sequence[str],
    roles: ViewRoles,
    *,
    instability: PerQuery,
    entropy: PerQuery,
    margin: PerQuery,
    salt: str,
) -> tuple[list[Policy], list[Refusal]]:
    """P2's four policies; one whose score is missing for any query is refused, never filled in.

    The first is named ``V2`` after its probe of two views (``V3`` for three) and routes the least stable
    first. The others know the canonical ranking only: ``entropy`` routes the largest first, ``margin`` the
    smallest, and ``random`` goes by the hash of *salt* and id. Equal scores go by query id, in code-point
    order.

    Args:
        query_ids: (N,), each once.
        roles: of the views in the bank.
        instability: (N,) the probe's V.
        entropy: (N,) of the canonical ranking's scores.
        margin: (N,) between the two best of the canonical ranking's scores.
        salt: anything; another salt draws another random order.

    Raises:
        InvariError: a query id stands there twice.
        ValueError: scores are not aligned with the queries.
    """
    _require_once(query_ids)
    scores = {
        f"V{len(roles.probe)}": (instability, -1.0, roles.before_routing),
        "entropy": (entropy, -1.0, (roles.canonical,)),
        "margin": (margin, 1.0, (roles.canonical,)),
    }
    found, refused = [], []
    for name, (score, sign, first) in scores.items():
        if len(score) != len(query_ids):
            raise ValueError(f"{name} has {len(score)} values for {len(query_ids)} queries")
        if score.defined.all():
            keys = (sign * rounded(score.values)).tolist()
            found.append(Policy(name, _ordered(keys, query_ids), first, roles.target))
        else:
            reasons = Counter(reason for reason in score.reasons if reason is not None)
            refused.append(Refusal(name, len(score), tuple(sorted(reasons.items()))))
    hashes = [hashlib.sha256((salt + query_id).encode()).digest() for query_id in query_ids]
    found.append(Policy("random", _ordered(hashes, query_ids), (roles.canonical,), roles.target))
    return found, refused


def probe_instability(ranks: Integers, roles: ViewRoles) -> PerQuery:
    """V of the probe (P2, equation 1), rounded to 12 decimals: the score that the first policy goes by.

    Args:
        ranks: (N, B, K) strict 0-based ranks in each view of the bank.
        roles: of these views. A probe of one view has no V.
    """
    size = len(roles.probe)
    if size < 2:
        return PerQuery.all_undefined(len(ranks), SINGLE_VIEW_PROBE)
    distances = view_distances(ranks[:, roles.probe])
    weights = weigh("exposure", pairs_within(range(size)), size)
    return PerQuery.of(rounded(weighted_distances(distances, "exposure", weights)))


def endpoints(queries: int, roles: ViewRoles, aggregate: Aggregate = "target_only") -> tuple[Policy, Policy]:
    """What brackets the policies: to route none of the *queries* (``canonical_only``) or all of them.

    ``always_aggregate`` has nothing to wait for: all its views are ranked beside each other. With *aggregate*
    ``"target_only"`` those are the target's, with ``"with_canonical"`` the canonical one too.
    """
    shown = {"target_only": roles.target, "with_canonical": (roles.canonical, *roles.target)}
    if aggregate not in shown:
        raise ValueError(f"aggregate must be one of {', '.join(shown)}, not {aggregate!r}")
    order = np.arange(queries)
    return (
        Policy(CANONICAL_ONLY, order, (roles.canonical,), roles.target),
        Policy(ALWAYS_AGGREGATE, order, (), shown[aggregate]),
    )


def routed_count(queries: int, fraction: float) -> int:
    """⌊r·n + ½⌋ of n queries, with r as it is written in decimal: half a query is always routed."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"a fraction of queries must be between 0 and 1, not {fraction}")
    return math.floor(Fraction(str(float(fraction))) * queries + Fraction(1, 2))


def routed_queries(policy: Policy, fraction: float) -> Bools:
    """(N,) true for the queries that *policy* routes."""
    once = np.ones((1, len(policy.order)))
    return np.asarray(routed_copies(policy, fraction, once)[0] > 0)


def routed_copies(policy: Policy, fraction: float, copies: NDArray[np.floating[Any]]) -> Floats:
    """How often each query is routed, (b, N), in b resamples that hold each as often as *copies* (b, N) says.

    Every resample has N queries and is routed anew. Copies of one query are neighbours in the order, so that
    the last places may go to some of them only.
    """
    ordered = copies[:, policy.order]
    before = np.cumsum(ordered, axis=1) - ordered
    routed = np.empty(copies.shape)
    routed[:, policy.order] = np.clip(routed_count(len(policy.order), fraction) - before, 0.0, ordered)
    return routed


def _ordered(keys: Sequence[Any], query_ids: Sequence[str]) -> NDArray[np.intp]:
    return np.array(sorted(range(len(keys)), key=lambda place: (keys[place], query_ids[place])), np.intp)


def _require_once(query_ids: Sequence[str]) -> None:
    repeated = [query_id for query_id, count in Counter(query_ids).items() if count > 1]
    if repeated:
        raise InvariError(f"query {repeated[0]!r} stands there twice; queries are routed by their ids")
