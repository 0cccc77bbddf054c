"""The controls do what their names say, at the cost of one call, and `biased` has the bias it claims."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist, fmean, pstdev
from typing import Any

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.protocol import Cost, rank_all
from pytest_invari.protocol.seeding import shuffled

LEAVES = ["random", "constant", "input_order", "reverse_input_order", "oracle", "first_stage", "biased"]


@pytest.mark.parametrize("name", LEAVES)
def test_every_leaf_costs_one_call(lists: Callable[..., Any], name: str) -> None:
    data = lists(2, 4)
    control = data.build(name)
    for request, ranking in zip(data.views(3), rank_all(control, data.views(3)), strict=True):
        assert sorted(ranking.order) == sorted(request.ids)
        assert ranking.cost == Cost(calls=1, depth=1)
    assert control.expected_calls(4) == 1
    assert control.fingerprint()["reranker"] == name


@pytest.mark.parametrize("name", ["constant", "oracle", "first_stage", "biased:beta=0"])
def test_invariant_controls_ignore_the_input_order(lists: Callable[..., Any], name: str) -> None:
    data = lists(1, 5)
    assert len({ranking.order for ranking in rank_all(data.build(name), data.all_orders())}) == 1


def test_input_order_controls_copy_and_reverse(lists: Callable[..., Any]) -> None:
    data = lists(1, 4)
    for request in data.all_orders():
        assert data.build("input_order").rank(request).order == request.ids
        assert data.build("reverse_input_order").rank(request).order == request.ids[::-1]


def test_random_is_seeded_and_reaches_every_order(lists: Callable[..., Any]) -> None:
    data = lists(200, 3)
    requests = data.views(1)
    orders = [ranking.order for ranking in rank_all(data.build("random"), requests)]
    assert orders == [ranking.order for ranking in rank_all(data.build("random:seed=0"), requests)]
    assert orders != [ranking.order for ranking in rank_all(data.build("random:seed=1"), requests)]
    ranks = [tuple(item[-1] for item in order) for order in orders]
    # 200 draws of 6 orders: 33 each on average, standard deviation 5.3.
    assert len(set(ranks)) == 6
    assert all(33 - 4 * 5.3 < ranks.count(order) < 33 + 4 * 5.3 for order in set(ranks))


def test_random_has_no_preference_between_views(lists: Callable[..., Any]) -> None:
    data = lists(1, 5)
    rankings = rank_all(data.build("random"), data.all_orders())
    first = [ranking.order[0] for ranking in rankings]
    # 120 draws of 5 items: 24 each on average, standard deviation 4.4.
    assert all(24 - 4 * 4.4 < first.count(item) < 24 + 4 * 4.4 for item in data.tasks.tasks[0].ids)


def test_constant_ties_all(lists: Callable[..., Any]) -> None:
    data = lists(1, 4)
    assert data.build("constant").rank(data.all_orders()[5]).scores == (0.0, 0.0, 0.0, 0.0)


def test_oracle_puts_the_relevant_first_and_first_stage_keeps_the_data_order(
    lists: Callable[..., Any],
) -> None:
    data = lists(5, 4)
    tasks = {task.query_id: task for task in data.tasks.tasks}
    for request in data.views(3):
        task = tasks[request.query_id]
        assert data.build("oracle").rank(request).order[0] in task.relevance
        assert data.build("first_stage").rank(request).order == task.ids
        part = request.select(request.ids[:2])
        assert data.build("first_stage").rank(part).order == tuple(i for i in task.ids if i in part.ids)


def test_a_query_that_is_not_in_the_data_set_fails(lists: Callable[..., Any]) -> None:
    stranger = lists(3, 4).views(1)[2]
    for name in ("oracle", "first_stage", "biased:relevance=1"):
        (ranking,) = rank_all(lists(2, 4).build(name), [stranger])
        assert ranking.fault == "query 'query2' is not in the data set"


def test_biased_utilities_are_standard_normal_and_fixed(lists: Callable[..., Any]) -> None:
    data = lists(1, 2)
    control = data.build("biased")
    drawn = [control.utility(f"q{n // 50}", f"i{n % 50}") for n in range(5000)]
    # Standard errors: 1 / sqrt(5000) = .014 of the mean, .010 of the standard deviation.
    assert fmean(drawn) == pytest.approx(0, abs=4 * 0.014)
    assert pstdev(drawn) == pytest.approx(1, abs=4 * 0.010)
    assert control.utility("query0", "item0.0") == pytest.approx(0.059237985883, abs=1e-12)
    assert control.utility("query0", "item0.0") != data.build("biased:seed=1").utility("query0", "item0.0")


@pytest.mark.parametrize(("beta", "noise"), [(0.0, 1.0), (0.5, 0.0), (0.5, 1.0), (-1.0, 0.5)])
def test_biased_wins_as_often_as_its_parameters_say(
    lists: Callable[..., Any], beta: float, noise: float
) -> None:
    # Two candidates at −1 and +1 of the position scale; utilities and noise are independent normals, so
    # the first wins with probability Φ(2β / sqrt(2 + 2 noise²)).
    data = lists(2000, 2)
    control = data.build(f"biased:beta={beta},noise={noise}")
    requests = data.views(1)
    wins = fmean(control.rank(request).order[0] == request.ids[0] for request in requests)
    expected = NormalDist().cdf(2 * beta / math.sqrt(2 + 2 * noise**2))
    assert wins == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 2000))


def test_biased_spans_from_the_truth_to_the_input_order(lists: Callable[..., Any]) -> None:
    data = lists(3, 6)
    for request in data.views(3):
        truth = sorted(request.ids, key=lambda item: -data.build("biased").utility(request.query_id, item))
        assert data.build("biased:beta=0").rank(request).order == tuple(truth)
        assert data.build("biased:beta=100").rank(request).order == request.ids
        assert data.build("biased:beta=-100").rank(request).order == request.ids[::-1]


def test_biased_noise_is_drawn_per_input_order_and_is_repeatable(lists: Callable[..., Any]) -> None:
    data = lists(1, 4)
    noisy = data.build("biased:beta=0,noise=3")
    rankings = rank_all(noisy, data.all_orders())
    assert len({ranking.order for ranking in rankings}) > 6
    assert rankings == rank_all(data.build("biased:beta=0,noise=3"), data.all_orders())


def test_biased_relevance_raises_the_relevant(lists: Callable[..., Any]) -> None:
    data = lists(10, 5)
    control = data.build("biased:beta=1,relevance=50")
    relevant = {task.query_id: set(task.relevance) for task in data.tasks.tasks}
    assert all(control.rank(request).order[0] in relevant[request.query_id] for request in data.views(3))


@pytest.mark.parametrize("options", ["noise=-1", "beta=nan", "relevance=inf"])
def test_biased_refuses_impossible_options(lists: Callable[..., Any], options: str) -> None:
    with pytest.raises(InvariError, match=r"^reranker 'biased:.*': beta, noise and relevance must be finite"):
        lists(1, 2).build(f"biased:{options}")


def test_controls_do_not_share_their_draws_with_the_views(lists: Callable[..., Any]) -> None:
    data = lists(1, 6)
    ids = data.tasks.tasks[0].ids
    request = data.views(1)[0]
    assert data.build("random").rank(request).order != shuffled(ids, "view", 0, "query0", 0)
