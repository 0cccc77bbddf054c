"""One-call uncertainty: the reranker's own word, else the softmax of its scores, else a reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_invari.observation.observation import Observation
from pytest_invari.observation.uncertainty import canonical_uncertainty, certainty
from pytest_invari.protocol import Ranking

FINITE = st.floats(-700, 700)


def seen(
    query: str,
    scores: Sequence[float] | None = None,
    diagnostics: Mapping[str, Any] | None = None,
    *,
    view: str = "canonical",
    status: Any = "ok",
) -> Observation:
    ids = tuple("abcd")
    given = None if scores is None else tuple(scores)
    return Observation(query, view, ids, Ranking(ids, given, status=status, diagnostics=diagnostics or {}))


def of(*observations: Observation, queries: Sequence[str] = ("q",)) -> list[tuple[Any, Any]]:
    """Entropy and margin of each query, a reason in place of a value that is undefined."""
    found = canonical_uncertainty(queries, observations)
    columns = [
        [reason or value for value, reason in zip(each.values, each.reasons, strict=True)]
        for each in (found.entropy, found.margin)
    ]
    return list(zip(*columns, strict=True))


def test_softmax_of_logarithms_of_whole_numbers_is_their_shares() -> None:
    weights = (8, 4, 3, 1)
    shares = [Fraction(weight, 16) for weight in weights]
    entropy = -sum(float(share) * math.log(share) for share in shares)
    [(found, margin)] = of(seen("q", [math.log(weight) + 5 for weight in weights]))
    assert found == pytest.approx(entropy, abs=1e-12)
    assert margin == pytest.approx(float(shares[0] - shares[1]), abs=1e-12)


def test_four_equal_scores_are_as_unsure_as_can_be() -> None:
    assert of(seen("q", [2.0] * 4)) == [(pytest.approx(math.log(4)), 0.0)]
    assert certainty([3.0]) == {"entropy": 0.0, "top_two_margin": 1.0}
    assert math.copysign(1, certainty([3.0])["entropy"]) == 1


def test_scores_of_any_size_have_a_softmax() -> None:
    assert certainty([1e300, 0.0, -1e300]) == {"entropy": 0.0, "top_two_margin": 1.0}
    assert certainty([-1e300, -1e300]) == {"entropy": pytest.approx(math.log(2)), "top_two_margin": 0.0}


@given(st.lists(FINITE, min_size=1, max_size=6), st.randoms())
def test_the_range_and_the_order_of_the_scores(scores: list[float], random: Any) -> None:
    found = certainty(scores)
    assert 0 <= found["entropy"] <= math.log(len(scores)) + 1e-12
    assert 0 <= found["top_two_margin"] <= 1
    random.shuffle(scores)
    assert certainty(scores) == found


def test_the_rerankers_own_word_goes_before_its_scores() -> None:
    own = {"entropy": 1.25, "top_two_margin": 0.5, "fault": ""}
    assert of(seen("q", [4.0, 3.0, 2.0, 1.0], own)) == [(1.25, 0.5)]
    assert of(seen("q", None, own)) == [(1.25, 0.5)]
    assert of(seen("q", None, {"entropy": 2})) == [(2.0, "no_scores")]
    [(entropy, margin)] = of(seen("q", [0.0] * 4, {"entropy": 0.25}))
    assert (entropy, margin) == (0.25, 0.0)


@pytest.mark.parametrize("value", ["high", None, True, math.nan, math.inf, [1.0]])
def test_a_word_that_is_no_number_is_not_one(value: object) -> None:
    assert of(seen("q", None, {"entropy": value, "top_two_margin": 0.5})) == [("no_scores", 0.5)]


def test_what_is_undefined_says_why() -> None:
    observations = [
        seen("whole", [4.0, 3.0, 2.0, 1.0]),
        seen("other", [4.0, 3.0, 2.0, 1.0], view="13"),
        seen("order"),
        seen("infinite", [math.inf, 3.0, 2.0, 1.0]),
        seen("partial", [4.0, 3.0, 2.0, 1.0], status="partial"),
        seen("repaired", [0.0] * 4, status="repaired"),
        Observation("failed", "canonical", tuple("abcd"), Ranking.failed("asleep")),
    ]
    queries = [each.query_id for each in observations] + ["unseen"]
    found = canonical_uncertainty(queries, observations)
    assert found.entropy.reasons == found.margin.reasons == (
        None, "no_canonical_view", "no_scores", "no_scores", "failed_views", None, "failed_views",
        "no_canonical_view",
    )  # fmt: skip
    assert found.entropy.values.dtype == np.float64
    # The order is that of the queries, not of the observations.
    turned = canonical_uncertainty(queries[::-1], observations)
    np.testing.assert_array_equal(turned.margin.values[::-1], found.margin.values)
