"""The memory around a base: identical requests reach the model once, and the method's cost is the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_invari.progress import bar
from pytest_invari.protocol import Candidate, Context, Cost, HistoryEntry, Ranking, Request
from pytest_invari.registry.memo import Memo


class Counting:
    """Ranks by id, remembers what it was asked, and costs ten tokens a candidate."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.batches = 0

    def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        self.batches += 1
        self.asked += requests
        return [self._rank(request) for request in requests]

    def rank(self, request: Request) -> Ranking:
        return self.rank_many([request])[0]

    def _rank(self, request: Request) -> Ranking:
        size = len(request.candidates)
        cost = Cost(1, 1, tokens_in=10 * size, tokens_cached=size, tokens_out=2, seconds=0.5)
        return Ranking.from_order(request, sorted(request.ids), cost=cost)


def request(ids: str, query: str = "q", context: Context | None = None, view: str = "") -> Request:
    return Request(query, context or Context("text"), tuple(Candidate(i, f"film {i}") for i in ids), view)


def test_identical_requests_are_computed_once_and_counted_in_full() -> None:
    base = Counting()
    memo = Memo(base)
    first, repeated, other = memo.rank_many([request("ba", view="1"), request("ba", view="2"), request("ab")])
    assert [r.ids for r in base.asked] == [("b", "a"), ("a", "b")]
    assert first.cost == Cost(1, 1, tokens_in=20, tokens_cached=2, tokens_out=2, seconds=0.5)
    assert repeated.cost == Cost(1, 1, tokens_in=20, tokens_cached=20, tokens_out=2, seconds=0.0)
    assert repeated.order == first.order == other.order
    later = memo.rank(request("ba"))
    assert later.cost == repeated.cost
    assert base.batches == 1


@pytest.mark.parametrize(
    "changed",
    [
        request("ab", query="other"),
        request("ba"),
        request("abc"),
        request("ab", context=Context("other text")),
        request("ab", context=Context("text", (HistoryEntry("film x", 4.0),))),
        replace(request("ab"), candidates=(Candidate("a", "another film"), Candidate("b", "film b"))),
    ],
)
def test_any_difference_that_a_model_may_see_is_computed(changed: Request) -> None:
    base = Counting()
    memo = Memo(base)
    memo.rank_many([request("ab"), changed])
    assert len(base.asked) == 2


def test_failures_are_not_kept() -> None:
    class Recovering(Counting):
        def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
            rankings = super().rank_many(requests)
            return [Ranking.failed("try again") for _ in rankings] if self.batches == 1 else rankings

    memo = Memo(Recovering())
    assert memo.rank(request("ab")).fault == "try again"
    assert memo.rank(request("ab")).order == ("a", "b")


def test_the_oldest_answers_go_first() -> None:
    base = Counting()
    memo = Memo(base, most_answers=2)
    for ids in ("ab", "ac", "ab", "ad", "ab", "ac"):
        memo.rank(request(ids))
    # "ab" was used again before "ad" came, so "ac" was dropped.
    assert ["".join(r.ids) for r in base.asked] == ["ab", "ac", "ad", "ac"]


def test_a_batch_larger_than_the_memory_is_answered() -> None:
    memo = Memo(Counting(), most_answers=1)
    rankings = memo.rank_many([request("ab"), request("ac"), request("ab")])
    assert [ranking.order for ranking in rankings] == [("a", "b"), ("a", "c"), ("a", "b")]


def test_repeated_calls_advance_the_progress_bar(lists: Callable[..., Any]) -> None:
    data = lists(1, 4)
    method = data.build("canonical_order:base=biased")
    with bar(24, "ranking", show=False) as shown:
        method.rank_many(data.all_orders())
    assert shown.done == 24


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        # All orders of 4 candidates. The canonical order is one request.
        ("canonical_order:base=counting", 1),
        # 24 given orders; then at most every order of 3 of 4 (24) and of 2 of 4 (12).
        ("sgs:base=counting", 24 + 24 + 12),
        # The base always picks the least id: what remains is one set of 3 and one of 2, each in one order.
        ("sgs:inner_seed=query,base=counting", 24 + 1 + 1),
        ("bootstrapping:base=counting", 24),
        ("bootstrapping:inner_seed=query,base=counting", 24),
    ],
)
def test_methods_share_identical_calls_between_views(
    lists: Callable[..., Any], spec: str, asked: int
) -> None:
    data = lists(1, 4)
    base = Counting()
    method = data.build(spec, counting=base)
    rankings = method.rank_many(data.all_orders())
    assert len(base.asked) <= asked
    assert len({(r.query_id, r.ids) for r in base.asked}) == len(base.asked)
    total_in = sum(ranking.cost.tokens_in for ranking in rankings)
    computed = sum(10 * len(r.candidates) for r in base.asked)
    own_cached = sum(len(r.candidates) for r in base.asked)
    cached = sum(ranking.cost.tokens_cached for ranking in rankings)
    assert total_in - cached == computed - own_cached
    assert sum(ranking.cost.seconds for ranking in rankings) == pytest.approx(0.5 * len(base.asked))
    assert {ranking.cost.calls for ranking in rankings} == {method.expected_calls(4)}


def test_two_methods_do_not_share_a_memory(lists: Callable[..., Any]) -> None:
    data = lists(1, 3)
    base = Counting()
    for _ in range(2):
        data.build("canonical_order:base=counting", counting=base).rank_many(data.all_orders())
    assert len(base.asked) == 2


def test_the_fingerprint_of_a_base_without_one_tells_its_options(lists: Callable[..., Any]) -> None:
    data = lists(1, 3)

    class Weighted(Counting):
        def __init__(self, weight: int) -> None:
            super().__init__()

    one: Any = data.build("sgs:base=weighted:weight=1", weighted=Weighted)
    two: Any = data.build("sgs:base=weighted:weight=2", weighted=Weighted)
    assert one.fingerprint()["base"]["label"] == "weighted:weight=1"
    assert one.fingerprint() != two.fingerprint()
    assert len(one.fingerprint()["base"]["sha256"]) == 64
