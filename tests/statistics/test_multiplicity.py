"""Holm's adjustment: the golden cases, the closed tests that it shortens, and how often it errs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from pytest_invari.statistics import holm

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "g16_holm.json").read_text(encoding="utf-8"))
p_values = st.lists(st.floats(0, 1), max_size=7)


@pytest.mark.parametrize(
    ("given_values", "expected"),
    list(zip(GOLDEN["inputs"]["p"], GOLDEN["expected"]["adjusted"], strict=True)),
)
def test_golden_p_values_are_adjusted_exactly(given_values: list[float], expected: list[float]) -> None:
    assert holm(given_values) == pytest.approx(expected, abs=GOLDEN["tolerance"])


@given(p_values)
def test_it_is_the_closed_test_of_bonferroni(values: list[float]) -> None:
    # A claim stands when each set of claims that it is in has a small product of size and least p-value.
    expected = []
    for index in range(len(values)):
        others = [place for place in range(len(values)) if place != index]
        sets = [
            [index, *chosen]
            for size in range(len(others) + 1)
            for chosen in itertools.combinations(others, size)
        ]
        worst = max(len(each) * min(values[place] for place in each) for each in sets)
        expected.append(min(1.0, worst))
    assert holm(values) == pytest.approx(expected)


@given(p_values, st.integers(0, 20))
def test_a_family_bears_its_part_of_all_tests(values: list[float], others: int) -> None:
    total = len(values) + others
    scaled = [min(1.0, value * total / len(values)) for value in holm(values)]
    # Not exactly the same where one is capped before it is scaled, but then both are 1.
    assert holm(values, of=total) == pytest.approx(scaled)


def test_equal_p_values_share_the_smallest_adjusted_one() -> None:
    assert holm([1 / 1001] * 8) == [pytest.approx(8 / 1001)] * 8


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5, value])


def test_a_family_cannot_be_larger_than_all_tests() -> None:
    with pytest.raises(ValueError, match="a family of 3 tests cannot be part of 2"):
        holm([0.1, 0.2, 0.3], of=2)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_a_false_claim_is_as_rare_in_families_as_promised(correlation: float) -> None:
    # Two families of 3 and 7 tests, of which 2 and 5 are of true null hypotheses.
    random = np.random.default_rng(11)
    runs, sizes, nulls = 4000, (3, 7), (2, 5)
    shared = random.normal(size=(runs, 1))
    noise = random.normal(size=(runs, sum(sizes)))
    z = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * noise
    effects = np.concatenate(
        [np.where(np.arange(s) < n, 0.0, 4.0) for s, n in zip(sizes, nulls, strict=True)]
    )
    tests = ndtr(-(z + effects))
    wrong = found = 0
    for row in tests:
        adjusted = np.array(holm(row[:3].tolist(), of=10) + holm(row[3:].tolist(), of=10))
        claimed = adjusted <= 0.05
        wrong += bool(claimed[effects == 0].any())
        found += int(claimed[effects > 0].sum())
    # Three standard errors above .05.
    assert wrong / runs < 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)
    assert found / runs > 0.85 * 3
    unadjusted = (tests[:, effects == 0] <= 0.05).any(axis=1).mean()
    assert unadjusted > 0.1
