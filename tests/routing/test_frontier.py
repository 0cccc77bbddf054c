"""The cost-utility table against plain Python, its endpoints, and domination by hand."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.metrics.arrays import Floats, PerQuery
from pytest_invari.protocol import Cost
from pytest_invari.routing import COSTS, Frontier, Outcomes, Policy, PolicyPoint, ViewRoles, frontier
from pytest_invari.routing.domination import domination_frequencies, dominations
from pytest_invari.routing.policies import endpoints, routed_count
from pytest_invari.statistics import Resamples, paper_resamples, seeded_resamples

ROLES = ViewRoles(canonical=0, probe=(0, 1), target=(2, 3, 4, 5))
VIEWS = 6
NAN = math.nan
FRACTIONS = (0.1, 0.25, 0.5)


def outcomes_of(
    loss_canonical: list[float], loss_borda: list[float], ndcg_canonical: list[float], ndcg_borda: list[float]
) -> Outcomes:
    def values(given: list[float]) -> PerQuery:
        return PerQuery.of(np.array(given, float), np.isnan(given), "no_relevant_candidate")

    loss = [values(loss_canonical), values(loss_borda)]
    nothing = PerQuery.of(np.zeros(len(loss_borda)))
    return Outcomes(
        borda=np.zeros((len(loss_borda), 1), np.int16),
        loss_canonical=loss[0],
        loss_borda=loss[1],
        benefit=PerQuery(loss[0].values - loss[1].values, loss[0].reasons),
        movement=nothing,
        ndcg_canonical=values(ndcg_canonical),
        ndcg_borda=values(ndcg_borda),
    )


def unit_costs(queries: int) -> Floats:
    return np.ones((queries, VIEWS, len(COSTS)))


def policy(name: str, order: list[int]) -> Policy:
    first = ROLES.before_routing if name == "V2" else (ROLES.canonical,)
    return Policy(name, np.array(order), first, ROLES.target)


def points_of(found: Frontier) -> dict[str, PolicyPoint]:
    return {point.name: point for point in found.points}


class Case(NamedTuple):
    policies: list[Policy]
    costs: Floats
    outcomes: Outcomes


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A few queries in any order, whole costs, and outcomes of few levels, some of them undefined."""
    queries = draw(st.integers(1, 6))

    def rows(values: st.SearchStrategy[Any]) -> Any:
        return draw(st.lists(values, min_size=queries, max_size=queries))

    one = st.lists(st.integers(0, 3), min_size=len(COSTS), max_size=len(COSTS))
    costs = np.array(rows(st.lists(one, min_size=VIEWS, max_size=VIEWS)), float)
    costs[..., COSTS.index("tokens_cached")] = 0
    levels = st.integers(0, 4).map(lambda level: level / 4)
    figures = [rows(levels) for _ in range(4)]
    for pair in ((0, 1), (2, 3)):
        for query, is_defined in enumerate(rows(st.integers(0, 3))):
            if not is_defined:
                for side in pair:
                    figures[side][query] = NAN
    policies = [policy(name, draw(st.permutations(range(queries)))) for name in ("V2", "random")]
    return Case(policies, costs, outcomes_of(*figures))


def naive_stage(costs: Floats, query: int, views: tuple[int, ...]) -> Cost:
    """The protocol's own arithmetic of views that are ranked beside each other."""
    total = Cost()
    for view in views:
        total = total.beside(Cost(*costs[query, view].astype(int).tolist()))
    return total


def naive_point(
    case: Case, policy: Policy, fraction: float, drawn: list[int]
) -> tuple[dict[str, float], float, float]:
    """Mean costs, L_F and NDCG@10 of the queries *drawn*, one after the other."""
    places = policy.order.tolist()
    routed = sorted(drawn, key=places.index)[: routed_count(len(drawn), fraction)]
    costs, losses, gains = [], [], []
    for query in drawn:
        is_routed = query in routed
        if is_routed:
            routed.remove(query)
        cost = naive_stage(case.costs, query, policy.first)
        if is_routed:
            cost = cost.then(naive_stage(case.costs, query, policy.then))
        costs.append(cost)
        found = case.outcomes
        losses.append(float((found.loss_borda if is_routed else found.loss_canonical).values[query]))
        gains.append(float((found.ndcg_borda if is_routed else found.ndcg_canonical).values[query]))
    means = {name: sum(getattr(cost, name) for cost in costs) / len(drawn) for name in COSTS}
    return means, naive_mean(losses), naive_mean(gains)


def naive_mean(values: list[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else NAN


def naive_dominates(b: tuple[float, float, float], a: tuple[float, float, float]) -> bool:
    """Whether b = (calls, L_F, NDCG@10) is nowhere worse than a and somewhere better."""
    no_worse = b[0] <= a[0] + 1e-12 and b[1] <= a[1] + 1e-12 and b[2] >= a[2] - 1e-12
    return no_worse and (b[0] < a[0] - 1e-12 or b[1] < a[1] - 1e-12 or b[2] > a[2] + 1e-12)


def tried(case: Case) -> list[tuple[Policy, float]]:
    nothing, everything = endpoints(len(case.costs), ROLES)
    between = [(each, fraction) for each in case.policies for fraction in FRACTIONS]
    return [(nothing, 0.0), *between, (everything, 1.0)]


def draws(resamples: Resamples) -> list[list[int]]:
    return [
        [query for query, count in enumerate(row) for _ in range(int(count))]
        for block in resamples.blocks()
        for row in block
    ]


@settings(max_examples=60, deadline=None)
@given(cases())
def test_every_point_equals_plain_python(case: Case) -> None:
    queries = len(case.costs)
    resamples = seeded_resamples(queries, "naive", 40)
    found = frontier(case.policies, ROLES, case.costs, case.outcomes, resamples, fractions=FRACTIONS)
    every = list(range(queries))
    expected = [naive_point(case, policy, fraction, every) for policy, fraction in tried(case)]
    triples = [(costs["calls"], loss, ndcg) for costs, loss, ndcg in expected]
    names = [point.name for point in found.points]
    is_defined = not any(math.isnan(figure) for triple in triples for figure in triple)

    for point, (costs, loss, ndcg), own in zip(found.points, expected, triples, strict=True):
        assert point.costs == pytest.approx(costs, abs=1e-12)
        assert [point.loss, point.ndcg] == pytest.approx([loss, ndcg], abs=1e-12, nan_ok=True)
        if is_defined:
            assert point.dominators == tuple(
                name for name, other in zip(names, triples, strict=True) if naive_dominates(other, own)
            )
        else:
            assert point.dominators is None
    assert found.reason == (None if is_defined else "no_defined_query")
    if is_defined:
        check_frequencies(case, found, resamples)
    else:
        assert all(math.isnan(point.domination_frequency) for point in found.points)


def check_frequencies(case: Case, found: Frontier, resamples: Resamples) -> None:
    """Route every resample anew, query by query."""
    beaten, undefined = [0] * len(found.points), 0
    for drawn in draws(resamples):
        triples = []
        for policy, fraction in tried(case):
            costs, loss, ndcg = naive_point(case, policy, fraction, drawn)
            triples.append((costs["calls"], loss, ndcg))
        if any(math.isnan(figure) for triple in triples for figure in triple):
            undefined += 1
            continue
        for place, own in enumerate(triples):
            beaten[place] += any(naive_dominates(other, own) for other in triples)
    assert found.undefined_replicates == undefined
    if undefined > 0.05 * resamples.replicates:
        assert found.frequency_reason == "undefined_replicates"
        assert all(math.isnan(point.domination_frequency) for point in found.points)
    else:
        counted = resamples.replicates - undefined
        assert [point.domination_frequency for point in found.points] == pytest.approx(
            [each / counted for each in beaten]
        )


@settings(max_examples=60, deadline=None)
@given(cases())
def test_fractions_of_none_and_of_all_are_the_endpoints(case: Case) -> None:
    resamples = seeded_resamples(len(case.costs), "ends", 5)
    found = frontier(
        case.policies,
        ROLES,
        case.costs,
        case.outcomes,
        resamples,
        fractions=(0, 1),
        aggregate="with_canonical",
    )
    points = points_of(found)
    nothing, everything = points["canonical_only"], points["always_aggregate"]
    for name in ("V2", "random"):
        for end, point in ((nothing, points[f"{name}@0"]), (everything, points[f"{name}@1"])):
            # The same to the last bit, so that no endpoint is called better than itself.
            assert [point.loss, point.ndcg] == pytest.approx([end.loss, end.ndcg], abs=0, nan_ok=True)
            assert point.routed == end.routed
    assert points["random@0"].costs == pytest.approx(nothing.costs, abs=1e-12)
    for name in set(COSTS) - {"depth"}:
        assert points["random@1"].costs[name] == pytest.approx(everything.costs[name], abs=1e-12)
    # A routed query waits for the canonical ranking, always aggregating waits for nothing.
    assert points["random@1"].costs["depth"] >= everything.costs["depth"] - 1e-12


@settings(max_examples=60, deadline=None)
@given(cases(), st.lists(st.integers(0, 20).map(lambda each: each / 20), min_size=2, max_size=5, unique=True))
def test_calls_rise_with_the_fraction_and_the_probe_adds_its_views(
    case: Case, fractions: list[float]
) -> None:
    resamples = seeded_resamples(len(case.costs), "rise", 5)
    fractions = sorted(fractions)
    points = points_of(
        frontier(case.policies, ROLES, case.costs, case.outcomes, resamples, fractions=fractions)
    )
    for name in ("V2", "random"):
        calls = [points[f"{name}@{fraction:g}"].costs["calls"] for fraction in fractions]
        assert all(later >= earlier - 1e-12 for earlier, later in pairwise(calls))
    unit = frontier(
        case.policies, ROLES, unit_costs(len(case.costs)), case.outcomes, resamples, fractions=fractions
    )
    for point in unit.points:
        share = point.routed / unit.queries
        expected = {"V2": 2 + 4 * share, "random": 1 + 4 * share, "canonical_only": 1, "always_aggregate": 4}
        assert point.views == pytest.approx(expected[point.policy])
        assert point.costs["calls"] == pytest.approx(expected[point.policy])


@settings(max_examples=40, deadline=None)
@given(cases(), st.data())
def test_the_order_of_the_queries_does_not_matter(case: Case, data: st.DataObject) -> None:
    new = data.draw(st.permutations(range(len(case.costs))))
    old = np.argsort(new)
    moved = outcomes_of(
        *(
            getattr(case.outcomes, name).values[new].tolist()
            for name in ("loss_canonical", "loss_borda", "ndcg_canonical", "ndcg_borda")
        )
    )
    policies = [policy(each.name, old[each.order].tolist()) for each in case.policies]
    resamples = seeded_resamples(len(case.costs), "moved", 5)
    before = frontier(case.policies, ROLES, case.costs, case.outcomes, resamples)
    after = frontier(policies, ROLES, case.costs[new], moved, resamples)
    for one, other in zip(before.points, after.points, strict=True):
        assert other.costs == pytest.approx(dict(one.costs), abs=1e-12)
        assert [other.loss, other.ndcg] == pytest.approx([one.loss, one.ndcg], abs=1e-12, nan_ok=True)
        assert other.dominators == one.dominators


@pytest.mark.parametrize(
    ("b", "is_dominator"),
    [
        ((2.0, 0.2, 0.7), False),  # the same figures
        ((1.9, 0.2, 0.7), True),  # fewer calls alone
        ((2.0, 0.1, 0.7), True),  # a smaller loss alone
        ((2.0, 0.2, 0.8), True),  # more NDCG alone
        ((1.0, 0.1, 0.8), True),
        ((2.1, 0.1, 0.8), False),  # better, but dearer
        ((1.0, 0.3, 0.8), False),  # less fair
        ((1.0, 0.1, 0.6), False),  # less effective
        ((2.0, 0.2 - 1e-13, 0.7), False),  # better by rounding
        ((2.0 + 1e-13, 0.2 + 1e-13, 0.8), True),  # worse by rounding
        ((1.0, NAN, 0.8), False),
    ],
)
def test_domination_by_hand(b: tuple[float, float, float], is_dominator: bool) -> None:
    a = (2.0, 0.2, 0.7)
    calls, loss, ndcg = np.array([a, b]).T
    found = dominations(calls, loss, ndcg)
    assert bool(found[0, 1]) is is_dominator
    assert not found[0, 0]
    if is_dominator:
        assert not found[1, 0]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0, NAN])] * 3), min_size=1, max_size=6))
def test_domination_is_a_strict_order_and_equals_plain_python(
    triples: list[tuple[float, float, float]],
) -> None:
    calls, loss, ndcg = np.array(triples).T
    found = dominations(calls, loss, ndcg)
    assert found.tolist() == [[naive_dominates(b, a) for b in triples] for a in triples]
    assert not (found & found.T).any()
    assert not ((found.astype(int) @ found.astype(int) > 0) & ~found).any()


def test_frequencies_leave_out_what_is_undefined() -> None:
    calls, loss = np.array([[1.0, 2.0]] * 3), np.array([[0.1, 0.1], [0.2, 0.1], [NAN, NAN]])
    shares, undefined = domination_frequencies([(calls, loss, np.ones((3, 2)))])
    assert (shares.tolist(), undefined) == ([0, 0.5], 1)
    shares, undefined = domination_frequencies([(calls[2:], loss[2:], np.ones((1, 2)))])
    assert np.isnan(shares).all()
    assert undefined == 1


def test_whether_the_canonical_call_is_still_made_decides_who_dominates() -> None:
    """At r = .5 the probe's policy costs 4 calls, as many as ranking the target views alone."""
    queries = 4
    outcomes = outcomes_of([0.4] * 4, [0.1] * 4, [0.5] * 4, [0.5] * 4)
    found = {}
    for aggregate in ("target_only", "with_canonical"):
        found[aggregate] = frontier(
            [policy("V2", [0, 1, 2, 3])],
            ROLES,
            unit_costs(queries),
            outcomes,
            paper_resamples(queries),
            fractions=(0.25, 0.5),
            aggregate=aggregate,
        )
    alone, both = points_of(found["target_only"]), points_of(found["with_canonical"])
    assert alone["V2@0.5"].costs["calls"] == alone["always_aggregate"].costs["calls"] == 4
    assert alone["V2@0.5"].dominators == ("always_aggregate",)
    assert alone["V2@0.5"].domination_frequency == 1
    assert both["always_aggregate"].costs["calls"] == 5
    assert both["V2@0.5"].dominators == ()
    assert both["V2@0.5"].domination_frequency == 0
    assert (found["target_only"].dominated("V2"), found["with_canonical"].dominated("V2")) == ((1, 2), (0, 2))


def test_other_fractions_of_a_policy_do_not_count_as_its_rivals() -> None:
    # Aggregating makes query 0 better and all others less fair; the endpoints lack one or the other.
    outcomes = outcomes_of([0.5] * 4, [0.1, 0.9, 0.9, 0.9], [0.5] * 4, [0.9, 0.5, 0.5, 0.5])
    found = frontier(
        [policy("random", [0, 1, 2, 3])],
        ROLES,
        unit_costs(4),
        outcomes,
        seeded_resamples(4, "rivals", 5),
        fractions=(0.25, 0.5, 0.75),
    )
    points = points_of(found)
    assert points["random@0.25"].dominators == ()
    assert points["random@0.5"].dominators == ("random@0.25",)
    assert points["random@0.75"].dominators == ("random@0.25", "random@0.5")
    assert points["always_aggregate"].dominators == ("random@0.25", "random@0.5", "random@0.75")
    assert found.dominated("random") == (0, 3)
    assert found.dominated("always_aggregate") == (1, 1)


def test_costs_of_a_routed_query_are_its_probe_and_its_target_views() -> None:
    costs = np.zeros((1, VIEWS, len(COSTS)))
    # calls, depth, tokens in, cached, out, seconds
    costs[0] = [
        [1, 1, 10, 0, 2, 0.5],
        [2, 2, 20, 5, 2, 0.25],
        *[[3, 3, 30, 10, 2, 1.0]] * 3,
        [4, 1, 40, 0, 2, 2.0],
    ]
    outcomes = outcomes_of([0.4], [0.1], [0.5], [0.9])
    policies = [policy("V2", [0]), policy("entropy", [0])]
    points = points_of(
        frontier(policies, ROLES, costs, outcomes, seeded_resamples(1, "one", 3), fractions=(0.25, 0.5))
    )
    assert points["V2@0.25"].costs == dict(zip(COSTS, [3, 2, 30, 5, 4, 0.75], strict=True))
    assert points["V2@0.5"].costs == dict(zip(COSTS, [16, 5, 160, 35, 12, 5.75], strict=True))
    assert points["entropy@0.5"].costs == dict(zip(COSTS, [14, 4, 140, 30, 10, 5.5], strict=True))
    assert points["always_aggregate"].costs == dict(zip(COSTS, [13, 3, 130, 30, 8, 5.0], strict=True))
    assert (points["V2@0.25"].loss, points["V2@0.5"].loss) == (0.4, 0.1)
    assert (points["V2@0.25"].ndcg, points["V2@0.5"].ndcg) == (0.5, 0.9)


def test_without_any_value_domination_is_undefined() -> None:
    found = frontier(
        [policy("V2", [0, 1])],
        ROLES,
        unit_costs(2),
        outcomes_of([NAN] * 2, [NAN] * 2, [0.5] * 2, [0.5] * 2),
        seeded_resamples(2, "none", 5),
    )
    assert (found.reason, found.frequency_reason) == ("no_defined_query", "no_defined_query")
    assert (found.loss_queries, found.ndcg_queries) == (0, 2)
    assert found.dominated("V2") is None
    assert all(point.dominators is None for point in found.points)
    assert points_of(found)["V2@0.5"].costs["calls"] == 4


def test_wrong_arrays_are_refused() -> None:
    outcomes = outcomes_of([0.4] * 2, [0.1] * 2, [0.5] * 2, [0.5] * 2)
    resamples = seeded_resamples(2, "wrong", 5)
    good, costs = policy("V2", [0, 1]), unit_costs(2)

    def refused(
        message: str, policies: list[Policy], costs: Floats, resamples: Resamples, **more: Any
    ) -> None:
        with pytest.raises(ValueError, match=message):
            frontier(policies, ROLES, costs, outcomes, resamples, **more)

    refused("V2 does not put 2 queries", [policy("V2", [0, 0])], costs, resamples)
    refused("V2 does not put 2 queries", [policy("V2", [0, 1, 2])], costs, resamples)
    refused(r"costs must be \(2, views, 6\)", [good], costs[:1], resamples)
    refused(r"costs must be \(2, views, 6\)", [good], costs[..., :5], resamples)
    refused("do not hold all views", [good], costs[:, :5], resamples)
    refused("at least 0", [good], -costs, resamples)
    refused("at least 0", [good], costs * NAN, resamples)
    refused("resamples of 3 queries", [good], costs, seeded_resamples(3, "wrong", 5))
    refused("twice: canonical_only, V2@0.1, V2@0.1", [good], costs, resamples, fractions=(0.1, 0.1))
    refused("twice", [good, good], costs, resamples)
    refused("between 0 and 1", [good], costs, resamples, fractions=(1.5,))
