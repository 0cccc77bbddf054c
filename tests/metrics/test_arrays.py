"""Building arrays from ids and scores, per-query results, and memory that does not grow with the queries."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_invari.errors import InvariError
from pytest_invari.metrics.arrays import Integers, PerQuery, merge, query_arrays, ranks_from_scores
from pytest_invari.metrics.effectiveness import ndcg_candidates
from pytest_invari.metrics.exposure import exposure
from pytest_invari.metrics.gpi import gpi
from pytest_invari.metrics.loc import loc
from pytest_invari.metrics.ppi import ppi
from pytest_invari.metrics.preference import tie_rate


def test_ids_are_sorted_by_code_point_and_name_the_items() -> None:
    arrays = query_arrays("q", [["9", "10", "b"], ["b", "9", "10"]], [["b", "9", "10"], ["10", "b", "9"]])
    assert arrays.ids == ("10", "9", "b")
    assert arrays.positions.tolist() == [[1, 0, 2], [2, 1, 0]]
    assert arrays.ranks.tolist() == [[2, 1, 0], [0, 2, 1]]
    assert arrays.positions.dtype == arrays.ranks.dtype == arrays.tied_ranks.dtype == np.int16
    assert arrays.tied_ranks.tolist() == arrays.ranks.tolist()


def test_equal_scores_share_the_best_rank() -> None:
    outputs = [["a", "c", "b", "d"], ["d", "c", "b", "a"]]
    arrays = query_arrays("q", [["a", "b", "c", "d"]] * 2, outputs, [[0.9, 0.5, 0.5, 0.1], None])
    assert arrays.ranks.tolist() == [[0, 2, 1, 3], [3, 2, 1, 0]]
    assert arrays.tied_ranks.tolist() == [[0, 1, 1, 3], [3, 2, 1, 0]]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8))
def test_rank_is_the_number_of_higher_scores(scores: list[int]) -> None:
    expected = [sum(other > score for other in scores) for score in scores]
    assert ranks_from_scores(np.array([scores], float)).tolist() == [expected]


def test_scores_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        ranks_from_scores(np.array([0.1, np.nan]))


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        (
            [["a", "b"], ["b", "a"]],
            [["a", "b"], ["a", "a"]],
            "view 1: the output .*missing 'b'; repeated 'a'",
        ),
        ([["a", "b"]], [["a"]], "view 0: the output .*missing 'b'"),
        ([["a", "b"]], [["a", "c"]], "view 0: the output .*unknown 'c'; missing 'b'"),
        ([["a", "b"], ["a", "c"]], [["a", "b"], ["a", "c"]], "view 1: the input .*unknown 'c'"),
        ([["a", "a"]], [["a", "a"]], "view 0: the input .*repeated 'a'"),
        ([["a", "b"]], [], "1 inputs and 0 outputs"),
        ([], [], "0 inputs and 0 outputs"),
    ],
)
def test_outputs_that_are_no_permutation_are_refused_by_query_and_view(
    inputs: list[list[str]], outputs: list[list[str]], message: str
) -> None:
    with pytest.raises(InvariError, match=f"query 'q7'.*{message}") as caught:
        query_arrays("q7", inputs, outputs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scores", [[[0.1, 0.2]], [[0.2]], [[float("nan"), 0.1]], []])
def test_scores_that_do_not_belong_to_the_output_are_refused(scores: list[list[float]]) -> None:
    with pytest.raises(InvariError, match=r"query 'q'.*score"):
        query_arrays("q", [["a", "b"]], [["a", "b"]], scores)


def test_more_candidates_than_the_arrays_hold_are_refused() -> None:
    ids = [str(number) for number in range(32768)]
    with pytest.raises(InvariError, match="32768 candidates"):
        query_arrays("q", [ids], [ids])


def test_undefined_values_carry_reasons_and_leave_the_mean() -> None:
    result = PerQuery.of(np.array([1.0, 5.0, 3.0]), np.array([False, True, False]), "why")
    assert result.reasons == (None, "why", None)
    assert result.defined.tolist() == [True, False, True]
    assert result.mean == 2
    assert np.isnan(PerQuery.all_undefined(2, "why").mean)
    with pytest.raises(ValueError, match="reason code"):
        PerQuery(np.array([np.nan]), (None,))
    with pytest.raises(ValueError, match="reason code"):
        PerQuery(np.array([1.0]), ("why",))


def test_merge_restores_the_order_of_the_queries() -> None:
    short = PerQuery.of(np.array([1.0, 2.0]), np.array([False, True]), "why")
    long = PerQuery.of(np.array([3.0]))
    merged = merge(4, [(np.array([2, 0]), short), (np.array([1]), long)])
    assert merged.values[[1, 2]].tolist() == [3, 1]
    assert merged.reasons == ("why", None, None, "not_observed")


KERNELS: dict[str, Callable[[Integers, Integers], object]] = {
    "ppi": ppi,
    "gpi": lambda positions, ranks: gpi(ranks),
    "loc": lambda positions, ranks: loc(ranks),
    "tie_rate": lambda positions, ranks: tie_rate(ranks),
    "exposure": lambda positions, ranks: exposure(positions, ranks, 5),
    "ndcg": lambda positions, ranks: ndcg_candidates(ranks, ranks[:, 0] < 3, 5),
}


@pytest.mark.parametrize("name", KERNELS)
def test_memory_does_not_grow_with_the_number_of_queries(name: str) -> None:
    random = np.random.default_rng(0)
    few = np.argsort(random.random((6000, 20, 20)), axis=-1).astype(np.int16)
    many = np.tile(few, (3, 1, 1))
    # 12,000 more queries may cost their results, up to one number an item; their views alone take 800 bytes.
    assert peak(KERNELS[name], many) < peak(KERNELS[name], few) + 12000 * 300


def peak(kernel: Callable[[Integers, Integers], object], ranks: Integers) -> int:
    tracemalloc.start()
    try:
        kernel(ranks, ranks)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
