"""Hidden ids take away what sorting by id buys, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.errors import InvariError
from pytest_invari.metrics.arrays import query_arrays
from pytest_invari.metrics.loc import loc
from pytest_invari.protocol import Candidate, Context, Cost, Ranking, Request, Reranker, rank_all
from pytest_invari.protocol.blinding import blind_ids


class ByText:
    """Longest text first; remembers what it was asked, in which batches."""

    batch_requests = 5

    def __init__(self) -> None:
        self.batches: list[Sequence[Request]] = []
        self.heard: list[str] = []

    def rank(self, request: Request) -> Ranking:
        return self.rank_many([request])[0]

    def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        self.batches.append(requests)
        return [self._rank(request) for request in requests]

    def _rank(self, request: Request) -> Ranking:
        cost = Cost(calls=2, depth=1, tokens_in=7, tokens_cached=3, tokens_out=1, seconds=0.25)
        scores = {c.id: float(len(c.text)) for c in request.candidates}
        return Ranking.from_scores(request, scores, cost=cost, diagnostics={"entropy": 0.5})

    def expected_calls(self, k: int) -> int:
        return 2

    def fingerprint(self) -> Mapping[str, object]:
        return {"reranker": "by_text"}

    def check(self) -> None:
        self.heard.append("check")

    def prepare(self) -> None:
        self.heard.append("prepare")


def mean_loc(requests: Sequence[Request], rankings: Sequence[Ranking]) -> float:
    ranks = []
    for query in sorted({request.query_id for request in requests}):
        pairs = [pair for pair in zip(requests, rankings, strict=True) if pair[0].query_id == query]
        arrays = query_arrays(query, [r.ids for r, _ in pairs], [ranking.order for _, ranking in pairs])
        ranks.append(arrays.ranks)
    return loc(np.array(ranks)).mean


def request_of(*texts: str) -> Request:
    return Request("q", Context("text"), tuple(Candidate(f"id{n}", text) for n, text in enumerate(texts)))


def test_sorting_by_id_buys_no_consistency(lists: Callable[..., Any]) -> None:
    data = lists(30, 8)
    requests = data.views(6)
    canonical = data.build("canonical_order:base=input_order")
    assert mean_loc(requests, rank_all(canonical, requests)) == 1
    # Chance: the standard error over 30 queries of 15 pairs of views is .013.
    assert abs(mean_loc(requests, rank_all(blind_ids(canonical), requests))) < 0.06


def test_an_order_that_texts_decide_stays_as_it_is(lists: Callable[..., Any]) -> None:
    requests = lists(3, 6).views(4)
    plain, blinded = ByText(), ByText()
    assert rank_all(blind_ids(blinded), requests) == rank_all(plain, requests)


def test_ids_are_fresh_in_every_view_and_query_and_the_same_in_every_run(lists: Callable[..., Any]) -> None:
    requests = lists(3, 6).views(4)
    seen: list[list[tuple[str, ...]]] = []
    for seed in (0, 0, 1):
        base = ByText()
        rank_all(blind_ids(base, seed=seed), requests)
        asked = [request for batch in base.batches for request in batch]
        seen.append([request.ids for request in asked])
        for real, blind in zip(requests, asked, strict=True):
            assert [c.text for c in blind.candidates] == [c.text for c in real.candidates]
            assert (blind.query_id, blind.context, blind.view) == (real.query_id, real.context, real.view)
    assert seen[0] == seen[1]
    every = [item for given in (seen[0], seen[2]) for ids in given for item in ids]
    assert len(set(every)) == len(every) == 2 * 12 * 6
    assert not set(every) & {item for request in requests for item in request.ids}


def test_cost_diagnostics_status_and_batches_are_the_rerankers_own() -> None:
    base = ByText()
    blinded: Any = blind_ids(base)
    requests = [request_of("a", "bb", "ccc"), request_of("ccc", "bb")]
    rankings = rank_all(blinded, requests)
    assert [len(batch) for batch in base.batches] == [2]
    assert [r.order for r in rankings] == [("id2", "id1", "id0"), ("id0", "id1")]
    assert [r.scores for r in rankings] == [(3.0, 2.0, 1.0), (3.0, 2.0)]
    for ranking in rankings:
        assert ranking.cost == Cost(2, 1, 7, 3, 1, 0.25)
        assert ranking.diagnostics == {"entropy": 0.5}
    assert (blinded.batch_requests, blinded.expected_calls(9)) == (5, 2)
    blinded.check()
    blinded.prepare()
    assert base.heard == ["check", "prepare"]


def test_equal_scores_stay_consistent(lists: Callable[..., Any]) -> None:
    data = lists(1, 4)
    constant = data.build("constant")
    orders = {ranking.order for ranking in rank_all(blind_ids(constant), data.all_orders())}
    assert orders == {constant.rank(data.all_orders()[0]).order}


class Faulty:
    """Answers with ids that are not right, or raises with one."""

    def __init__(self, answer: Callable[[tuple[str, ...]], Sequence[str]]) -> None:
        self.answer = answer

    def rank(self, request: Request) -> Ranking:
        return Ranking.from_order(request, self.answer(request.ids))


def raising(ids: tuple[str, ...]) -> Sequence[str]:
    raise KeyError(ids[1])


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (lambda ids: ids[1:], "output of 2 ids for 3 candidates lacks 'id0'"),
        (lambda ids: (*ids, ids[2]), "output of 3 ids for 3 candidates repeats 'id2'"),
        (lambda ids: (*ids, "more"), "output of 4 ids for 3 candidates has unknown 'more'"),
        (raising, "raised KeyError: 'id1'"),
    ],
)
def test_faults_name_the_real_ids(answer: Any, fault: str) -> None:
    (ranking,) = rank_all(blind_ids(Faulty(answer)), [request_of("a", "b", "c")])
    assert (ranking.status, ranking.fault) == ("failed", fault)


class ByLabel:
    """The first label first."""

    label_binding = "item"

    def rank(self, request: Request) -> Ranking:
        labels = dict(zip(request.ids, request.label_indices, strict=True))
        return Ranking.from_order(request, sorted(labels, key=lambda item: labels[item]))


def test_labels_bound_to_items_stay_bound_to_them(lists: Callable[..., Any]) -> None:
    data = lists(1, 4)
    expected = {ranking.order for ranking in rank_all(ByLabel(), data.all_orders())}
    assert len(expected) == 1
    assert {ranking.order for ranking in rank_all(blind_ids(ByLabel()), data.all_orders())} == expected


def test_fingerprint_tells_that_ids_are_hidden() -> None:
    plain, blinded, other = ByText(), blind_ids(ByText()), blind_ids(ByText(), seed=1)
    fingerprints: list[Any] = [each.fingerprint() for each in (plain, blinded, other)]  # type: ignore[attr-defined]
    assert all(a != b for n, a in enumerate(fingerprints) for b in fingerprints[:n])
    named: Any = blind_ids(Faulty(raising), label="faulty:weight=2")
    assert named.fingerprint()["base"]["label"] == "faulty:weight=2"


@pytest.mark.parametrize("name", ["oracle", "first_stage", "biased", "sgs:base=oracle"])
def test_a_control_that_knows_ids_is_refused(lists: Callable[..., Any], name: str) -> None:
    with pytest.raises(InvariError, match="knows the candidates by their ids"):
        blind_ids(lists(2, 4).build(name))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=3), min_size=1, max_size=6, unique=True), st.integers())
def test_any_order_by_place_is_translated_back(ids: list[str], seed: int) -> None:
    class Shuffling:
        def rank(self, request: Request) -> Ranking:
            return Ranking.from_order(request, random.Random(seed).sample(request.ids, len(request.ids)))

    request = Request("q", Context(), tuple(Candidate(item, "") for item in ids))
    base: Reranker = Shuffling()
    assert blind_ids(base).rank(request).order == base.rank(request).order
