"""The arrays that every metric reads, how they are built from lists of ids, and the per-query result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pytest_invari.errors import InvariError
from pytest_invari.metrics.reasons import FEWER_THAN_2_ITEMS, FEWER_THAN_2_VIEWS

Integers: TypeAlias = NDArray[np.signedinteger[Any]]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

_INT16_ITEMS = 32767
# Entries of a kernel's widest array in one chunk: about what stays in a core's cache.
_CHUNK_ENTRIES = 1 << 20


@dataclass(frozen=True, eq=False)
class PerQuery:
    """One value for each query.

    ``values`` is float64 (N,), NaN where undefined; ``reasons`` (N,) holds the reason code exactly there
    and None elsewhere. An undefined value is never a number.
    """

    values: Floats
    reasons: tuple[str | None, ...]

    def __post_init__(self) -> None:
        given = [reason is not None for reason in self.reasons]
        if not np.array_equal(np.isnan(self.values), np.array(given, bool)):
            raise ValueError("a reason code belongs to each undefined value and to no other")

    @classmethod
    def of(cls, values: Floats, undefined: Bools | None = None, reason: str = "") -> PerQuery:
        """Take *values* (N,), undefined for the one *reason* where *undefined* (N,) is true."""
        if undefined is None:
            return cls(values, (None,) * len(values))
        return cls(np.where(undefined, np.nan, values), tuple(reason if bad else None for bad in undefined))

    @classmethod
    def all_undefined(cls, count: int, reason: str) -> PerQuery:
        """Undefined for each of *count* queries, all for one reason."""
        return cls(np.full(count, np.nan), (reason,) * count)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def defined(self) -> Bools:
        """(N,) true where there is a value."""
        return ~np.isnan(self.values)

    @property
    def mean(self) -> float:
        """The unweighted mean over the queries that have a value; NaN when none has."""
        values = self.values[self.defined]
        return float(values.mean()) if values.size else float("nan")


@dataclass(frozen=True, eq=False)
class QueryArrays:
    """The observed views of one query as arrays.

    ``ids`` (K,) are sorted by code point and name the last axis of the three int16 arrays (M, K):
    ``positions[t, i]`` is the 0-based place of item i in the input of view t, ``ranks[t, i]`` its 0-based
    place in the output, and ``tied_ranks`` the same with one rank, the best, for equal scores.
    """

    ids: tuple[str, ...]
    positions: Integers
    ranks: Integers
    tied_ranks: Integers


def query_arrays(
    query_id: str,
    inputs: Sequence[Sequence[str]],
    outputs: Sequence[Sequence[str]],
    scores: Sequence[Sequence[float] | None] | None = None,
) -> QueryArrays:
    """Turn the M views of one query into arrays.

    Args:
        query_id: named in errors.
        inputs: the ids of each view as the reranker saw them.
        outputs: the ids of each view as it ranked them, best first.
        scores: for each view the scores aligned with its output, best first, or None where there are none.

    Raises:
        InvariError: there is no view; the views differ in their items; an input repeats an id; an output
            is not a permutation of its input; the scores do not fall along the output.
    """
    if not inputs or len(inputs) != len(outputs):
        raise InvariError(
            f"query {query_id!r}: {len(inputs)} inputs and {len(outputs)} outputs; give both per view"
        )
    ids = tuple(sorted(inputs[0]))
    if len(ids) > _INT16_ITEMS:
        raise InvariError(f"query {query_id!r}: {len(ids)} candidates; the metrics take up to {_INT16_ITEMS}")
    index = {item: place for place, item in enumerate(ids)}
    shown = _indices(query_id, "input", inputs, index)
    ranked = _indices(query_id, "output", outputs, index)
    ranks = _inverse(ranked)
    tied = ranks if scores is None else _tied(query_id, scores, ranked, ranks)
    return QueryArrays(ids, _inverse(shown), ranks, tied)


def ranks_from_scores(scores: Floats) -> Integers:
    """Rank by descending score along the last axis; equal scores share the best of their ranks.

    Args:
        scores: (..., K), finite; higher is better.

    Returns:
        int16 (..., K): the number of items with a higher score.
    """
    if not np.isfinite(scores).all():
        raise ValueError("scores must be finite to be ranked")
    order = np.argsort(-scores, axis=-1, kind="stable")
    return _shared_ranks(np.take_along_axis(scores, order, -1), order)


def merge(count: int, parts: Iterable[tuple[Integers, PerQuery]]) -> PerQuery:
    """Put results of groups of queries (of one K and M each) back into one result for *count* queries.

    Each part is (query indices, their result). A query that no part holds is undefined: ``not_observed``.
    """
    values = np.full(count, np.nan)
    reasons: list[str | None] = ["not_observed"] * count
    for indices, part in parts:
        values[indices] = part.values
        for index, reason in zip(indices.tolist(), part.reasons, strict=True):
            reasons[index] = reason
    return PerQuery(values, tuple(reasons))


def query_chunks(queries: int, entries: int, budget: int = _CHUNK_ENTRIES) -> Iterator[slice]:
    """Cut the queries into slices of at most *budget* array entries, so that memory does not grow with N.

    *entries* is what one query needs; a query is never cut.
    """
    step = max(1, budget // max(1, entries))
    for start in range(0, queries, step):
        yield slice(start, min(start + step, queries))


def require_shape(ranks: Integers, positions: Integers | None = None) -> tuple[int, int, int]:
    """Return (N, M, K) of *ranks*, or raise ValueError when it, or *positions*, has another shape."""
    if ranks.ndim != 3:
        raise ValueError(f"ranks must be (queries, views, items), not {ranks.shape}")
    if positions is not None and positions.shape != ranks.shape:
        raise ValueError(f"positions {positions.shape} and ranks {ranks.shape} differ in shape")
    queries, views, items = ranks.shape
    return queries, views, items


def require_strict_ranks(ranks: Integers) -> None:
    """Raise ValueError unless every view of *ranks* (..., K) holds each of 0 … K−1 once."""
    items = ranks.shape[-1]
    if not np.array_equal(np.sort(ranks, axis=-1), np.broadcast_to(np.arange(items), ranks.shape)):
        raise ValueError(
            "ranks must be strict: each of 0 … K-1 once a view (break ties before counting a top k)"
        )


def too_small(views: int, items: int) -> str | None:
    """The reason why nothing pairwise is defined for so few views or items, or None."""
    if views < 2:
        return FEWER_THAN_2_VIEWS
    return FEWER_THAN_2_ITEMS if items < 2 else None


def _indices(query_id: str, side: str, orders: Sequence[Sequence[str]], index: dict[str, int]) -> Integers:
    rows = np.empty((len(orders), len(index)), np.int16)
    for view, order in enumerate(orders):
        places = [index.get(item, -1) for item in order]
        if len(places) != len(index) or len(set(places)) != len(index) or -1 in places:
            raise InvariError(
                f"query {query_id!r}, view {view}: the {side} is no permutation of the query's "
                f"{len(index)} candidates ({_faults(order, index)})"
            )
        rows[view] = places
    return rows


def _faults(order: Sequence[str], index: dict[str, int]) -> str:
    repeated = {item for item in order if order.count(item) > 1}
    faults = {"unknown": set(order) - set(index), "missing": set(index) - set(order), "repeated": repeated}
    named = [f"{what} {', '.join(map(repr, sorted(ids)[:5]))}" for what, ids in faults.items() if ids]
    return "; ".join(named) or "the first view repeats an id"


def _inverse(orders: Integers) -> Integers:
    places = np.empty_like(orders)
    along = np.broadcast_to(np.arange(orders.shape[-1], dtype=orders.dtype), orders.shape)
    np.put_along_axis(places, orders.astype(np.intp), along, -1)
    return places


def _tied(
    query_id: str, scores: Sequence[Sequence[float] | None], ranked: Integers, ranks: Integers
) -> Integers:
    if len(scores) != len(ranked):
        raise InvariError(f"query {query_id!r}: {len(scores)} score lists for {len(ranked)} views")
    tied = ranks.copy()
    for view, given in enumerate(scores):
        if given is None:
            continue
        values = np.asarray(given, np.float64)
        if values.shape != ranked[view].shape or not np.isfinite(values).all() or (np.diff(values) > 0).any():
            raise InvariError(
                f"query {query_id!r}, view {view}: scores must be finite, one an item, and fall with rank"
            )
        tied[view] = _shared_ranks(values, ranked[view])
    return tied


def _shared_ranks(ordered: Floats, order: Integers) -> Integers:
    """Ranks of the items *order* (..., K), whose scores *ordered* (..., K) fall; equal scores share one."""
    places = np.broadcast_to(np.arange(order.shape[-1], dtype=np.int16), order.shape).copy()
    places[..., 1:][ordered[..., 1:] == ordered[..., :-1]] = 0
    ranks = np.empty_like(places)
    np.put_along_axis(ranks, order.astype(np.intp), np.maximum.accumulate(places, axis=-1), -1)
    return ranks
