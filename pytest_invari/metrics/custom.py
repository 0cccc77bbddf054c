"""Metrics of the users' own: what they declare, and the arrays that their functions are given.

It needs no array library, since hooks name metrics before anything is measured.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, get_args

from pytest_invari.errors import InvariError
from pytest_invari.metrics.catalog import built_in_metrics
from pytest_invari.metrics.metric import OWN_NAME, Direction, Metric, OwnMetric
from pytest_invari.protocol.usercode import refuse_async, shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


HOOK = "hook pytest_invari_metrics"

UNDEFINED_BY_METRIC = "undefined_by_metric"


@dataclass(frozen=True, eq=False)
class RankedLists:
    """The ranked lists of n queries that have equally many views, M, of K items each.

    The arrays are copies: a function may change them. Item i of a query is ``ids[query][i]`` on the last axis
    of every array; the ids are sorted by code point.

    Args:
        query_ids: (n,) whose lists these are.
        ids: (n, K) the items.
        positions: int64 (n, M, K), the 0-based place of item i in the input of view t.
        ranks: int64 (n, M, K), its 0-based place in the output, 0 is best. Under ``ties = "half"`` items with
            equal scores share the best of their places; otherwise each place is there once.
        relevance: float64 (n, K), the grades; above 0 is relevant.
        relevant_total: int64 (n,), how many relevant items the query has, among these candidates or not.
        groups: (n, K) the group that each item is of, or None.
        k: the number after "@" of a metric that has one, otherwise None.
    """

    query_ids: tuple[str, ...]
    ids: tuple[tuple[str, ...], ...]
    positions: NDArray[np.int64]
    ranks: NDArray[np.int64]
    relevance: NDArray[np.float64]
    relevant_total: NDArray[np.int64]
    groups: tuple[tuple[str | None, ...], ...]
    k: int | None = None


@dataclass(frozen=True)
class CustomMetric:
    """A metric of a user's own, for the hook ``pytest_invari_metrics``.

    Its values are averaged over queries without weights, with the intervals of the built-in metrics.

    Args:
        function: takes :class:`RankedLists` of n queries and returns n numbers, one a query; NaN where
            a query has no value. It is called for some queries at a time, and each query's number must
            come from its own lists alone.
        direction: which is better, ``lower`` or ``higher``.
        low: no value lies below; ``-math.inf`` where nothing bounds them. Bounds in suites are checked
            against this range, and intervals of events that were never seen are drawn from it.
        high: no value lies above.
        description: what it is, in a line.
        has_cutoff: whether suites write ``NAME@k``, the length of a top that ``lists.k`` then is.
        version: what a stored baseline knows the function by. Without it, that is the function's name and
            the whole file that it stands in.

    Raises:
        TypeError: an argument is of another type, or the function does not take one argument.
        ValueError: an argument is none of the possible ones.
    """

    function: Callable[[RankedLists], Any]
    _: KW_ONLY
    direction: Direction
    low: float
    high: float
    description: str
    has_cutoff: bool = False
    version: str = ""

    def __post_init__(self) -> None:
        _require_function(self.function)
        if self.direction not in get_args(Direction):
            choices = " or ".join(map(repr, get_args(Direction)))
            raise ValueError(f"direction must be {choices}, not {shortened(self.direction)}")
        for name in ("low", "high"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
                raise TypeError(f"{name} must be a number, not {shortened(value)}")
        if not self.low < self.high:
            raise ValueError(f"low must be below high, and {self.low:g} is not below {self.high:g}")
        if not isinstance(self.description, str) or not self.description.strip():
            raise ValueError(f"description must say what the metric is, not {shortened(self.description)}")
        if not isinstance(self.has_cutoff, bool):
            raise TypeError(f"has_cutoff must be True or False, not {shortened(self.has_cutoff)}")
        if not isinstance(self.version, str):
            raise TypeError(f"version must be text, not {shortened(self.version)}")


def own_metrics(named: Mapping[str, object]) -> dict[str, Metric]:
    """What the hook names, as the catalogue holds it.

    Raises:
        InvariError: a name is none, or is that of a built-in metric; or it does not stand for a
            :class:`CustomMetric`.
    """
    return {name: _metric(name, value) for name, value in named.items()}


def _metric(name: str, value: object) -> OwnMetric:
    if not isinstance(name, str) or not re.fullmatch(OWN_NAME, name):
        raise InvariError(
            f"{HOOK}: {shortened(name)} is no name of a metric; a name has lower-case letters, digits and _, "
            "a letter first"
        )
    if name in built_in_metrics():
        raise InvariError(f"{HOOK}: {name!r} is a built-in metric; give yours another name")
    if not isinstance(value, CustomMetric):
        raise InvariError(f"{HOOK}: {name!r} must be a CustomMetric, not {shortened(value)}")
    return OwnMetric(
        family=name,
        description=value.description,
        direction=value.direction,
        low=float(value.low),
        high=float(value.high),
        source=HOOK,
        reasons={UNDEFINED_BY_METRIC: "the metric itself gives none"},
        has_cutoff=value.has_cutoff,
        function=value.function,
        version=value.version,
    )


def _require_function(function: object) -> None:
    if not callable(function):
        raise TypeError(f"function must be a function of the lists, not {shortened(function)}")
    try:
        refuse_async(function, "function")
    except InvariError as error:
        raise TypeError(str(error)) from None
    try:
        signature = inspect.signature(function)
    except ValueError:
        # Some built-in functions do not tell their parameters.
        return
    try:
        signature.bind(None)
    except TypeError:
        raise TypeError(f"function must take one argument, the lists, and not {signature}") from None
