"""The audit tells pointwise from listwise, noise from none, and whether a long text is read to its end."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable

import pytest

from pytest_invari.observation.audit import Audit, audit_reranker
from pytest_invari.protocol import Candidate, Context, Cost, Ranking, RankingError, Request, Reranker
from pytest_invari.registry.adapt import FunctionReranker
from pytest_invari.tasks.task import Task

Score = Callable[[str, list[str]], list[float]]

TEXTS = ("Alien", "Heat", "Star Wars: Episode V", "Solaris", "The Big Lebowski")


def tasks(count: int = 3) -> list[Task]:
    candidates = tuple(Candidate(f"f{number}", text) for number, text in enumerate(TEXTS))
    return [Task(f"q{number}", Context("space"), candidates) for number in range(count)]


def audited(function: Score) -> Audit:
    return audit_reranker(lambda: FunctionReranker(function), tasks())


def by_length(context: str, texts: list[str]) -> list[float]:
    return [float(len(text)) for text in texts]


def shares(context: str, texts: list[str]) -> list[float]:
    return [len(text) / sum(map(len, texts)) for text in texts]


def first_eight(context: str, texts: list[str]) -> list[float]:
    return [float(sum(map(ord, text[:8]))) for text in texts]


def test_pointwise_scores_are_the_same_alone() -> None:
    found = audited(by_length)
    assert (found.kind, found.again_alone, found.again_among_others) == ("pointwise", 0.0, 0.0)


def test_scores_that_depend_on_the_list_are_listwise() -> None:
    assert audited(shares).kind == "listwise"


def test_an_order_that_depends_on_the_list_is_listwise_without_scores() -> None:
    def order(context: str, candidates: list[Candidate]) -> list[str]:
        return sorted((each.id for each in candidates), reverse=len(candidates) == 2)

    found = audit_reranker(lambda: FunctionReranker(order), tasks())
    assert found.kind == "listwise"
    assert math.isnan(found.tie_rate)
    assert found.end_of_text == "unknown"


def test_an_order_that_shows_nothing_else_stays_unknown() -> None:
    def order(context: str, candidates: list[Candidate]) -> list[str]:
        return sorted(each.id for each in candidates)

    assert audit_reranker(lambda: FunctionReranker(order), tasks()).kind == "unknown"


@pytest.mark.parametrize(("score", "expected"), [(by_length, "counts"), (first_eight, "ignored")])
def test_whether_a_long_text_is_read_to_its_end(score: Score, expected: str) -> None:
    found = audited(score)
    assert found.end_of_text == expected
    assert found.longest_text == max(map(len, TEXTS))


class Drawing:
    """Draws its scores, and each one made anew draws the same."""

    def __init__(self) -> None:
        self._draw = random.Random(0)

    def rank(self, request: Request) -> Ranking:
        return Ranking.from_scores(request, {each: self._draw.random() for each in request.ids})


def test_noise_that_begins_anew_with_each_reranker_is_noise() -> None:
    found = audit_reranker(Drawing, tasks())
    assert found.again_alone > 0
    assert (found.kind, found.end_of_text) == ("unknown", "unknown")


def test_an_order_that_turns_round_by_chance_is_not_called_listwise() -> None:
    turn = itertools.count()

    def order(context: str, candidates: list[Candidate]) -> list[str]:
        ids = sorted(each.id for each in candidates)
        return ids if next(turn) % 2 else ids[::-1]

    assert audit_reranker(lambda: FunctionReranker(order), tasks()).kind == "unknown"


def test_the_longest_text_of_all_lists_is_the_one_that_is_cut() -> None:
    long = Candidate("long", "Alien " * 40)
    other = Task("q9", Context("space"), (Candidate("short", "Heat"), long))
    asked: list[int] = []

    def first_twenty(context: str, texts: list[str]) -> list[float]:
        asked.append(len(texts))
        return [float(sum(map(ord, text[:20]))) for text in texts]

    found = audit_reranker(lambda: FunctionReranker(first_twenty), [*tasks(), other])
    assert (found.longest_text, found.end_of_text) == (len(long.text), "ignored")
    assert asked.count(2) == 2


def test_an_answer_that_changes_when_asked_again_is_noise() -> None:
    clock = itertools.count()

    def changing(context: str, texts: list[str]) -> list[float]:
        step = next(clock)
        return [float(len(text) * (step + 3) % 7) + 0.5 for text in texts]

    found = audited(changing)
    assert found.again_alone > 0
    assert found.again_among_others > 0
    # What noise hides is not said: every text is scored by itself here, and read whole.
    assert (found.kind, found.end_of_text) == ("unknown", "unknown")


class Batched:
    """Ranks a batch of more than one list the other way round."""

    def rank(self, request: Request) -> Ranking:
        return self.rank_many([request])[0]

    def rank_many(self, requests: list[Request]) -> list[Ranking]:
        sign = 1.0 if len(requests) == 1 else -1.0
        cost = Cost(calls=1, depth=1)
        return [
            Ranking.from_scores(each, {c.id: sign * len(c.text) for c in each.candidates}, cost=cost)
            for each in requests
        ]


def test_noise_of_the_batch_is_told_apart_from_noise_alone() -> None:
    found = audit_reranker(Batched, tasks())
    assert found.again_alone == 0.0
    # "Alien" and "Heat" and so on: all lengths differ, so all pairs turn round.
    assert found.again_among_others == 1.0


def test_ties_are_counted_over_pairs() -> None:
    # Lengths 5, 4, 20, 7, 16 in halves of ten: 0, 0, 2, 0, 1.
    found = audited(lambda context, texts: [float(len(text) // 10) + 0.5 for text in texts])
    assert found.tie_rate == pytest.approx(3 / 10)


def test_a_reranker_that_fails_leaves_everything_unknown_and_says_why() -> None:
    def broken(context: str, texts: list[str]) -> list[float]:
        raise RankingError("no\nmodel")

    found = audited(broken)
    assert found.kind == "unknown"
    assert math.isnan(found.again_alone)
    assert found.fault == "no model"
    assert found.calls == 0


def test_memory_of_a_reranker_is_not_asked() -> None:
    made: list[Reranker] = []

    def build() -> Reranker:
        made.append(FunctionReranker(by_length))
        return made[-1]

    audit_reranker(build, tasks())
    assert len({id(each) for each in made}) == 4


class Cached:
    """Answers as before wherever query and candidates are as before, whatever their order."""

    def __init__(self, score: Score) -> None:
        self._inner = FunctionReranker(score)
        self._known: dict[tuple[str, frozenset[str]], Ranking] = {}

    def rank(self, request: Request) -> Ranking:
        key = request.query_id, frozenset(request.ids)
        if key not in self._known:
            self._known[key] = self._inner.rank(request)
        return self._known[key]


def first_wins(context: str, texts: list[str]) -> list[float]:
    return [len(text) / 20 - place for place, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: Cached(first_wins), True),
        (lambda: FunctionReranker(first_wins), False),
        (lambda: Cached(by_length), False),
        (lambda: FunctionReranker(by_length), False),
    ],
)
def test_a_cache_that_does_not_mind_the_order_is_found(build: Callable[[], Reranker], expected: bool) -> None:
    found = audit_reranker(build, tasks())
    assert found.remembers is expected
    assert ("; it remembers" in found.lines[0]) is expected
    assert Audit.from_plain(found.plain()) == found


def test_noise_of_orders_is_not_taken_for_memory() -> None:
    draw = random.Random(11)

    def order(context: str, candidates: list[Candidate]) -> list[str]:
        ids = sorted(each.id for each in candidates)
        return ids if draw.random() < 0.8 else ids[::-1]

    found = [audit_reranker(lambda: FunctionReranker(order), tasks()).remembers for _ in range(200)]
    assert sum(found) < 8


def test_only_the_first_queries_are_asked_about_and_calls_are_counted() -> None:
    asked: list[int] = []

    def counting(context: str, texts: list[str]) -> list[float]:
        asked.append(len(texts))
        return by_length(context, texts)

    found = audit_reranker(lambda: FunctionReranker(counting), tasks(40))
    assert found.calls == len(asked)
    # Two lists, the first again, both of a new reranker, and in a batch with their reverses; two candidates
    # alone; one list with a cut text; one list in reverse, which a memory would know.
    assert len(asked) == 2 + 1 + 2 + 4 + 2 + 1 + 1


def test_plain_values_survive_json() -> None:
    found = audited(shares)
    again = Audit.from_plain(json.loads(json.dumps(found.plain(), allow_nan=False)))
    assert again == found
    empty = Audit.from_plain(json.loads(json.dumps(Audit().plain(), allow_nan=False)))
    assert math.isnan(empty.again_alone)


def test_two_lines_for_people() -> None:
    first, second = audited(by_length).lines
    assert first.startswith("pointwise")
    assert "0.0% alone, 0.0% among others" in first
    assert "(20 characters) is read to its end" in second
    assert second.endswith("13 calls")
