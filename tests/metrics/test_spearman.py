"""Spearman's correlation of views against scipy pair by pair, exact fractions, and its identities."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from pytest_invari.metrics import parse_metric
from pytest_invari.metrics.arrays import Integers
from pytest_invari.metrics.spearman import CONSTANT_RANKING, spearman

if TYPE_CHECKING:
    from tests.session.conftest import Project

Views = list[list[int]]


def as_ranks(scores: Views) -> Integers:
    """(1, M, K) ranks from scores, lower is better: each the number of items above, equal where tied."""
    return np.array([[rankdata(view, method="min") - 1 for view in scores]], np.int16)


def naive(ranks: Views) -> Fraction:
    """Without ties: 1 − 6Σd²/(K(K²−1)), the mean over pairs of views."""
    items = len(ranks[0])
    rhos = [
        1 - Fraction(6 * sum((a - b) ** 2 for a, b in zip(one, other, strict=True)), items * (items**2 - 1))
        for one, other in combinations(ranks, 2)
    ]
    return sum(rhos, Fraction(0)) / len(rhos)


def permutations(least_views: int = 2) -> st.SearchStrategy[Views]:
    return st.integers(2, 6).flatmap(
        lambda items: st.lists(st.permutations(range(items)), min_size=least_views, max_size=6)
    )


def tied() -> st.SearchStrategy[Views]:
    return st.integers(2, 6).flatmap(
        lambda items: st.lists(
            st.lists(st.integers(0, 3), min_size=items, max_size=items), min_size=2, max_size=5
        )
    )


@given(permutations())
def test_untied_views_by_the_textbook_formula(views: Views) -> None:
    [value] = spearman(np.array([views], np.int16)).values
    assert value == pytest.approx(float(naive(views)), abs=1e-14)
    assert -1 / (len(views) - 1) - 1e-14 <= value <= 1


@given(tied())
def test_tied_views_as_scipy_has_each_pair(scores: Views) -> None:
    found = spearman(as_ranks(scores))
    if any(len(set(view)) == 1 for view in scores):
        assert found.reasons == (CONSTANT_RANKING,)
        return
    pairs = [spearmanr(one, other).statistic for one, other in combinations(scores, 2)]
    assert found.values[0] == pytest.approx(np.mean(pairs), abs=1e-12)


@given(permutations())
def test_it_is_the_coefficient_of_concordance(views: Views) -> None:
    count, items = len(views), len(views[0])
    sums = np.array(views).sum(axis=0)
    concordance = 12 * ((sums - sums.mean()) ** 2).sum() / (count**2 * (items**3 - items))
    [value] = spearman(np.array([views], np.int16)).values
    assert value == pytest.approx((count * concordance - 1) / (count - 1), abs=1e-12)


@given(permutations(), st.integers(0, 99))
def test_order_of_views_names_of_items_and_reversal_change_nothing(views: Views, seed: int) -> None:
    ranks = np.array([views], np.int16)
    rng = np.random.default_rng(seed)
    value = spearman(ranks).values
    assert spearman(ranks[:, rng.permutation(len(views))]).values == pytest.approx(value, abs=1e-14)
    assert spearman(ranks[:, :, rng.permutation(len(views[0]))]).values == pytest.approx(value, abs=1e-14)
    assert spearman(len(views[0]) - 1 - ranks).values == pytest.approx(value, abs=1e-14)


@pytest.mark.parametrize("items", [2, 3, 7, 50])
def test_what_is_invariant_is_exactly_1_and_two_reverses_are_exactly_minus_1(items: int) -> None:
    view = np.random.default_rng(items).permutation(items).astype(np.int16)
    assert spearman(np.tile(view, (1, 7, 1))).values.tolist() == [1.0]
    assert spearman(np.array([[view, items - 1 - view]])).values.tolist() == [-1.0]


def test_it_is_0_on_average_where_nothing_is_shared() -> None:
    ranks = np.random.default_rng(3).random((400, 6, 20)).argsort(axis=2).astype(np.int16)
    assert abs(spearman(ranks).mean) < 0.01


@pytest.mark.parametrize(
    ("shape", "reason"), [((2, 1, 5), "fewer_than_2_views"), ((2, 3, 1), "fewer_than_2_items")]
)
def test_without_a_pair_it_is_undefined(shape: tuple[int, int, int], reason: str) -> None:
    assert spearman(np.zeros(shape, np.int16)).reasons == (reason, reason)


def test_it_declares_itself_whole() -> None:
    metric = parse_metric("spearman")
    assert (metric.row, metric.null, metric.least(5)) == ("Spearman", 0.0, -0.25)
    assert metric.meaning(CONSTANT_RANKING) == "constant_ranking (a view ties all items, and has no order)"


def test_a_suite_judges_and_reports_it(project: Project) -> None:
    project.write_suite("own", spearman="at_least = 0.7")
    result = project.pytest("own.invari.toml", "--reranker=first_stage", "--reranker=input_order")
    result.stdout.fnmatch_lines(["Spearman *1.000 [[]*", "FAIL *", "*spearman must be at least 0.7*"])
    result.assert_outcomes(passed=1, failed=1)
