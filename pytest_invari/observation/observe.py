"""Observation: show every view of every task to a reranker and keep what comes back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from pytest_invari.errors import InvariError, counted
from pytest_invari.observation.observation import Observation, ObservationKey
from pytest_invari.observation.views import described
from pytest_invari.progress import bar
from pytest_invari.protocol import Ranking, Request, Reranker, rank_all, seeded_hash
from pytest_invari.protocol.capabilities import batch_size_of, calls_of
from pytest_invari.text import HIDDEN, is_secret_name, without_secrets

if TYPE_CHECKING:
    from pytest_invari.observation.views import View
    from pytest_invari.tasks.task import Task, TaskSet


DEFAULT_BATCH = 64
# When the process is killed, the batch under way is lost and at most this much work before it; less
# when writing is quick, since it may take a tenth of the time.
SECONDS_BETWEEN_WRITES = 2.0
WORK_PER_WRITE = 10.0


class Store(Protocol):
    """Where observations are kept, so that a run goes on from what is there."""

    def read(self) -> Mapping[ObservationKey, Observation]:
        """All that is kept, by query and view."""

    def append(self, observations: Sequence[Observation]) -> None:
        """Keep these for good."""

    def compact(self) -> None:
        """Tidy up; no observation is lost."""


def observe(
    reranker: Reranker,
    tasks: TaskSet,
    views: Mapping[str, Sequence[View]],
    store: Store | None = None,
    *,
    description: str = "",
    retry_failed: bool = False,
    show: bool | None = None,
    batch_size: int | None = None,
) -> list[Observation]:
    """Rank every view that *store* does not hold yet.

    The reranker gets batches of its ``batch_requests`` (64 when it only has ``rank_many``, else 1), the
    views of a query after one another. Whatever interrupts the run, finished batches are in the store.

    Args:
        reranker: what is observed; its exceptions become failed rankings.
        tasks: the queries.
        views: of each query, by its id.
        store: read first and written to; rankings that failed are kept as well, but for those whose failure
            says nothing about the request.
        description: what the progress bar calls it.
        retry_failed: rank again what the store holds as failed.
        show: as in :func:`pytest_invari.progress.bar`.
        batch_size: how many requests the reranker gets at once, whatever it wants.

    Returns:
        One observation a view, in the order of the tasks and of their views.

    Raises:
        InvariError: the store holds a view in another order than the one asked for.
    """
    kept: dict[ObservationKey, Observation] = {}
    if store is not None:
        kept = {key: seen for key, seen in store.read().items() if not is_due(seen, retry_failed)}
        _require_same_orders(kept.values(), views)
    wanted = [(task, view) for task in tasks.tasks for view in views[task.query_id]]
    keys = [(task.query_id, view.name) for task, view in wanted]
    missing = [each for key, each in zip(keys, wanted, strict=True) if key not in kept]
    each, unit = _steps(reranker, missing)
    size = batch_size or _batch_size(reranker)
    done = 0
    with (
        nullcontext() if store is None else _noted_when_interrupted(kept, keys, description),
        _keeping(store) as buffer,
        bar(each * len(missing), description, unit=unit, show=show) as progress,
    ):
        for batch in _batches(missing, size):
            started = time.perf_counter()
            rankings = rank_all(reranker, [request_for(task, view) for task, view in batch])
            share = (time.perf_counter() - started) / len(batch)
            timed = any(ranking.cost.seconds for ranking in rankings)
            for (task, view), ranking in zip(batch, rankings, strict=True):
                ranking = _storable(ranking if timed else _with_seconds(ranking, share))
                seen = Observation(task.query_id, view.name, view.order, ranking)
                kept[seen.key] = seen
                buffer.add(seen)
            buffer.write_when_due()
            done += len(batch)
            progress.advance_to(done * each)
    return [kept[key] for key in keys]


def stored(
    kept: Mapping[ObservationKey, Observation],
    tasks: TaskSet,
    views: Mapping[str, Sequence[View]],
    where: str,
) -> list[Observation]:
    """The observations of every view from a store, without any reranker; *where* names it in errors.

    Raises:
        InvariError: a view is missing, or is kept in another order than the one asked for.
    """
    wanted = [(task.query_id, view.name) for task in tasks.tasks for view in views[task.query_id]]
    missing = [key for key in wanted if key not in kept]
    if missing:
        query_id, view_name = missing[0]
        raise InvariError(
            f"{where}: lacks {len(missing)} of {len(wanted)} views, the first of query {query_id!r}, "
            f"{described(view_name)}; run once without --invari-replay to rank them"
        )
    _require_same_orders((kept[key] for key in wanted), views)
    return [kept[key] for key in wanted]


def in_recorded_orders(
    views: Mapping[str, Sequence[View]], kept: Mapping[ObservationKey, Observation]
) -> Mapping[str, list[View]]:
    """The same views in the orders in which a store holds them; one that it lacks stays as it is."""
    return {
        query_id: [
            replace(view, order=kept[query_id, view.name].shown) if (query_id, view.name) in kept else view
            for view in drawn
        ]
        for query_id, drawn in views.items()
    }


def is_due(seen: Observation, retry_failed: bool) -> bool:
    """Whether a kept view is ranked again all the same."""
    return seen.ranking.is_transient or (retry_failed and seen.ranking.status == "failed")


def request_for(task: Task, view: View) -> Request:
    """What the reranker is given: context and candidates in the view's order, and nothing else of the task.

    The request's ``view`` is a digest of the order, because the view's name would tell which one is the
    data set's own.
    """
    by_id = {candidate.id: candidate for candidate in task.candidates}
    name = seeded_hash("shown", *view.order).hex()[:12]
    return Request(task.query_id, task.context, tuple(by_id[item] for item in view.order), name)


class _Buffer:
    """Observations that are not in the store yet."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._rows: list[Observation] = []
        self._written = time.monotonic()
        self._pause = 0.0

    def add(self, seen: Observation) -> None:
        if self._store is not None:
            self._rows.append(seen)

    def write_when_due(self) -> None:
        if time.monotonic() - self._written >= self._pause:
            self.write()

    def write(self) -> None:
        started = time.monotonic()
        if self._store is not None and self._rows:
            self._store.append(self._rows)
        self._rows = []
        self._written = time.monotonic()
        self._pause = min(SECONDS_BETWEEN_WRITES, WORK_PER_WRITE * (self._written - started))


@contextmanager
def _keeping(store: Store | None) -> Iterator[_Buffer]:
    buffer = _Buffer(store)
    try:
        yield buffer
    finally:
        buffer.write()
    if store is not None:
        store.compact()


@contextmanager
def _noted_when_interrupted(
    kept: Mapping[ObservationKey, Observation], keys: Sequence[ObservationKey], what: str
) -> Iterator[None]:
    """Let the interruption itself carry how far it was; whoever tells the user knows where that is kept."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        done = sum(key in kept for key in keys)
        stopped.add_note(f"{done} of {counted(len(keys), 'ranking')} by {what} are kept")
        raise


def _steps(reranker: Reranker, missing: Sequence[tuple[Task, View]]) -> tuple[int, str]:
    """How many steps of the progress bar a view takes, and their unit."""
    calls = calls_of(reranker, len(missing[0][1].order), default=0) if missing else 0
    return (calls, "call") if calls > 0 else (1, "view")


def _batch_size(reranker: Reranker) -> int:
    return batch_size_of(reranker, DEFAULT_BATCH if hasattr(reranker, "rank_many") else 1)


def _batches(items: Iterable[tuple[Task, View]], size: int) -> Iterator[list[tuple[Task, View]]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _require_same_orders(kept: Iterable[Observation], views: Mapping[str, Sequence[View]]) -> None:
    orders = {(query_id, view.name): view.order for query_id, drawn in views.items() for view in drawn}
    for seen in kept:
        if orders.get(seen.key, seen.shown) != seen.shown:
            raise InvariError(
                f"records: query {seen.query_id!r}, {described(seen.view)} was shown in another order than "
                "this version draws; keep these records elsewhere and start new ones"
            )


def _with_seconds(ranking: Ranking, seconds: float) -> Ranking:
    return replace(ranking, cost=replace(ranking.cost, seconds=seconds))


def _storable(ranking: Ranking) -> Ranking:
    """The same ranking with diagnostics that JSON can hold, and without secrets."""
    return (
        replace(ranking, diagnostics=_plain_mapping(ranking.diagnostics)) if ranking.diagnostics else ranking
    )


def _plain_mapping(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): HIDDEN if is_secret_name(str(key)) else _plain(value) for key, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return without_secrets(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        # JSON has no word for these.
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, Mapping):
        return _plain_mapping(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):  # an array or a number of NumPy or torch
        return _plain(value.tolist())
    return without_secrets(str(value))
