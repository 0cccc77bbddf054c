"""Which queries each policy routes, against sorting in plain Python, and which policies are refused."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.errors import InvariError
from pytest_invari.metrics.arrays import PerQuery
from pytest_invari.observation.design import Design
from pytest_invari.routing import Policy, ViewRoles, make_policies, probe_instability
from pytest_invari.routing.policies import endpoints, routed_copies, routed_count, routed_queries

ROLES = ViewRoles(canonical=0, probe=(0, 1), target=(4, 5, 6, 7))
SALT = "salt"
IDS = st.lists(st.text(st.sampled_from("a19-é"), min_size=1, max_size=3), min_size=1, max_size=9, unique=True)


def scores(values: list[float]) -> PerQuery:
    return PerQuery.of(np.array(values, float))


def by_name(
    ids: list[str], instability: list[float], entropy: list[float], margin: list[float]
) -> dict[str, Policy]:
    found, refused = make_policies(
        ids,
        ROLES,
        instability=scores(instability),
        entropy=scores(entropy),
        margin=scores(margin),
        salt=SALT,
    )
    assert refused == []
    return {policy.name: policy for policy in found}


def routed_ids(policy: Policy, ids: list[str], fraction: float) -> set[str]:
    return {
        query for query, is_routed in zip(ids, routed_queries(policy, fraction), strict=True) if is_routed
    }


def naive_routed(ids: list[str], keys: list[float] | list[str], fraction: str) -> set[str]:
    """The first ⌊r·n + ½⌋ queries by key, then id."""
    ranked = sorted(zip(keys, ids, strict=True))
    return {query for _, query in ranked[: math.floor(Fraction(fraction) * len(ids) + Fraction(1, 2))]}


@settings(max_examples=150, deadline=None)
@given(IDS, st.sampled_from(["0", "0.1", "0.25", "0.29", "0.5", "1"]), st.data())
def test_routed_queries_are_the_first_of_a_plain_sort(
    ids: list[str], fraction: str, data: st.DataObject
) -> None:
    few = st.lists(st.sampled_from([0.0, 0.1, 0.7]), min_size=len(ids), max_size=len(ids))
    instability, entropy, margin = (data.draw(few) for _ in range(3))
    policies = by_name(ids, instability, entropy, margin)
    keys = {
        "V2": [-value for value in instability],
        "entropy": [-value for value in entropy],
        "margin": margin,
    }
    for name, key in keys.items():
        assert routed_ids(policies[name], ids, float(fraction)) == naive_routed(ids, key, fraction)
    hashes = [hashlib.sha256((SALT + query).encode()).hexdigest() for query in ids]
    assert routed_ids(policies["random"], ids, float(fraction)) == naive_routed(ids, hashes, fraction)


@settings(max_examples=50, deadline=None)
@given(IDS, st.sampled_from([0.1, 0.25, 0.5]), st.data())
def test_the_order_of_the_queries_and_what_they_are_called_do_not_matter(
    ids: list[str], fraction: float, data: st.DataObject
) -> None:
    drawn = st.lists(st.integers(0, 2).map(float), min_size=len(ids), max_size=len(ids))
    values = data.draw(drawn)
    before = by_name(ids, values, values, values)
    new = data.draw(st.permutations(range(len(ids))))
    moved_ids, moved = [ids[place] for place in new], [values[place] for place in new]
    after = by_name(moved_ids, moved, moved, moved)
    for name, policy in before.items():
        assert routed_ids(after[name], moved_ids, fraction) == routed_ids(policy, ids, fraction)
    # Names that sort alike route alike; only the random policy goes by the name itself.
    renamed = by_name([f"q{query}" for query in ids], values, values, values)
    for name in ("V2", "entropy", "margin"):
        assert renamed[name].order.tolist() == before[name].order.tolist()


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 7), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), st.data())
def test_resamples_are_routed_like_lists_of_queries(count: int, fraction: float, data: st.DataObject) -> None:
    order = np.array(data.draw(st.permutations(range(count))))
    draws = data.draw(
        st.lists(st.lists(st.integers(0, count - 1), min_size=count, max_size=count), min_size=1, max_size=3)
    )
    copies = np.array([np.bincount(drawn, minlength=count) for drawn in draws], float)
    found = routed_copies(Policy("any", order, (0,), (1,)), fraction, copies)
    places = order.tolist()
    for row, drawn in zip(found, draws, strict=True):
        routed = sorted(drawn, key=places.index)[: routed_count(count, fraction)]
        assert row.tolist() == [routed.count(query) for query in range(count)]


def test_half_a_query_is_routed_and_fractions_are_what_they_are_written_as() -> None:
    assert [routed_count(n, 0.1) for n in (4, 5, 14, 15, 1113)] == [0, 1, 1, 2, 111]
    assert [routed_count(n, 0.25) for n in (1, 2, 339)] == [0, 1, 85]
    # .29 times 50 is 14.499999999999998 in floating point.
    assert routed_count(50, 0.29) == 15
    assert [routed_count(7, fraction) for fraction in (0, 1)] == [0, 7]
    for fraction in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="between 0 and 1"):
            routed_count(10, fraction)


def test_each_policy_routes_from_its_own_end_and_ties_go_by_id() -> None:
    ids = ["9", "10", "b", "a"]
    policies = by_name(ids, [1.0, 1.0, 3.0, 0.0], [0.0, 2.0, 2.0, 5.0], [0.5, 0.2, 0.2, 0.9])
    order = {name: [ids[place] for place in policy.order] for name, policy in policies.items()}
    # "10" is before "9" in code-point order.
    assert order["V2"] == ["b", "10", "9", "a"]
    assert order["entropy"] == ["a", "10", "b", "9"]
    assert order["margin"] == ["10", "b", "9", "a"]


def test_scores_that_differ_by_rounding_tie() -> None:
    assert 0.1 + 0.2 > 0.3
    policies = by_name(["a", "b"], [0.3, 0.1 + 0.2], [0.3, 0.1 + 0.2], [0.1 + 0.2, 0.3])
    assert [policies[name].order.tolist() for name in ("V2", "entropy", "margin")] == [[0, 1]] * 3


def test_another_salt_is_another_random_order() -> None:
    ids = [f"q{number}" for number in range(30)]
    undefined = PerQuery.all_undefined(30, "no_scores")
    orders = []
    for salt in ("one", "two"):
        (policy,), refused = make_policies(
            ids, ROLES, instability=undefined, entropy=undefined, margin=undefined, salt=salt
        )
        orders.append(policy.order.tolist())
        assert [each.policy for each in refused] == ["V2", "entropy", "margin"]
    assert orders[0] != orders[1]


def test_the_probe_asks_for_more_views_than_the_others_by_its_nature() -> None:
    policies = by_name(["a", "b"], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0])
    assert [policies[name].views(0.25) for name in ("V2", "entropy", "margin", "random")] == [3, 2, 2, 2]
    nothing, everything = endpoints(2, ROLES)
    assert (nothing.views(0), everything.views(1)) == (1, 4)
    assert endpoints(2, ROLES, "with_canonical")[1].views(1) == 5
    with pytest.raises(ValueError, match="target_only, with_canonical"):
        endpoints(2, ROLES, "sometimes")  # type: ignore[arg-type]


def test_a_policy_without_scores_is_refused_by_name_and_reason() -> None:
    found, refused = make_policies(
        ["a", "b", "c"],
        ROLES,
        instability=scores([0.0, 1.0, 2.0]),
        entropy=PerQuery.all_undefined(3, "no_scores"),
        margin=PerQuery(np.array([1.0, np.nan, np.nan]), (None, "no_scores", "one_candidate")),
        salt=SALT,
    )
    assert [policy.name for policy in found] == ["V2", "random"]
    assert [str(each) for each in refused] == [
        "entropy: no score for 3 of 3 queries (no_scores 3)",
        "margin: no score for 2 of 3 queries (no_scores 1, one_candidate 1)",
    ]


def naive_instability(views: list[list[int]]) -> float:
    """(1/m) Σ_s ‖x_s − x̄‖², item by item."""
    items = len(views[0])
    top = min(10, items)
    total = math.fsum(1 / math.log2(rank + 2) for rank in range(top))
    exposure = [[1 / math.log2(rank + 2) / total if rank < top else 0.0 for rank in view] for view in views]
    columns = list(zip(*exposure, strict=True))
    means = [math.fsum(column) / len(views) for column in columns]
    return math.fsum(
        (x - mean) ** 2 for column, mean in zip(columns, means, strict=True) for x in column
    ) / len(views)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.sampled_from([(0, 1), (0, 1, 2), (3, 1)]), st.data())
def test_probe_instability_is_the_variance_of_exposure(
    items: int, probe: tuple[int, ...], data: st.DataObject
) -> None:
    ranks = np.array(data.draw(st.lists(st.permutations(range(items)), min_size=5, max_size=5)), np.int16)[
        None
    ]
    found = probe_instability(ranks, ViewRoles(0, probe, (4,)))
    expected = naive_instability([ranks[0, view].tolist() for view in probe])
    assert found.values[0] == pytest.approx(expected, abs=2e-12)


def test_a_probe_of_one_view_has_no_instability() -> None:
    ranks = np.zeros((2, 2, 1), np.int16)
    assert probe_instability(ranks, ViewRoles(0, (0,), (1,))).reasons == ("single_view_probe",) * 2


def test_roles_are_read_from_a_design() -> None:
    bank = ("13", "canonical", "17", "23", "29", "31")
    design = Design(bank, ("canonical", "13"), ("23", "29", "31"), probe_sizes=(2, 3))
    assert ViewRoles.of(design) == ViewRoles(1, (1, 0), (3, 4, 5))
    # The canonical view is ranked for every query, whatever the probe is.
    assert ViewRoles(1, (0, 2), (3,)).before_routing == (0, 1, 2)
    for other in (
        Design(bank, ("13", "17"), ("canonical", "29", "31"), probe_sizes=(2,)),
        Design(("13", "17", "23", "29", "31"), ("13", "17"), ("23", "29", "31"), probe_sizes=(2,)),
    ):
        with pytest.raises(InvariError, match="name it in the bank and not in the target"):
            ViewRoles.of(other)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ((0, (), (1,)), "need views"),
        ((0, (0, 1), ()), "need views"),
        ((-1, (0, 1), (2,)), "need views"),
        ((0, (0, 0), (2,)), "named twice"),
        ((0, (0, 1), (2, 2)), "named twice"),
        ((0, (0, 1), (1, 2)), "neither canonical nor in the probe"),
        ((0, (1, 2), (0, 3)), "neither canonical nor in the probe"),
    ],
)
def test_impossible_roles_are_refused(
    roles: tuple[int, tuple[int, ...], tuple[int, ...]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ViewRoles(*roles)


def test_queries_are_told_apart_by_their_ids() -> None:
    with pytest.raises(InvariError, match="'a' stands there twice"):
        by_name(["a", "a"], [0, 0], [0, 0], [0, 0])
    with pytest.raises(ValueError, match="entropy has 1 values for 2 queries"):
        by_name(["a", "b"], [0, 0], [0], [0, 0])
