"""Label agreement against loops over item pairs and pairs of views, and on rerankers whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.metrics.agreement_gap import AgreementGap
from pytest_invari.metrics.arrays import Floats, Integers, ranks_from_scores
from pytest_invari.metrics.label_agreement import label_agreement

Views = list[list[int]]
Drawn = tuple[Integers, Integers]


def naive_shares(labels: Views, ranks: Views) -> dict[bool, list[Fraction]]:
    """For each (item pair, pair of views) how far they agree, by whether the label order is the same."""
    found: dict[bool, list[Fraction]] = {True: [], False: []}
    for i, j in combinations(range(len(ranks[0])), 2):
        for s, t in combinations(range(len(ranks)), 2):
            alike = (labels[s][i] < labels[s][j]) == (labels[t][i] < labels[t][j])
            signs = [(view[j] > view[i]) - (view[j] < view[i]) for view in (ranks[s], ranks[t])]
            found[alike].append(Fraction(1 + signs[0] * signs[1], 2))
    return found


@st.composite
def observed(draw: st.DrawFn) -> Drawn:
    """Labels and ranks (2, M, K), some ranks tied."""
    views, size = draw(st.integers(2, 5)), draw(st.integers(2, 5))
    orders = st.permutations(range(size))
    levels = st.lists(st.integers(0, 2), min_size=size, max_size=size)
    tied = levels.map(lambda given: [sum(other < each for other in given) for each in given])
    # Few label orders, so that they are often all the same or all reversed.
    borne = orders | st.just(list(range(size))) | st.just(list(range(size))[::-1])
    labels = [[draw(borne) for _ in range(views)] for _ in range(2)]
    ranks = [[draw(orders | tied) for _ in range(views)] for _ in range(2)]
    return np.array(labels, np.int16), np.array(ranks, np.int16)


@settings(max_examples=80, deadline=None)
@given(observed())
def test_gap_equals_the_naive_one(drawn: Drawn) -> None:
    labels, ranks = drawn
    check_against_naive(labels, ranks)


@pytest.mark.parametrize(("views", "items"), [(9, 4), (33, 3), (70, 3), (3, 130)])
def test_gap_of_many_views_or_items_equals_the_naive_one(views: int, items: int) -> None:
    random = np.random.default_rng(views)
    labels, ranks = (random.permuted(np.tile(np.arange(items), (2, views, 1)), axis=2) for _ in range(2))
    check_against_naive(labels.astype(np.int16), ranks.astype(np.int16))


def check_against_naive(labels: Integers, ranks: Integers) -> None:
    found = label_agreement(labels, ranks)
    for n in range(len(ranks)):
        naive = naive_shares(labels[n].tolist(), ranks[n].tolist())
        means = {alike: sum(each, Fraction(0)) / len(each) for alike, each in naive.items() if each}
        for value, alike in ((found.same[n], True), (found.other[n], False)):
            assert (
                np.isnan(value)
                if alike not in means
                else value == pytest.approx(float(means[alike]), abs=1e-12)
            )
        if len(means) == 2:
            assert found.values[n] == pytest.approx(float(means[True] - means[False]), abs=1e-12)
        else:
            assert found.reasons[n] == ("labels_never_differ" if True in means else "labels_always_differ")


@settings(max_examples=40, deadline=None)
@given(observed(), st.data())
def test_names_of_items_order_of_views_and_direction_do_not_matter(drawn: Drawn, data: st.DataObject) -> None:
    labels, ranks = drawn
    items = data.draw(st.permutations(range(ranks.shape[2])))
    views = data.draw(st.permutations(range(ranks.shape[1])))
    last = ranks.shape[2] - 1
    expected = label_agreement(labels, ranks)
    for other in (
        label_agreement(labels[:, :, items], ranks[:, :, items]),
        label_agreement(labels[:, views], ranks[:, views]),
        label_agreement(last - labels, ranks),
        label_agreement(labels, last - ranks),
    ):
        np.testing.assert_allclose(other.values, expected.values, atol=1e-12)
        assert other.reasons == expected.reasons


def redrawn(seed: int, queries: int, views: int, items: int) -> Integers:
    random = np.random.default_rng(seed)
    labels: Integers = random.permuted(np.tile(np.arange(items, dtype=np.int16), (queries, views, 1)), axis=2)
    return labels


def test_an_invariant_reranker_has_exactly_no_gap() -> None:
    labels = redrawn(1, 20, 6, 10)
    ranks = np.repeat(redrawn(2, 20, 1, 10), 6, axis=1)
    found = label_agreement(labels, ranks)
    assert found.values.tolist() == [0.0] * 20
    assert found.same.tolist() == found.other.tolist() == [1.0] * 20


@pytest.mark.parametrize("direction", [1, -1])
def test_a_reranker_that_goes_by_the_label_has_a_gap_of_one(direction: int) -> None:
    labels = redrawn(3, 20, 6, 10)
    ranks = labels if direction == 1 else 9 - labels
    found = label_agreement(labels, ranks)
    assert found.values.tolist() == found.same.tolist() == [1.0] * 20
    assert found.other.tolist() == [0.0] * 20


@pytest.mark.parametrize("tiers", [1, 2, 5, 10])
def test_the_gap_is_the_share_of_pairs_that_the_label_decides(tiers: int) -> None:
    # The better tier comes first; within a tier the label decides. Of the 45 pairs, those within tiers.
    labels = redrawn(4, 400, 8, 10)
    tier = np.arange(10) * tiers // 10
    ranks = ranks_from_scores(-np.asarray(100 * tier + labels, np.float64))
    within = sum(tier[i] == tier[j] for i, j in combinations(range(10), 2)) / 45
    found = label_agreement(labels, ranks)
    assert found.same.tolist() == [1.0] * 400
    assert found.mean == pytest.approx(within, abs=0.01)


@pytest.mark.parametrize("views", [2, 3, 6, 20])
@pytest.mark.parametrize("noise", [0.3, 1.0, 10.0])
def test_the_gap_is_unbiased_for_none_where_labels_do_not_matter(noise: float, views: int) -> None:
    found = simulated(noise, views, lambda labels: np.zeros(labels.shape))
    standard_error = np.nanstd(found.values) / np.sqrt(found.defined.sum())
    assert abs(found.mean) < 4 * standard_error


def test_the_gap_of_labels_that_matter_does_not_depend_on_the_number_of_views() -> None:
    few, many = (
        simulated(1.0, views, lambda labels: np.asarray(0.3 * labels, np.float64)) for views in (3, 20)
    )
    assert few.mean == pytest.approx(many.mean, abs=0.02)
    assert many.mean > 0.1


def simulated(noise: float, views: int, of_label: Callable[[Integers], Floats]) -> AgreementGap:
    random = np.random.default_rng(views)
    labels = redrawn(views, 1500, views, 8)
    worth = random.normal(size=(1500, 1, 8)) + noise * random.normal(size=labels.shape)
    return label_agreement(labels, ranks_from_scores(worth - of_label(labels)))


@pytest.mark.parametrize(
    ("shape", "reason"), [((2, 1, 3), "fewer_than_2_views"), ((2, 3, 1), "fewer_than_2_items")]
)
def test_too_few_views_or_items_are_undefined(shape: tuple[int, int, int], reason: str) -> None:
    ranks = np.broadcast_to(np.arange(shape[2], dtype=np.int16), shape)
    found = label_agreement(ranks, ranks)
    assert found.reasons == (reason, reason)
    assert np.isnan([found.values, found.same, found.other]).all()


def test_labels_bound_to_items_for_good_leave_the_gap_undefined() -> None:
    labels = np.repeat(redrawn(5, 3, 1, 4), 6, axis=1)
    assert label_agreement(labels, redrawn(6, 3, 6, 4)).reasons == ("labels_never_differ",) * 3


def test_labels_that_are_no_permutation_are_refused() -> None:
    ranks = redrawn(7, 1, 3, 4)
    with pytest.raises(ValueError, match="permutation"):
        label_agreement(ranks // 2, ranks)
    with pytest.raises(ValueError, match="differ in shape"):
        label_agreement(ranks[:, :2], ranks)


def test_no_queries_give_an_empty_result() -> None:
    empty = np.empty((0, 4, 5), np.int16)
    assert len(label_agreement(empty, empty)) == 0
