"""From ratings to reranking tasks: split, first stage, the queries that are kept, and their cached copy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from pytest_invari.cache import cache_dir, file_hash
from pytest_invari.data.taskfile import read_tasks, write_tasks
from pytest_invari.data.tasks import Task, TaskSet
from pytest_invari.datasets import first_stage, split
from pytest_invari.errors import InvariError
from pytest_invari.protocol import Candidate, Context, HistoryEntry, seeded_hash

__all__ = ["Preparation", "cached_tasks", "prepare_tasks"]

# Users are scored in blocks of this size: for 200,000 users a block's scores take 100 MB.
BLOCK = 64


@dataclass(frozen=True, slots=True)
class Preparation:
    """How tasks are made from ratings.

    ``k``: candidates in a list. ``queries``: how many users, None for all that are kept. ``history``: how
    many of the most recent interactions before the held-out part stand in the context. ``liked_only``:
    only those with a positive rating. ``minimum``: how many ratings a user must have.
    """

    k: int
    queries: int | None = None
    history: int = 20
    liked_only: bool = False
    minimum: int = 10

    def __post_init__(self) -> None:
        for name in ("k", "queries", "history", "minimum"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvariError(f"data set: {name} is {value}; it must be at least 1")


def prepare_tasks(
    name: str, ratings: split.Ratings, texts: Mapping[int, str], how: Preparation, description: str = ""
) -> TaskSet:
    """Make one task for each user whose first-stage list holds a held-out positive.

    The candidates are the first stage's K best items that the user had not rated before the held-out
    part; positives are never put in. Users come in the order of a hash of their id, which knows nothing
    of the outcome, and the first ``how.queries`` of those kept are taken. Of the items in a list, the
    held-out positives have grade 1; ``relevant_total`` counts all held-out positives; the groups are
    ``head`` and ``tail`` (see ``ItemCosine.head``).

    Raises:
        InvariError: no user is kept.
    """
    cut = split.split_by_time(ratings, how.minimum)
    stage = first_stage.ItemCosine(cut)
    head = stage.head()
    tasks: list[Task] = []
    scored = 0
    for user, found in _lists(cut, stage, how):
        positives = cut.held_out_positives(user)
        relevant = np.intersect1d(found, positives)
        scored += 1
        if len(relevant) == 0:
            continue
        history = cut.history(user, how.history, how.liked_only)
        tasks.append(
            Task(
                str(cut.users[user]),
                Context(
                    "", tuple(HistoryEntry(texts[int(cut.items[item])], rating) for item, rating in history)
                ),
                tuple(Candidate(str(cut.items[item]), texts[int(cut.items[item])]) for item in found),
                {str(cut.items[item]): 1.0 for item in relevant},
                len(positives),
                {str(cut.items[item]): "head" if head[item] else "tail" for item in found},
            )
        )
        if len(tasks) == how.queries:
            break
    if not tasks:
        raise InvariError(
            f"data set {name!r}: no user has a held-out positive among {how.k} unseen "
            f"first-stage candidates; it has {len(cut.users)} users and {len(cut.items)} items"
        )
    kept = f"{len(tasks)} queries kept of {scored} users with held-out positives and {how.k} unseen items"
    return TaskSet.of(name, tasks, f"{description}; {kept}" if description else kept)


def cached_tasks(name: str, data_hash: str, how: Preparation, make: Callable[[], TaskSet]) -> TaskSet:
    """Return the prepared tasks from the cache, or make them and keep them there as a task file.

    The file is found by the data's hash, the parameters and the code that prepares them, so it cannot
    be stale; one that cannot be read is made again.
    """
    key = {"data": data_hash, "how": asdict(how), "code": _code_hash()}
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    path = cache_dir() / "tasks" / f"{name}-K{how.k}-{digest}.parquet"
    if path.exists():
        try:
            return read_tasks(path, name)
        except InvariError:
            path.unlink(missing_ok=True)
    tasks = make()
    write_tasks(path, tasks)
    return tasks


def _lists(
    cut: split.Split, stage: first_stage.ItemCosine, how: Preparation
) -> Iterator[tuple[int, np.typing.NDArray[np.int64]]]:
    """Each eligible user with a full first-stage list, in hash order, scored a block at a time."""
    order = sorted(range(len(cut.users)), key=lambda user: seeded_hash("query", int(cut.users[user])))
    eligible = (
        user for user in order if len(cut.held_out_positives(user)) and cut.history(user, 1, how.liked_only)
    )
    while block := list(islice(eligible, BLOCK)):
        for user, found in zip(block, stage.top(np.array(block), how.k), strict=True):
            if len(found) == how.k:
                yield user, found


def _code_hash() -> str:
    # Every module of this folder, so that a loader's own code counts as well.
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256("".join(map(file_hash, files)).encode()).hexdigest()
