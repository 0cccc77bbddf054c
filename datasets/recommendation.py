"""From ratings to reranking tasks: split, first stage, candidate lists, and the cached copy of the tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pytest_invari.cache import cache_dir, file_hash
from pytest_invari.datasets import candidates, first_stage, split
from pytest_invari.errors import InvariError
from pytest_invari.protocol import Candidate, Context, HistoryEntry, seeded_hash
from pytest_invari.tasks.task import Stratum, Task, TaskSet
from pytest_invari.tasks.taskfile import read_tasks, write_tasks

# Users are scored in blocks of this size: for 200,000 users a block's scores take 100 MB.
BLOCK = 64

# What a user must have for a list of each stratum, in words.
LISTS: Mapping[Stratum, str] = {
    "": "a held-out positive among {k} unseen first-stage candidates",
    "controlled": "held-out positives of both head and tail and {k} unseen items to make a list of",
    "untouched": "a history and {k} unseen items",
}


@dataclass(frozen=True, slots=True)
class Preparation:
    """How tasks are made from ratings.

    ``k``: candidates in a list. ``queries``: how many users, None for all that are kept. ``history``: how
    many of the most recent interactions before the held-out part stand in the context. ``liked_only``:
    only those with a positive rating. ``stratum``: by which rule of ``candidates`` lists are made.
    ``minimum``: how many ratings a user must have.
    """

    k: int
    queries: int | None = None
    history: int = 20
    liked_only: bool = False
    stratum: Stratum = ""
    minimum: int = 10

    def __post_init__(self) -> None:
        for name in ("k", "queries", "history", "minimum"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvariError(f"data set: {name} is {value}; it must be at least 1")
        if self.stratum == "controlled" and self.k < candidates.LEAST_CONTROLLED:
            raise InvariError(
                f"data set: k is {self.k}; a controlled list has at least {candidates.LEAST_CONTROLLED} "
                "candidates, because up to half of them are put in, of head and of tail"
            )

    @property
    def most(self) -> int | None:
        """How many queries are taken at most, None for all."""
        if self.stratum != "untouched":
            return self.queries
        return min(self.queries or candidates.UNTOUCHED_USERS, candidates.UNTOUCHED_USERS)


def prepare_tasks(
    name: str, ratings: split.Ratings, texts: Mapping[int, str], how: Preparation, description: str = ""
) -> TaskSet:
    """Make one task for each user who has a list of the stratum (see ``candidates``).

    Users come in the order of a hash of their id, another for each stratum, which knows nothing of the
    outcome; of those with a list the first ``how.most`` are taken. Of the items in a list, the held-out
    positives have grade 1; ``relevant_total`` counts all held-out positives; the groups are ``head`` and
    ``tail`` (see ``ItemCosine.head``). An untouched list is made whether or not the user has any held-out
    positive.

    Raises:
        InvariError: no user has a list.
    """
    cut = split.split_by_time(ratings, how.minimum)
    stage = first_stage.ItemCosine(cut)
    head = stage.head()
    tasks: list[Task] = []
    looked_at = 0
    for user, ranked in _ranked(cut, stage, how):
        looked_at += 1
        found = _list(cut, user, ranked, head, how)
        if found is not None:
            tasks.append(_task(cut, user, found, head, texts, how))
            if len(tasks) == how.most:
                break
    has = LISTS[how.stratum].format(k=how.k)
    if not tasks:
        raise InvariError(
            f"data set {name!r}: no user has {has}; it has {len(cut.users)} users and {len(cut.items)} items"
        )
    kept = f"{len(tasks)} queries, each with {has}, of {looked_at} users looked at"
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


def _ranked(
    cut: split.Split, stage: first_stage.ItemCosine, how: Preparation
) -> Iterator[tuple[int, candidates.Items]]:
    """Each user who can have a list, with the unseen items, in hash order, scored a block at a time."""
    salt = how.stratum or "query"
    order = sorted(range(len(cut.users)), key=lambda user: seeded_hash(salt, int(cut.users[user])))
    # Held-out ratings may not decide who is among the untouched.
    blind = how.stratum == "untouched"
    eligible = (
        user
        for user in order
        if cut.history(user, 1, how.liked_only) and (blind or len(cut.held_out_positives(user)))
    )
    while block := list(islice(eligible, BLOCK)):
        yield from zip(block, stage.ranked(np.array(block)), strict=True)


def _list(
    cut: split.Split, user: int, ranked: candidates.Items, head: npt.NDArray[np.bool_], how: Preparation
) -> candidates.Items | None:
    match how.stratum:
        case "untouched":
            return candidates.untouched(ranked, how.k)
        case "controlled":
            return candidates.controlled(ranked, _drawn_positives(cut, user), head, how.k)
        case _:
            return candidates.with_a_positive(ranked, cut.held_out_positives(user), how.k)


def _drawn_positives(cut: split.Split, user: int) -> candidates.Items:
    """The held-out positives of a user in the order of a hash of user and item."""
    who = int(cut.users[user])
    items = cut.held_out_positives(user)
    return np.array(sorted(items, key=lambda item: seeded_hash("controlled", who, int(cut.items[item]))))


def _task(
    cut: split.Split,
    user: int,
    found: candidates.Items,
    head: npt.NDArray[np.bool_],
    texts: Mapping[int, str],
    how: Preparation,
) -> Task:
    ids = [int(item) for item in cut.items[found]]
    positives = cut.held_out_positives(user)
    history = cut.history(user, how.history, how.liked_only)
    return Task(
        str(cut.users[user]),
        Context("", tuple(HistoryEntry(texts[int(cut.items[item])], rating) for item, rating in history)),
        tuple(Candidate(str(item), texts[item]) for item in ids),
        {str(cut.items[item]): 1.0 for item in np.intersect1d(found, positives)},
        len(positives),
        {str(item): "head" if is_head else "tail" for item, is_head in zip(ids, head[found], strict=True)},
        how.stratum,
    )


def _code_hash() -> str:
    # Every module of this folder, so that a loader's own code counts as well.
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256("".join(map(file_hash, files)).encode()).hexdigest()
