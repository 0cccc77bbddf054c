"""What aggregating the target views does to a query: L_F, the signed benefit B_F, movement and NDCG@10.

L_F is how far the exposure of head or of tail items is from their share of the relevant items (P2, signed
outcome). B_F has a sign, so that harm shows: it is positive where the aggregate is nearer to that target than
the canonical ranking. No statistic that does not see the target can tell the sign (P2, its proposition).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_invari.errors import InvariError
from pytest_invari.independent_views.distances import TOP, exposure_vectors
from pytest_invari.independent_views.targets import rounded
from pytest_invari.metrics.arrays import (
    Bools,
    Floats,
    Integers,
    PerQuery,
    require_shape,
    require_strict_ranks,
)
from pytest_invari.metrics.effectiveness import NO_RELEVANT_CANDIDATE, ndcg_candidates
from pytest_invari.tasks.task import STRATA, Stratum

HEAD, TAIL, NO_GROUP = 0, 1, -1

MISSING_GROUP = "missing_group"


@dataclass(frozen=True, eq=False)
class JudgedLists:
    """What is known of the candidates and no reranker sees.

    Args:
        stratum: what the lists may be used for, as whoever made them declares it; empty where nothing is.
        relevant: (N, K) true for the relevant candidates.
        group: (N, K) ``HEAD``, ``TAIL`` or ``NO_GROUP``. A candidate without a group counts in no group's
            exposure but is still among the relevant ones.

    Raises:
        ValueError: the shapes or values are others.
    """

    stratum: Stratum
    relevant: Bools
    group: Integers

    def __post_init__(self) -> None:
        if self.stratum not in ("", *STRATA):
            raise ValueError(f"lists are {' or '.join(STRATA)}, not {self.stratum!r}")
        if self.relevant.dtype != np.bool_ or self.relevant.ndim != 2:
            raise ValueError(f"relevant must be booleans (N, K), not {self.relevant.dtype}")
        if self.group.shape != self.relevant.shape:
            raise ValueError(
                f"group {self.group.shape} must have the shape of relevant {self.relevant.shape}"
            )
        if not np.isin(self.group, (HEAD, TAIL, NO_GROUP)).all():
            raise ValueError(f"a group is {HEAD} (head), {TAIL} (tail) or {NO_GROUP} (none)")

    def require_controlled(self, outcome: str) -> None:
        """Refuse *outcome*, which has a target, on lists that were not built to have one.

        Raises:
            InvariError: the lists are untouched, or nothing is declared of them.
        """
        if self.stratum != "controlled":
            declared = f"declared {self.stratum}" if self.stratum else "not declared to be controlled"
            raise InvariError(
                f"{outcome} is defined on controlled lists only, which are built to hold relevant head and "
                f"tail candidates; these lists are {declared}, so they have no head/tail target to approach. "
                "Leave it out, or measure it on a data set of the stratum controlled"
            )


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What each of N queries has from its canonical ranking and from the Borda aggregate of its target views.

    ``loss_canonical`` and ``loss_borda`` are L_F, in [0, 1]; ``benefit`` is their difference B_F, rounded to
    12 decimals, in [−1, 1]. ``movement`` is the Euclidean distance of the two exposure vectors, in [0, √2).
    ``ndcg_canonical`` and ``ndcg_borda`` are NDCG@10 with the ideal of the relevant candidates. ``borda``
    (N, K) holds the aggregate's ranks.
    """

    borda: Integers
    loss_canonical: PerQuery
    loss_borda: PerQuery
    benefit: PerQuery
    movement: PerQuery
    ndcg_canonical: PerQuery
    ndcg_borda: PerQuery


def outcomes(canonical: Integers, target: Integers, lists: JudgedLists) -> Outcomes:
    """Compare the canonical rankings with the Borda aggregates of the target views.

    Args:
        canonical: (N, K) strict 0-based ranks of the items, which stand in the order of their ids.
        target: (N, T, K) those of the target views, which must not hold the canonical one.
        lists: of the same queries and items.

    Raises:
        InvariError: the lists are not of the stratum controlled.
        ValueError: the shapes differ, or ranks are tied.
    """
    lists.require_controlled("B_F")
    borda = borda_ranks(target)
    both = np.stack([canonical, borda], axis=1)
    exposure = exposure_vectors(both)
    loss = [fairness_loss(exposure[:, side], lists) for side in (0, 1)]
    gained = [ndcg_candidates(both[:, side : side + 1], lists.relevant, TOP) for side in (0, 1)]
    return Outcomes(
        borda=borda,
        loss_canonical=loss[0],
        loss_borda=loss[1],
        benefit=PerQuery(rounded(loss[0].values - loss[1].values), loss[0].reasons),
        movement=movement(exposure[:, 0], exposure[:, 1]),
        ndcg_canonical=gained[0],
        ndcg_borda=gained[1],
    )


def fairness_loss(exposure: Floats, lists: JudgedLists) -> PerQuery:
    """L_F = max over head and tail of |Σ_{i∈g} x_i − relevant in g / relevant|, in [0, 1].

    Undefined without a relevant candidate, and where no candidate is head or none is tail: exposure then has
    nowhere else to go.

    Args:
        exposure: (N, K) exposure vectors, each of sum 1.
        lists: of the same queries and items.

    Raises:
        InvariError: the lists are not of the stratum controlled.
    """
    lists.require_controlled("L_F")
    if exposure.shape != lists.relevant.shape:
        raise ValueError(f"exposure {exposure.shape} must have the shape of relevant {lists.relevant.shape}")
    members = np.stack([lists.group == HEAD, lists.group == TAIL], axis=1)
    shown = (members * exposure[:, None, :]).sum(axis=2)
    relevant = lists.relevant.sum(axis=1)
    due = (members & lists.relevant[:, None, :]).sum(axis=2) / np.maximum(relevant, 1)[:, None]
    smaller_group = members.sum(axis=2).min(axis=1)
    reasons = tuple(
        NO_RELEVANT_CANDIDATE if not found else MISSING_GROUP if not least else None
        for found, least in zip(relevant.tolist(), smaller_group.tolist(), strict=True)
    )
    loss = np.abs(shown - due).max(axis=1)
    return PerQuery(np.where(np.minimum(relevant, smaller_group) == 0, np.nan, loss), reasons)


def borda_ranks(ranks: Integers) -> Integers:
    """Rank by Borda points, K − 1 − rank summed over the views; ties go to the item with the smaller id.

    Args:
        ranks: (N, T, K) strict 0-based ranks of the items, which stand in the order of their ids.

    Returns:
        (N, K) strict 0-based ranks.
    """
    _, views, _ = require_shape(ranks)
    if not views:
        raise ValueError("the aggregate of no views is no ranking")
    require_strict_ranks(ranks)
    # The most points are the smallest sum of ranks; a stable sort leaves ties in the order of the items.
    order = np.argsort(ranks.sum(axis=1, dtype=np.int64), axis=1, kind="stable")
    found = np.empty_like(order)
    np.put_along_axis(found, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), 1)
    return found.astype(np.int16)


def movement(one: Floats, other: Floats) -> PerQuery:
    """‖x − x'‖₂ of exposure vectors (N, K): how far exposure moves, wherever to. It needs no judgements."""
    return PerQuery.of(np.sqrt(((one - other) ** 2).sum(axis=1)))
