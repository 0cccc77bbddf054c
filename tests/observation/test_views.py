"""Views: which orders are drawn, for good, on every machine."""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
from collections import Counter
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_invari.errors import InvariError
from pytest_invari.observation.plan import Plan
from pytest_invari.observation.views import (
    CANONICAL,
    bank_views,
    described,
    is_bank_name,
    require_bank_orders,
    require_orders,
    sample_views,
    view_order,
)
from pytest_invari.protocol import Candidate, Context
from pytest_invari.protocol.seeding import shuffled
from pytest_invari.tasks.task import Task, TaskSet

SIX = tuple("abcdef")

SHOW = """
from pytest_invari.observation.views import sample_views
for view in sample_views("q1", tuple("abcdef"), 4):
    print(view.name, "".join(view.order))
"""


def drawn(query_id: str, count: int, seed: int = 0) -> list[str]:
    return ["".join(view.order) for view in sample_views(query_id, SIX, count, seed=seed)]


def test_orders_are_those_of_the_first_release() -> None:
    assert drawn("q1", 4) == ["edcfba", "fceabd", "abfecd", "becadf"]
    assert drawn("q2", 4) == ["baecfd", "cdebaf", "badecf", "abfedc"]
    assert drawn("q1", 2, seed=7) == ["aecbfd", "cebdaf"]
    assert "".join(shuffled("abcdef", "x", 1)) == "dbacef"
    assert sample_views("é😀", ("ü", "日本", "a b", ""), 1)[0].order == ("a b", "ü", "日本", "")


def test_orders_are_the_same_in_a_process_with_another_hash_seed() -> None:
    environment = os.environ | {"PYTHONHASHSEED": "4711"}
    shown = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, check=True)
    expected = [f"{view.name} {''.join(view.order)}" for view in sample_views("q1", SIX, 4)]
    assert shown.stdout.decode().split("\n")[:-1] == expected


def test_more_views_begin_with_the_fewer() -> None:
    assert drawn("q1", 12)[:5] == drawn("q1", 5)


def test_a_query_has_its_own_orders_whatever_other_queries_there_are() -> None:
    orders = {query: tuple(drawn(f"q{query}", 6)) for query in range(200)}
    assert len(set(orders.values())) == 200
    # Were two queries to share their draws, equal first orders would come more often than by chance.
    shared = Counter(first for first, *_ in orders.values()).most_common(1)[0][1]
    assert shared <= 5


def test_orders_do_not_depend_on_the_data_sets_own_order() -> None:
    assert shuffled("fedcba", "x", 1) == shuffled("abcdef", "x", 1)
    # Only the order that is never drawn differs.
    assert drawn("q1", 6) == ["".join(view.order) for view in sample_views("q1", SIX[::-1], 6)]


@given(
    st.sets(st.text(), min_size=1, max_size=5).map(sorted),
    st.text(),
    st.integers(0, 3),
    st.booleans(),
    st.integers(0, 119),
)
def test_views_are_distinct_orders_of_the_candidates(
    ids: list[str], query_id: str, seed: int, canonical: bool, count: int
) -> None:
    possible = math.factorial(len(ids)) - (not canonical)
    count = min(count, possible)
    views = sample_views(query_id, ids, count, seed=seed, include_canonical=canonical)
    orders = [view.order for view in views]
    assert len(set(orders)) == len({view.name for view in views}) == count
    assert all(sorted(order) == ids for order in orders)
    assert (tuple(ids) in orders) == (canonical and count > 0)
    if canonical and count:
        assert (views[0].name, views[0].order) == (CANONICAL, tuple(ids))


@pytest.mark.parametrize(("canonical", "possible"), [(True, 24), (False, 23)])
def test_every_order_can_be_drawn_and_no_more(canonical: bool, possible: int) -> None:
    views = sample_views("q", tuple("abcd"), possible, include_canonical=canonical)
    assert {view.order for view in views} | {tuple("abcd")} == set(permutations("abcd"))
    with pytest.raises(InvariError, match=rf"query 'q': {possible + 1} views .* only {possible} orders"):
        sample_views("q", tuple("abcd"), possible + 1, include_canonical=canonical)
    with pytest.raises(InvariError, match="ask for fewer views or longer lists"):
        require_orders("q", 4, possible + 1, include_canonical=canonical)


def test_a_list_that_lacks_one_order_may_show_its_own() -> None:
    with pytest.raises(
        InvariError, match=r"1 order besides the data set's own; show that one too \(include_can"
    ):
        sample_views("q", ("a", "b"), 2)
    with pytest.raises(InvariError, match=r"own; ask for fewer views or longer lists$"):
        sample_views("q", ("a", "b"), 3)
    assert len(sample_views("q", ("a", "b"), 2, include_canonical=True)) == 2


def test_a_list_of_one_has_no_order_but_its_own() -> None:
    with pytest.raises(InvariError, match="1 view asked for, but 1 candidate has only 0 orders"):
        sample_views("q", ("a",), 1)
    assert [view.order for view in sample_views("q", ("a",), 1, include_canonical=True)] == [("a",)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("seed0.9", "view 'seed0.9' (draw 9 of seed 0)"),
        ("seed12.0", "view 'seed12.0' (draw 0 of seed 12)"),
        ("canonical", "view 'canonical' (the data set's own order)"),
        ("seed0.9\n", "view 'seed0.9\\n'"),
        ("13", "view '13' (the order of seed 13)"),
        ("013", "view '013'"),
        ("mine", "view 'mine'"),
    ],
)
def test_a_view_is_described_by_how_it_was_drawn(name: str, words: str) -> None:
    assert described(name) == words


def test_the_description_is_how_the_view_is_drawn_again() -> None:
    drawn = {view.name: view.order for view in sample_views("q", tuple("abcd"), 5, seed=3)}
    assert drawn == {
        f"seed3.{draw}": shuffled("abcd", "view", 3, "q", draw)
        for draw in (int(name.removeprefix("seed3.")) for name in drawn)
    }


@pytest.mark.parametrize("seed", [0, 1])
def test_orders_are_uniform(seed: int) -> None:
    draws = 12_000
    counts = Counter(shuffled("abcd", "uniform", seed, draw) for draw in range(draws))
    expected = draws / 24
    chi_square = sum((counts[order] - expected) ** 2 / expected for order in permutations("abcd"))
    # 49.7 is the 99.9 % point of chi-square with 23 degrees of freedom.
    assert chi_square < 49.7
    # Too even would be as suspicious: 7.5 is the 0.1 % point.
    assert chi_square > 7.5


def test_first_views_of_many_queries_are_uniform_but_for_the_canonical_order() -> None:
    draws = 6_000
    counts = Counter(sample_views(f"query {query}", tuple("abc"), 1)[0].order for query in range(draws))
    assert tuple("abc") not in counts
    expected = draws / 5
    # 18.5 is the 99.9 % point of chi-square with 4 degrees of freedom.
    assert len(counts) == 5
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 18.5


# Banks

BANK = (CANONICAL, "13", "17", "19", "23", "29", "31", "41")
SEEDS = st.integers(0, 2**63 - 1).map(str)


def banked(query_id: str, *names: str) -> dict[str, str]:
    return {view.name: "".join(view.order) for view in bank_views(query_id, SIX, names)}


def test_orders_of_a_bank_are_those_of_the_first_release() -> None:
    assert banked("q1", *BANK[:4]) == {
        "canonical": "abcdef", "13": "bacefd", "17": "dbcefa", "19": "fbeadc",
    }  # fmt: skip
    assert banked("q2", "canonical", "13", "17") == {"canonical": "abcdef", "13": "dcabef", "17": "bfecda"}
    assert bank_views("é😀", ("ü", "日本", "a b"), ("0",))[0].order == ("日本", "a b", "ü")


def test_the_order_of_a_seed_is_that_of_its_hashes() -> None:
    def hashed(item: str) -> bytes:
        return hashlib.sha256(json.dumps(["bank", 13, "q1", item]).encode()).digest()

    assert banked("q1", "13")["13"] == "".join(sorted(SIX, key=hashed))


@given(st.lists(st.just(CANONICAL) | SEEDS, min_size=1, max_size=8, unique=True), st.randoms(), st.text())
def test_a_view_does_not_depend_on_the_others_of_its_bank(names: list[str], random: Any, query: str) -> None:
    whole = {view.name: view.order for view in bank_views(query, SIX, names)}
    few = random.sample(names, random.randint(1, len(names)))
    assert [(view.name, view.order) for view in bank_views(query, SIX, few)] == [
        (name, whole[name]) for name in few
    ]
    assert all(sorted(order) == list(SIX) for order in whole.values())


def test_seeds_do_not_depend_on_the_data_sets_own_order_and_canonical_is_it() -> None:
    turned = {view.name: view.order for view in bank_views("q1", SIX[::-1], BANK)}
    assert turned.pop(CANONICAL) == SIX[::-1]
    assert {name: "".join(order) for name, order in turned.items()} == banked("q1", *BANK[1:])


def test_orders_of_two_seeds_are_uniform_and_independent() -> None:
    pairs = Counter(
        tuple(view.order for view in bank_views(f"query {query}", tuple("abc"), ("13", "17")))
        for query in range(7_200)
    )
    # 69.3 is the 99.9 % point of chi-square with 35 degrees of freedom, 14.0 its 0.1 % point.
    assert len(pairs) == 36
    assert 14.0 < sum((count - 200) ** 2 / 200 for count in pairs.values()) < 69.3


@pytest.mark.parametrize(
    ("items", "views", "pairs"), [(7, 9, 36), (6, 4, 6), (5, 2, 1), (20, 100, 4950), (1, 1, 0)]
)
def test_a_bank_is_taken_where_orders_hardly_coincide(items: int, views: int, pairs: int) -> None:
    assert math.comb(views, 2) == pairs
    assert pairs / math.factorial(items) <= 0.01
    require_bank_orders(items, views)


@pytest.mark.parametrize(("items", "views", "pairs"), [(7, 11, 55), (6, 5, 10), (5, 3, 3), (2, 2, 1)])
def test_a_bank_is_refused_where_they_often_would(items: int, views: int, pairs: int) -> None:
    assert math.comb(views, 2) == pairs
    assert pairs / math.factorial(items) > 0.01
    with pytest.raises(
        InvariError, match=rf"^lists of {items} have .* orders, too few for a bank of {views} "
    ):
        require_bank_orders(items, views)
    with pytest.raises(InvariError, match="use longer lists or fewer views"):
        Plan("d", items, None, bank=tuple(map(str, range(views)))).sample(tasks_of(items))


def tasks_of(items: int) -> TaskSet:
    candidates = tuple(Candidate(f"i{number}", "x") for number in range(items))
    return TaskSet.of("d", [Task("q", Context("films"), candidates)])


def test_an_order_that_two_seeds_share_is_shown_under_both_names() -> None:
    by_order: dict[tuple[str, ...], list[str]] = {}
    for view in bank_views("q", tuple("abc"), [str(seed) for seed in range(20)]):
        by_order.setdefault(view.order, []).append(view.name)
    assert sum(len(names) for names in by_order.values()) == 20
    assert max(len(names) for names in by_order.values()) > 1


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("canonical", True), ("0", True), ("13", True), ("013", False), ("-1", False), ("", False),
     ("13\n", False), ("١٣", False), ("seed0.1", False), ("Canonical", False)],
)  # fmt: skip
def test_what_a_view_of_a_bank_may_be_called(name: str, is_one: bool) -> None:
    assert is_bank_name(name) == is_one


def test_views_sort_as_people_would() -> None:
    names = ["canonical", "0", "9", "13", "canonical.alone", "seed0.2", "seed0.10", "seed10.0"]
    assert sorted(set(names), key=view_order) == names


def test_a_plan_knows_where_its_roles_stand() -> None:
    plan = Plan("d", 20, None, bank=BANK, probe=(CANONICAL, "13"), target=("41", "23", "29"))
    assert (plan.views, plan.probe_places, plan.target_places) == (8, (0, 1), (7, 4, 5))
    assert [view.name for view in plan.sample(tasks_of(20))["q"]] == list(BANK)


@pytest.mark.parametrize(
    "wrong",
    [
        {"bank": BANK, "views": 4},
        {"bank": ("13", "13")},
        {"bank": ("thirteen", "13")},
        {"bank": BANK, "probe": ("12",)},
        {"views": 4, "target": ("13",)},
    ],
)
def test_a_plan_that_cannot_be_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"bank"):
        Plan("d", 20, None, **wrong)
