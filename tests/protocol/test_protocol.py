"""The ranking protocol: what is a ranking, what is refused, and what a ranking cost."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_invari.protocol import (
    Candidate,
    Context,
    Cost,
    HistoryEntry,
    Ranking,
    RankingError,
    Request,
    Reranker,
    rank_all,
    seeded_hash,
    seeded_hashes,
)


def request_of(*ids: str, query_id: str = "q") -> Request:
    return Request(query_id, Context("text"), tuple(Candidate(item, f"text of {item}") for item in ids))


ABC = request_of("a", "b", "c")


def test_context_reads_as_query_then_history() -> None:
    context = Context("films", (HistoryEntry("Alien", 4.5), HistoryEntry("Up")))
    assert str(context) == "films\nAlien\nUp"
    assert str(Context(history=context.history)) == "Alien\nUp"


def test_select_keeps_the_asked_candidates_in_the_asked_order() -> None:
    assert ABC.select(["c", "a"]).ids == ("c", "a")
    assert ABC.ids == ("a", "b", "c")


def test_scores_rank_from_high_to_low() -> None:
    ranking = Ranking.from_scores(ABC, {"a": 1, "b": 3.5, "c": -2})
    assert (ranking.order, ranking.scores) == (("b", "a", "c"), (3.5, 1.0, -2.0))
    assert (ranking.status, ranking.cost) == ("ok", Cost(calls=1, depth=1))


def test_equal_scores_are_ordered_by_id_hash_not_by_position() -> None:
    forward = request_of(*"abcdefgh")
    backward = forward.select(reversed(forward.ids))
    orders = {
        Ranking.from_scores(given, dict.fromkeys(given.ids, 0.5)).order for given in (forward, backward)
    }
    assert len(orders) == 1
    assert orders != {forward.ids}
    seeded = {
        Ranking.from_scores(forward, dict.fromkeys(forward.ids, 0.5), tie_seed=s).order for s in range(9)
    }
    assert len(seeded) == 9


def test_index_scores_are_by_position_in_the_request() -> None:
    given = request_of("x", "a", "m")
    assert Ranking.from_index_scores(given, {0: 0.1, 1: 0.3, 2: 0.2}).order == ("a", "m", "x")


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"a": 1.0, "b": 2.0}, "output of 2 ids for 3 candidates lacks 'c'"),
        ({"a": 1.0, "b": 2.0, "c": 3.0, "d": 0.0}, "has unknown 'd'"),
        ({"a": 1.0, "b": 2.0, "c": math.nan}, "score of 'c' is nan"),
        ({"a": 1.0, "b": 2.0, "c": -math.inf}, "score of 'c' is -inf"),
        ({"a": 1.0, "b": 2.0, "c": "high"}, "score of 'c' is 'high', not a number"),
        ({"a": 1.0, "b": 2.0, "c": None}, "score of 'c' is None, not a number"),
        ({}, "lacks 'a', 'b', 'c'"),
    ],
)
def test_scores_that_are_none_name_their_ids(scores: Mapping[str, Any], message: str) -> None:
    with pytest.raises(RankingError, match=message):
        Ranking.from_scores(ABC, scores)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({0: 1.0, 1: 2.0, -1: 3.0}, "index -1 is not a position in a list of 3"),
        ({0: 1.0, 1: 2.0, 3: 3.0}, "index 3 is not a position"),
        ({0: 1.0, True: 2.0, 2: 0.0}, "index True is not a position"),
        ({0: 1.0, 1: 2.0, 2.0: 3.0}, r"index 2\.0 is not a position"),
        ({0: 1.0, 2: 2.0}, "lacks 'b'"),
    ],
)
def test_index_scores_out_of_the_list_are_refused(scores: dict[Any, float], message: str) -> None:
    with pytest.raises(RankingError, match=message):
        Ranking.from_index_scores(ABC, scores)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (["a", "b"], "lacks 'c'"),
        (["a", "b", "b"], "repeats 'b', lacks 'c'"),
        (["a", "b", "c", "c"], "repeats 'c'"),
        (["a", "b", "z"], "has unknown 'z', lacks 'c'"),
        ([], "output of 0 ids for 3 candidates"),
    ],
)
def test_orders_that_are_none_name_their_ids(order: list[str], message: str) -> None:
    with pytest.raises(RankingError, match=message):
        Ranking.from_order(ABC, order)


def test_long_lists_of_ids_are_cut_in_messages() -> None:
    with pytest.raises(RankingError, match=r"lacks '00', '01', '02', '03', '04' and 15 more$"):
        Ranking.from_order(request_of(*(f"{item:02}" for item in range(20))), [])


@given(st.permutations("abcdef"))
def test_any_order_of_the_candidates_is_a_ranking(order: list[str]) -> None:
    assert Ranking.from_order(request_of(*"abcdef"), order).order == tuple(order)


def test_costs_add_up_and_depth_follows_the_longest_chain() -> None:
    first = Cost(calls=2, depth=2, tokens_in=10, tokens_cached=3, tokens_out=1, seconds=0.5)
    second = Cost(calls=1, depth=1, tokens_in=5, tokens_cached=5, tokens_out=2, seconds=0.25)
    total = Cost(calls=3, depth=3, tokens_in=15, tokens_cached=8, tokens_out=3, seconds=0.75)
    assert first.then(second) == total
    assert first.beside(second) == replace(total, depth=2)
    assert first.then(Cost()) == first.beside(Cost()) == first


class Broken:
    """Fails for the queries it is told to, and counts how it was asked."""

    def __init__(self, *bad: str, answer: object = None) -> None:
        self.bad, self.answer = bad, answer
        self.asked: list[int] = []

    def rank(self, request: Request) -> Any:
        self.asked.append(1)
        return self.answered(request)

    def answered(self, request: Request) -> Any:
        if request.query_id in self.bad:
            if self.answer is None:
                raise RuntimeError(f"no answer to {request.query_id}")
            return self.answer
        return Ranking.from_order(request, request.ids)


class BrokenBatches(Broken):
    def rank_many(self, requests: Sequence[Request]) -> Iterator[Any]:
        self.asked.append(len(requests))
        return iter([self.answered(request) for request in requests])


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Raises:
    """Raises what it is told to."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def rank(self, request: Request) -> Ranking:
        raise self.error


THREE = [request_of("a", "b", query_id=name) for name in ("q1", "q2", "q3")]


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (SystemExit(3), "raised SystemExit: 3"),
        (ValueError(), "raised ValueError: no message"),
        (ValueError("two\n lines"), "raised ValueError: two lines"),
        (UnspeakableError(), "raised UnspeakableError: a message that cannot be shown"),
        (pytest.skip.Exception("no model here"), "raised Skipped: no model here"),
        (pytest.xfail.Exception("known bug"), "raised XFailed: known bug"),
        (RankingError("lacks 'a'"), "lacks 'a'"),
    ],
)
def test_whatever_a_reranker_raises_is_a_fault_of_one_line(error: BaseException, fault: str) -> None:
    assert [ranking.fault for ranking in rank_all(Raises(error), THREE)] == [fault] * 3


@pytest.mark.parametrize("error", [KeyboardInterrupt(), pytest.fail.Exception("timeout")])
def test_what_is_to_end_the_run_ends_it(error: BaseException) -> None:
    with pytest.raises(type(error)):
        rank_all(Raises(error), THREE)


def test_a_cost_that_is_none_is_a_fault() -> None:
    ranking = Ranking(("a", "b"), cost=7)  # type: ignore[arg-type]  # on purpose
    assert rank_all(Broken("q3", answer=ranking), THREE)[2].fault == (
        "returned a Ranking whose cost is 7, not a Cost"
    )


@pytest.mark.parametrize("kind", [Broken, BrokenBatches])
def test_one_bad_query_does_not_lose_the_others(kind: type[Broken]) -> None:
    reranker = kind("q2")
    assert isinstance(reranker, Reranker)
    rankings = rank_all(reranker, THREE)
    assert [ranking.status for ranking in rankings] == ["ok", "failed", "ok"]
    assert rankings[1].fault == "raised RuntimeError: no answer to q2"
    assert rankings[1].order == ()


@pytest.mark.parametrize("kind", [Broken, BrokenBatches])
@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("ab", "returned str instead of a Ranking"),
        (Ranking(("a",)), "output of 1 id for 2 candidates lacks 'b'"),
        (Ranking(("a", "a", "a", "b")), "output of 2 ids for 2 candidates repeats 'a'"),
        (Ranking(([], {})), "returned a Ranking whose order is ([], {}), not ids"),  # type: ignore[arg-type]
        (Ranking(None), "returned a Ranking whose order is None, not ids"),  # type: ignore[arg-type]
        (Ranking(("a", "a")), "repeats 'a', lacks 'b'"),
        (Ranking(("b", "x")), "has unknown 'x', lacks 'a'"),
        (Ranking.failed("asleep", Cost(calls=3, depth=1)), "asleep"),
        (Ranking(("a", "b"), (1.0,)), "returned 1 score for 2 candidates"),
        (Ranking(("a", "b"), 3), "returned a Ranking whose scores are 3, not numbers"),  # type: ignore[arg-type]
        (Ranking(("a", "b"), (1.0, "low")), "score of 'b' is 'low', not a number"),  # type: ignore[arg-type]
        (Ranking(("a", "b"), (float("nan"), 0.0)), "score of 'a' is nan"),
        (Ranking(("a", "b"), (1.0, 2.0)), "scores do not fall: 'b' has 2.0 after 'a' with 1.0"),
        (Ranking(("a", "b"), status="fine"), "a Ranking whose status is 'fine', not one of ok, partial, "),  # type: ignore[arg-type]
        (Ranking(("a", "b"), diagnostics=[1]), "a Ranking whose diagnostics are [1], not a mapping"),  # type: ignore[arg-type]
        (Ranking((), status="failed", diagnostics=None), "whose diagnostics are None, not a mapping"),  # type: ignore[arg-type]
        (Ranking(None, status="failed"), "returned a Ranking whose order is None, not ids"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_ranking_becomes_a_failed_one(kind: type[Broken], answer: object, fault: str) -> None:
    rankings = rank_all(kind("q3", answer=answer), THREE)
    assert [ranking.status for ranking in rankings] == ["ok", "ok", "failed"]
    assert fault in rankings[2].fault
    if isinstance(answer, Ranking):
        assert rankings[2].cost == answer.cost


def test_scores_in_an_array_are_plain_numbers() -> None:
    ranking = Ranking(("a", "b"), np.array([2, 1], np.float32))  # type: ignore[arg-type]  # on purpose
    scores = rank_all(Broken("q3", answer=ranking), THREE)[2].scores
    assert scores == (2.0, 1.0)
    assert {type(score) for score in scores} == {float}


def test_a_batch_is_asked_for_once() -> None:
    reranker = BrokenBatches()
    assert len(rank_all(reranker, THREE)) == 3
    assert reranker.asked == [3]
    assert rank_all(reranker, []) == []


def test_a_batch_of_one_that_fails_is_not_asked_again() -> None:
    reranker = BrokenBatches("q1")
    assert rank_all(reranker, THREE[:1])[0].status == "failed"
    assert reranker.asked == [1]


def test_a_batch_of_another_length_fails_whole() -> None:
    class Short(BrokenBatches):
        def rank_many(self, requests: Sequence[Request]) -> Iterator[Any]:
            return iter(list(super().rank_many(requests))[1:])

    assert {ranking.fault for ranking in rank_all(Short(), THREE)} == {
        "rank_many returned 2 rankings for 3 requests"
    }


def test_an_interruption_is_no_failure() -> None:
    class Interrupted(Broken):
        def rank(self, request: Request) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rank_all(Interrupted(), THREE)


def test_hashes_are_the_same_in_every_process() -> None:
    expected = "eabc9c358074"
    code = 'from pytest_invari.protocol import seeded_hash; print(seeded_hash("é", 1, "x").hex()[:12])'
    environment = os.environ | {"PYTHONHASHSEED": "12"}
    shown = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert shown.stdout.decode().strip() == seeded_hash("é", 1, "x").hex()[:12] == expected


@pytest.mark.parametrize("parts", [(), ("view", 0, "q\u00e9\n", 3), (["a"], None, 0.5)])
@pytest.mark.parametrize("last", ["", "a, b]", '"\u2028', 7, ("a", 1)])
def test_a_hash_of_which_only_the_last_part_changes_is_the_same(parts: Any, last: Any) -> None:
    assert seeded_hashes(*parts)(last) == seeded_hash(*parts, last)


@pytest.mark.parametrize(
    ("body", "is_transient"),
    [
        ("raise ConnectionRefusedError('no')", True),
        ("raise socket.timeout('slow')", True),
        ("raise OSError('no such index')", False),
        ("urllib.request.urlopen('http://127.0.0.1:9/', timeout=5)", True),
        ("try:\n    raise ConnectionError('no')\nexcept OSError:\n    raise KeyError('x') from None", False),
    ],
)
def test_a_connection_that_failed_says_nothing_about_the_request(body: str, is_transient: bool) -> None:
    class Calling:
        def rank(self, request: Request) -> Ranking:
            exec(body, {"socket": socket, "urllib": urllib})
            raise AssertionError

    [ranking] = rank_all(Calling(), [ABC])
    assert (ranking.status, ranking.is_transient) == ("failed", is_transient)
