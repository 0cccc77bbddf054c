"""The assertion of permutation invariance, the witness that it shows, and the strategies."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import find, given, settings

from pytest_invari.protocol import Ranking, Request
from pytest_invari.tasks.task import task_row
from pytest_invari.tasks.taskfile import write_tasks
from pytest_invari.tasks.taskrow import parse_task
from pytest_invari.testing import (
    Candidate,
    Context,
    HistoryEntry,
    InvariError,
    OrderDependentError,
    Task,
    TaskSet,
    assert_permutation_invariant,
    strategies,
)


def longest(context: str, texts: Sequence[str]) -> list[float]:
    return [float(len(text)) for text in texts]


def front(context: str, texts: Sequence[str]) -> list[float]:
    """Adds more for the first place than any text is long."""
    return [len(text) + (1000.0 if place == 0 else 0.0) for place, text in enumerate(texts)]


def crowded(context: str, texts: Sequence[str]) -> list[float]:
    """The same, but only where there are four or more."""
    return front(context, texts) if len(texts) > 3 else longest(context, texts)


def task(texts: Sequence[str], query_id: str = "q") -> Task:
    candidates = tuple(Candidate(f"i{number}", text) for number, text in enumerate(texts))
    return Task(query_id, Context("films"), candidates)


FILMS = task(["x" * length for length in (3, 1, 4, 15, 9, 2, 6)])


def shown(reranker: object, tasks: list[Task], max_calls: int = 1000) -> OrderDependentError:
    with pytest.raises(OrderDependentError) as caught:
        assert_permutation_invariant(reranker, tasks, max_calls=max_calls)
    return caught.value


def run_the_line(error: OrderDependentError, name: str, reranker: object) -> OrderDependentError:
    """What the line of Python in the message raises."""
    [line] = re.findall(r"to see it again: (.*)", str(error))
    with pytest.raises(OrderDependentError) as caught:
        exec(line, {name: reranker})
    return caught.value


def test_an_invariant_reranker_passes() -> None:
    assert_permutation_invariant(longest, [FILMS])
    assert_permutation_invariant("constant", [FILMS])


def test_two_candidates_are_shown_where_two_suffice() -> None:
    error = shown(front, [FILMS])
    assert len(error.witness.orders[0]) == 2
    one, other = error.witness.orders
    first, second = error.witness.rankings
    assert str(error).splitlines()[0] == (
        f"query 'q': 2 candidates in two orders that differ at 2 positions, and only one ranking has "
        f"{first[0]!r} above {first[1]!r}"
    )
    assert f"  {list(one)} is ranked {list(first)}" in str(error)
    assert f"  {list(other)} is ranked {list(second)}" in str(error)
    again = run_the_line(error, "front", front)
    assert set(again.witness.orders) == set(error.witness.orders)


def test_no_shorter_list_than_the_shown_one_depends_on_the_order() -> None:
    error = shown(crowded, [FILMS])
    assert len(error.witness.orders[0]) == 4
    assert error.witness.moved == 2
    assert "every shorter list is ranked alike in all its orders" in str(error)
    assert set(run_the_line(error, "crowded", crowded).witness.orders[0]) == set(error.witness.orders[0])


def test_the_calls_are_counted_and_bounded() -> None:
    calls = []

    def counted(context: str, texts: Sequence[str]) -> list[float]:
        calls.append(texts)
        return crowded(context, texts)

    for most in (11, 20, 40, 300):
        calls.clear()
        shown(counted, [FILMS], max_calls=most)
        assert len(calls) <= most
    with pytest.raises(
        InvariError, match="the orders of 1 list and the search for a witness take at least 11"
    ):
        assert_permutation_invariant(counted, [FILMS], max_calls=10)


def test_every_order_of_a_short_list_is_asked_for_once() -> None:
    calls = []

    def counted(context: str, texts: Sequence[str]) -> list[float]:
        calls.append(tuple(texts))
        return longest(context, texts)

    assert_permutation_invariant(counted, [task(["a", "bb", "ccc"])])
    assert sorted(calls) == sorted(permutations(["a", "bb", "ccc"]))


def test_the_orders_of_a_list_are_one_batch() -> None:
    class Ranker:
        batches: list[int] = []  # noqa: RUF012

        def rank(self, request: Request) -> Ranking:
            raise AssertionError("not one by one")

        def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
            self.batches.append(len(requests))
            return [Ranking.from_order(each, sorted(each.ids)) for each in requests]

    assert_permutation_invariant(Ranker(), [FILMS, task("ab", "r")], views=5)
    assert Ranker.batches == [5, 2]


def test_an_object_is_a_reranker_too_and_history_and_meta_stand_in_the_line() -> None:
    class Ranker:
        def rank(self, request: Request) -> Ranking:
            assert all(candidate.meta["year"] for candidate in request.candidates)
            assert request.context.history
            return Ranking.from_order(request, request.ids)

    candidates = tuple(Candidate(item, item.upper(), {"year": 1977}) for item in "ab")
    made = Task("q", Context("", (HistoryEntry("Alien", 4.5), HistoryEntry("Heat"))), candidates)
    error = shown(Ranker(), [made])
    assert run_the_line(error, "reranker", Ranker()).witness == error.witness


def test_titles_cannot_command_a_terminal() -> None:
    error = shown(front, [task(["\x1b[2J\u202e", "b\nc"])])
    assert "\x1b" not in str(error)
    assert "\u202e" not in str(error)
    assert run_the_line(error, "front", front).witness.orders == error.witness.orders


def test_what_does_not_repeat_is_told_from_an_effect_of_order() -> None:
    generator = random.Random(3)

    def noisy(context: str, texts: Sequence[str]) -> list[float]:
        return [generator.random() for _ in texts]

    error = shown(noisy, [FILMS])
    assert error.witness.is_noise
    assert "the same order is ranked in two ways" in str(error)
    assert "to see it again" not in str(error)


def test_tasks_come_from_files_and_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lists = TaskSet.of("films", [FILMS, task(["a", "bb", "ccc"], "r")])
    write_tasks("films.jsonl", lists)
    for given_tasks in ("films.jsonl", Path("films.jsonl"), tmp_path / "films.jsonl", lists):
        assert_permutation_invariant(longest, given_tasks)
        with pytest.raises(OrderDependentError) as caught:
            assert_permutation_invariant(crowded, given_tasks)
        assert len(caught.value.witness.orders[0]) == 4
        # The lists of three are too short to depend on the order.
        assert_permutation_invariant(crowded, given_tasks, k=3)
    seen: set[str] = set()

    def remember(context: str, texts: Sequence[str]) -> list[float]:
        seen.update(texts)
        return longest(context, texts)

    assert_permutation_invariant(remember, "films.jsonl", queries=1)
    assert seen == {candidate.text for candidate in FILMS.candidates}
    with pytest.raises(OrderDependentError):
        assert_permutation_invariant(front, "movielens_small", k=4, queries=2)


def test_a_failed_ranking_and_nothing_to_rank_fail() -> None:
    def broken(context: str, texts: Sequence[str]) -> list[float]:
        raise ValueError("no such\nindex")

    with pytest.raises(AssertionError, match=r"no ranking of query 'q' in order \['i0', .*: .*no such index"):
        assert_permutation_invariant(broken, [FILMS])
    for tasks in ([], [task(["alone"])]):
        with pytest.raises(AssertionError, match="nothing measured: no list has two candidates"):
            assert_permutation_invariant(longest, tasks)


def test_mistakes_are_refused() -> None:
    for reranker, given_tasks, keywords, said in (
        (3, [FILMS], {}, "neither a reranker nor a function"),
        ("no_such", [FILMS], {}, "unknown reranker 'no_such'"),
        (longest, [3], {}, "tasks are a path"),
        (longest, [Task("q", Context(), (Candidate("a", ""),) * 2)], {}, "has a candidate twice"),
        (longest, "missing.jsonl", {}, "there is no such file"),
        (longest, "movielens_smal", {}, "unknown data set 'movielens_smal'"),
        (longest, "movielens_small", {}, "say how long its lists shall be"),
        (longest, [FILMS], {"k": 8}, "fewer than the 8 asked for"),
        (longest, [FILMS], {"k": "3"}, "k must be a whole number"),
        (longest, [FILMS], {"queries": 0}, "queries must be .* at least 1, not 0"),
        (longest, [FILMS], {"views": 1}, "1 view asked for"),
        (longest, [FILMS], {"orders": [["i0", "i1"]]}, "is no order of any of the lists"),
        (longest, [FILMS], {"orders": [["i0"] * 7]}, "is no order of any of the lists"),
    ):
        with pytest.raises(InvariError, match=said):
            assert_permutation_invariant(reranker, given_tasks, **keywords)  # type: ignore[arg-type]


@settings(max_examples=30, deadline=None)
@given(tasks=strategies.tasks(max_candidates=5, max_tasks=3))
def test_drawn_tasks_have_distinct_ids_and_texts(tasks: list[Task]) -> None:
    assert 1 <= len(tasks) <= 3
    assert len({each.query_id for each in tasks}) == len(tasks)
    for each in tasks:
        texts = [candidate.text for candidate in each.candidates]
        assert 2 <= len(set(each.ids)) == len(each.ids) == len(set(texts)) <= 5
        assert set(each.relevance) <= set(each.ids)
        assert parse_task(task_row(each), "drawn") == each
    assert_permutation_invariant(longest, tasks)


def test_drawn_tasks_find_what_depends_on_the_order_and_relevance_is_drawn() -> None:
    def is_order_dependent(tasks: list[Task]) -> bool:
        try:
            assert_permutation_invariant(crowded, tasks)
        except OrderDependentError:
            return True
        return False

    few = settings(max_examples=50, deadline=None, derandomize=True, database=None)
    [smallest] = find(strategies.tasks(max_candidates=6), is_order_dependent, settings=few)
    assert len(smallest.candidates) == 4
    [some] = find(strategies.tasks(), lambda tasks: bool(tasks[0].relevance), settings=few)
    assert some.relevant_total == len(some.relevance) == 1


def test_strategies_say_what_is_missing_and_what_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvariError, match="tasks of 7 to 6 candidates"):
        strategies.tasks(min_candidates=7)
    with pytest.raises(
        InvariError, match=r"max_candidates = 1: lists have at least 2 .* or min_candidates=1"
    ):
        strategies.tasks(max_candidates=1)
    strategies.tasks(min_candidates=1, max_candidates=1)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(InvariError, match="strategies need Hypothesis: pip install"):
        strategies.tasks()
