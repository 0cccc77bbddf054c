"""Bootstrapping, SGS and STELLA against plain loops, their cost formulas, and what must hold for any base."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.protocol import Cost, Ranking, Request, Reranker, rank_all, seeded_hash
from pytest_invari.protocol.seeding import shuffled

METHODS = [
    "bootstrapping:base=biased:noise=1",
    "bootstrapping:n=5,inner_seed=query,base=biased:noise=1",
    "sgs:base=biased:noise=1",
    "sgs:select=2,inner_seed=query,seed=3,base=biased:noise=1",
    "stella:probes=3,repeats=1,base=(biased:noise=1,relevance=2)",
    "canonical_order:base=biased:noise=1",
]


def outer(request: Request, inner_seed: str) -> str:
    return seeded_hash(*request.ids).hex() if inner_seed == "request" else ""


def naive_bootstrapping(base: Reranker, request: Request, n: int, inner_seed: str) -> list[str]:
    points = dict.fromkeys(request.ids, 0)
    for step in range(n):
        seed = ("bootstrapping", 0, request.query_id, outer(request, inner_seed), step)
        order = request.ids if step == 0 else shuffled(request.ids, *seed)
        ranked = base.rank(request.select(order)).order
        for item in request.ids:
            points[item] += len(ranked) - (ranked.index(item) + 1)
    by_hash = Ranking.from_scores(request, dict.fromkeys(request.ids, 0.0)).order
    return sorted(request.ids, key=lambda item: (-points[item], by_hash.index(item)))


def naive_sgs(base: Reranker, request: Request, select: int, inner_seed: str) -> tuple[list[str], int]:
    remaining, chosen, calls = list(request.ids), list[str](), 0
    while len(remaining) > 1:
        if calls > 0:
            seed = ("sgs", 0, request.query_id, outer(request, inner_seed), calls)
            remaining = list(shuffled(remaining, *seed))
        ranked = base.rank(request.select(remaining)).order
        calls += 1
        chosen.extend(ranked[:select])
        remaining = [item for item in ranked if item not in chosen]
    return chosen + remaining, calls


def naive_stella(
    base: Reranker, request: Request, transitions: list[list[float]], updates: int, inner_seed: str
) -> tuple[list[str], int]:
    belief = {item: 1 / len(request.ids) for item in request.ids}
    entropies = [math.log(len(request.ids))]
    seen = []
    for step in range(updates):
        seed = ("stella", 0, request.query_id, outer(request, inner_seed), step)
        order = request.ids if step == 0 else shuffled(request.ids, *seed)
        ranked = base.rank(request.select(order)).order
        first = order.index(ranked[0])
        belief = {item: belief[item] * transitions[order.index(item)][first] for item in belief}
        total = sum(belief.values())
        belief = {item: weight / total for item, weight in belief.items()}
        entropies.append(-sum(p * math.log(p) for p in belief.values()))
        seen.append((entropies[-1], dict(belief), ranked))
        last = entropies[-4:]
        if len(last) == 4 and all(abs(a - b) <= 1e-6 for a, b in pairwise(last)):
            break
    lowest = min(entropy for entropy, _, _ in seen)
    least, belief, ranked = next(entry for entry in seen if entry[0] <= lowest + 1e-12)
    if math.log(len(request.ids)) - least <= 1e-6:
        return list(ranked), len(seen)
    return sorted(ranked, key=lambda item: (-round(belief[item], 12), ranked.index(item))), len(seen)


@pytest.mark.parametrize("inner_seed", ["request", "query"])
@pytest.mark.parametrize("n", [1, 2, 3, 6])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_bootstrapping_equals_plain_borda_count(
    lists: Callable[..., Any], k: int, n: int, inner_seed: str
) -> None:
    data = lists(3, k)
    method = data.build(f"bootstrapping:n={n},inner_seed={inner_seed},base=biased:noise=1")
    base = data.build("biased:noise=1")
    for request in data.views(min(4, math.factorial(k) - 1)) or data.all_orders():
        ranking = method.rank(request)
        assert list(ranking.order) == naive_bootstrapping(base, request, n, inner_seed)
        assert (ranking.cost.calls, ranking.cost.depth) == (n, 1)


def test_bootstrapping_breaks_ties_without_looking_at_positions(lists: Callable[..., Any]) -> None:
    data = lists(1, 4)
    # Two opposite rankings, so that all four sums are equal, unless the shuffle is the given order again.
    rankings = [
        data.build("bootstrapping:n=2,base=two_faced", two_faced=TwoFaced()).rank(request)
        for request in data.all_orders()
    ]
    tied = [ranking for ranking in rankings if ranking.scores == (3, 3, 3, 3)]
    assert len(tied) >= 20
    assert len({ranking.order for ranking in tied}) == 1
    assert tied[0].order == data.build("constant").rank(data.all_orders()[0]).order


@pytest.mark.parametrize("inner_seed", ["request", "query"])
@pytest.mark.parametrize("select", [1, 2, 3, 9])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 7])
def test_sgs_equals_plain_loop(lists: Callable[..., Any], k: int, select: int, inner_seed: str) -> None:
    data = lists(3, k)
    method = data.build(f"sgs:select={select},inner_seed={inner_seed},base=biased:noise=1")
    base = data.build("biased:noise=1")
    requests = data.views(min(4, math.factorial(k) - 1)) or data.all_orders()
    for request, ranking in zip(requests, rank_all(method, requests), strict=True):
        order, calls = naive_sgs(base, request, select, inner_seed)
        assert list(ranking.order) == order
        assert (ranking.cost.calls, ranking.cost.depth) == (calls, calls)


@pytest.mark.parametrize(
    ("k", "select", "calls", "paper_calls"),
    [
        (1, 1, 0, 1),
        (2, 1, 1, 2),
        (10, 1, 9, 10),
        (25, 1, 24, 25),
        (10, 2, 5, 5),
        (11, 2, 5, 6),
        (11, 3, 4, 4),
        (5, 9, 1, 1),
    ],
)
def test_sgs_counts_its_calls_and_those_of_the_paper(
    lists: Callable[..., Any], k: int, select: int, calls: int, paper_calls: int
) -> None:
    data = lists(1, k)
    method: Any = data.build(f"sgs:select={select},base=first_stage")
    task = data.tasks.tasks[0]
    ranking = method.rank(Request(task.query_id, task.context, task.candidates))
    assert ranking.cost == Cost(calls=calls, depth=calls)
    assert ranking.diagnostics["paper_calls"] == paper_calls == math.ceil(k / select)
    assert method.expected_calls(k) == calls


@pytest.mark.parametrize("inner_seed", ["request", "query"])
@pytest.mark.parametrize("updates", [1, 4, 10])
@pytest.mark.parametrize("base_options", ["noise=1,relevance=2", "beta=4", "beta=0,relevance=9"])
def test_stella_equals_plain_bayes(
    lists: Callable[..., Any], base_options: str, updates: int, inner_seed: str
) -> None:
    data = lists(8, 5)
    spec = f"stella:updates={updates},inner_seed={inner_seed},probes=4,repeats=2,base=(biased:{base_options})"
    method: Any = data.build(spec)
    base = data.build(f"biased:{base_options}")
    method.prepare()
    transitions = [[math.exp(log) for log in row] for row in method.calibrator.prepare().log_transitions]
    requests = data.views(5)
    for request, ranking in zip(requests, rank_all(method, requests), strict=True):
        order, calls = naive_stella(base, request, transitions, updates, inner_seed)
        assert list(ranking.order) == order
        assert ranking.cost == Cost(calls=calls, depth=calls)
        assert ranking.diagnostics["updates"] == calls <= updates


def test_stella_stops_early_and_returns_the_raw_ranking_when_nothing_is_learnt(
    lists: Callable[..., Any],
) -> None:
    # The base picks position 0 wherever the target stands, so that the rows of T are equal.
    data = lists(2, 4)
    method = data.build("stella:base=input_order")
    ranking = method.rank(data.views(1)[0])
    assert ranking.diagnostics["information_gain"] == pytest.approx(0, abs=1e-12)
    assert ranking.order == data.views(1)[0].ids
    assert ranking.cost.calls == 3


def test_stella_finds_relevant_candidates_that_position_bias_hides(lists: Callable[..., Any]) -> None:
    data = lists(30, 6)
    options = "biased:beta=2,relevance=4,noise=0.5"
    requests = data.views(4)

    def hits(rankings: Sequence[Ranking]) -> int:
        relevant = {task.query_id: set(task.relevance) for task in data.tasks.tasks}
        return sum(r.order[0] in relevant[q.query_id] for q, r in zip(requests, rankings, strict=True))

    of_base = hits(rank_all(data.build(options), requests))
    of_stella = hits(rank_all(data.build(f"stella:base=({options})"), requests))
    assert of_stella > of_base + len(requests) // 20


def test_stella_refuses_lists_of_another_length(lists: Callable[..., Any]) -> None:
    data = lists(2, 5)
    method = data.build("stella:probes=1,repeats=1,base=biased")
    request = data.views(1)[0]
    ranking = method.rank(request.select(request.ids[:3]))
    assert ranking.status == "failed"
    assert ranking.fault == "stella is calibrated for lists of 5, not of 3"


@pytest.mark.parametrize("inner_seed", ["request", "query"])
@pytest.mark.parametrize("method", ["bootstrapping:", "sgs:", "sgs:select=2,", "canonical_order:"])
def test_methods_over_an_invariant_base_are_invariant(
    lists: Callable[..., Any], method: str, inner_seed: str
) -> None:
    data = lists(1, 5)
    options = f"inner_seed={inner_seed}," if "canonical" not in method else ""
    built = data.build(f"{method}{options}base=biased:beta=0")
    orders = {ranking.order for ranking in rank_all(built, data.all_orders())}
    assert orders == {data.build("biased:beta=0").rank(data.all_orders()[0]).order}


def test_canonical_order_makes_any_deterministic_base_invariant(lists: Callable[..., Any]) -> None:
    data = lists(1, 4)
    assert len({r.order for r in rank_all(data.build("biased:beta=9"), data.all_orders())}) == 24
    canonical = data.build("canonical_order:base=biased:beta=9")
    rankings = rank_all(canonical, data.all_orders())
    assert {ranking.order for ranking in rankings} == {tuple(sorted(data.tasks.tasks[0].ids))}
    assert {(r.cost.calls, r.cost.depth) for r in rankings} == {(1, 1)}


def test_stella_over_an_invariant_base_depends_on_its_own_shuffles(lists: Callable[..., Any]) -> None:
    data = lists(12, 5)
    method = data.build("stella:base=(biased:beta=0,relevance=1)")
    orders = {ranking.order for ranking in rank_all(method, data.all_orders())}
    assert len(orders) > 1


@pytest.mark.parametrize("spec", METHODS)
def test_a_batch_gives_the_rankings_of_single_requests(lists: Callable[..., Any], spec: str) -> None:
    data = lists(4, 6)
    requests = data.views(5)
    together = rank_all(data.build(spec), requests)
    alone = [data.build(spec).rank(request) for request in requests]
    assert [(r.order, r.scores, r.diagnostics) for r in together] == [
        (r.order, r.scores, r.diagnostics) for r in alone
    ]
    assert [r.cost for r in together] == [r.cost for r in alone]


@pytest.mark.parametrize("spec", [spec.rpartition("base=")[0] + "base=frail" for spec in METHODS[:4]])
def test_a_failing_base_fails_only_its_stream(lists: Callable[..., Any], spec: str) -> None:
    data = lists(3, 6)
    requests = data.views(2)
    frail = Frail("query1", data.build("biased"))
    healthy = rank_all(data.build(spec.replace("frail", "biased")), requests)
    for request, ranking, expected in zip(
        requests, rank_all(data.build(spec, frail=frail), requests), healthy, strict=True
    ):
        if request.query_id == "query1":
            assert ranking.status == "failed"
            assert "raised RuntimeError: no answer for query1" in ranking.fault
        else:
            assert ranking == expected


def test_a_failure_on_the_way_reports_the_call_and_the_cost_so_far(lists: Callable[..., Any]) -> None:
    data = lists(2, 6)
    frail = Frail("query0", data.build("biased"), only_length=3)
    failed, complete = rank_all(data.build("sgs:base=frail", frail=frail), data.views(1))
    assert failed.fault == "call 4, on 3 candidates: raised RuntimeError: no answer for query0"
    assert failed.cost == Cost(calls=3, depth=3)
    assert complete.cost == Cost(calls=5, depth=5)


def test_stella_names_the_call_that_failed(lists: Callable[..., Any]) -> None:
    data = lists(4, 4)
    method: Any = data.build(
        "stella:probes=4,repeats=1,base=frail", frail=Frail("query0", data.build("biased"))
    )
    calibration = method.calibrator.prepare()
    assert calibration.failed == 4
    by_query = {
        r.query_id: ranking for r, ranking in zip(data.views(1), rank_all(method, data.views(1)), strict=True)
    }
    assert by_query["query0"].fault == "call 1, on 4 candidates: raised RuntimeError: no answer for query0"
    assert by_query["query1"].status == "ok"
    assert by_query["query1"].diagnostics["calibration_failed"] == 4


def test_the_least_trusted_answer_gives_the_status(lists: Callable[..., Any]) -> None:
    data = lists(1, 4)
    for spec in ("sgs:base=mended", "bootstrapping:base=mended"):
        assert data.build(spec, mended=Mended()).rank(data.views(1)[0]).status == "repaired"


def test_methods_nest_and_costs_multiply(lists: Callable[..., Any]) -> None:
    data = lists(2, 5)
    method: Any = data.build("sgs:base=bootstrapping:base=biased")
    ranking = method.rank(data.views(1)[0])
    assert ranking.cost == Cost(calls=12, depth=4)
    assert method.expected_calls(5) == 12


@pytest.mark.parametrize("spec", METHODS)
def test_fingerprints_differ_by_every_option_and_by_the_base(lists: Callable[..., Any], spec: str) -> None:
    data = lists(3, 5)
    name = spec.partition(":")[0]
    others = {
        "bootstrapping": ["n=4", "seed=1", "inner_seed=query", "base=input_order"],
        "sgs": ["select=2", "seed=1", "inner_seed=query", "base=input_order"],
        "stella": ["updates=2", "probes=2", "repeats=2", "seed=1", "inner_seed=query", "base=input_order"],
        "canonical_order": ["base=input_order", "base=biased:beta=2"],
    }[name]
    default: Any = data.build(f"{name}:base=biased")
    variants: list[Any] = [
        data.build(f"{name}:{option}" + ("" if "base=" in option else ",base=biased")) for option in others
    ]
    fingerprints = [default.fingerprint(), *(variant.fingerprint() for variant in variants)]
    assert all(a != b for i, a in enumerate(fingerprints) for b in fingerprints[:i])
    assert default.fingerprint() == data.build(f"{name}:base=biased").fingerprint()


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (
            "sgs:select=0,base=biased",
            "reranker 'sgs:select=0,base=biased': option 'select' must be at least 1, not 0",
        ),
        ("bootstrapping:n=0", "reranker 'bootstrapping:n=0': option 'n' must be at least 1, not 0"),
        ("stella:updates=0", "reranker 'stella:updates=0': option 'updates' must be at least 1, not 0"),
        ("stella:repeats=-1", "reranker 'stella:repeats=-1': option 'repeats' must be at least 1, not -1"),
    ],
)
def test_impossible_options_are_refused(lists: Callable[..., Any], spec: str, fault: str) -> None:
    with pytest.raises(InvariError) as error:
        lists(2, 3).build(spec)
    assert str(error.value) == fault


def test_check_and_prepare_reach_the_base(lists: Callable[..., Any]) -> None:
    data = lists(2, 3)
    base = Attentive()
    for spec in ("sgs:base=base", "canonical_order:base=base", "bootstrapping:base=sgs:base=base"):
        method: Any = data.build(spec, base=base)
        method.check()
        method.prepare()
    assert base.heard == ["check", "prepare"] * 3
    assert method.batch_requests == 7


class TwoFaced:
    """Ranks by id, in one direction for the given order and in the other for the next."""

    def __init__(self) -> None:
        self.calls = 0

    def rank(self, request: Request) -> Ranking:
        self.calls += 1
        return Ranking.from_order(request, sorted(request.ids, reverse=self.calls % 2 == 0))


class Frail:
    """Raises for one query, for all lists or for those of one length."""

    def __init__(self, query_id: str, base: Reranker, only_length: int | None = None) -> None:
        self.query_id = query_id
        self.base = base
        self.only_length = only_length

    def rank(self, request: Request) -> Ranking:
        if request.query_id == self.query_id and self.only_length in (None, len(request.candidates)):
            raise RuntimeError(f"no answer for {request.query_id}")
        return self.base.rank(request)

    def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        return [self.rank(request) for request in requests]


class Mended:
    """Says that its output had to be repaired."""

    def rank(self, request: Request) -> Ranking:
        return Ranking(request.ids, status="repaired")


class Attentive:
    """Remembers what it was told."""

    batch_requests = 7

    def __init__(self) -> None:
        self.heard: list[str] = []

    def rank(self, request: Request) -> Ranking:
        return Ranking.from_order(request, request.ids)

    def check(self) -> None:
        self.heard.append("check")

    def prepare(self) -> None:
        self.heard.append("prepare")
