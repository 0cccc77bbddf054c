"""How many queries would decide what a comparison leaves undecided."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from pytest_invari.baseline.comparison import _queries_needed
from pytest_invari.statistics import Interval

if TYPE_CHECKING:
    from pytest_invari.metrics.metric import Direction
    from tests.baseline.conftest import Gated


@pytest.mark.parametrize(
    ("loss", "margin", "distance"),
    [
        (0.1, 0.0, 0.1),
        (-0.1, 0.0, 0.1),
        # Beyond the margin only a regression is left, and on the better side of it only an improvement.
        (0.3, 0.2, 0.1),
        (-0.3, 0.2, 0.3),
        # Within it, "same" has to clear the nearer side; where it is better, an improvement may need less.
        (0.15, 0.2, 0.05),
        (-0.15, 0.2, 0.15),
        (-0.05, 0.2, 0.15),
        (0.0, 0.2, 0.2),
    ],
)
@pytest.mark.parametrize("direction", ["lower", "higher"])
def test_the_outcome_that_needs_the_fewest_queries_counts(
    loss: float, margin: float, distance: float, direction: Direction
) -> None:
    estimate = loss if direction == "lower" else -loss
    interval = Interval(estimate, estimate - 1, estimate + 1, n=40, standard_error=0.5)
    expected = math.ceil(40 * (2.8 * 0.5 / distance) ** 2 - 1e-6)
    assert _queries_needed(interval, margin, direction) == pytest.approx(expected, abs=1)


@pytest.mark.parametrize(("loss", "margin"), [(0.0, 0.0), (0.2, 0.2)])
def test_on_a_bound_no_number_does(loss: float, margin: float) -> None:
    interval = Interval(loss, loss - 1, loss + 1, n=40, standard_error=0.5)
    assert _queries_needed(interval, margin, "lower") is None


def test_an_undecided_comparison_says_how_many_queries_would_decide(gated: Gated) -> None:
    gated.save()
    gated.make_noise(0.45)
    found = gated.changes("--invari-html=page.html", "--junitxml=junit.xml")
    undecided = [each for each in found.values() if each["outcome"] == "undecided"]
    assert undecided
    page = (gated.project.path / "page.html").read_text(encoding="utf-8")
    junit = (gated.project.path / "junit.xml").read_text(encoding="utf-8")
    # Of hr@2 one query has changed, and 31 say neither better nor worse.
    assert {each["criterion"]: each["n_needed"] for each in undecided}["hr@2"] is None
    for each in undecided:
        said = "nearly every query, lies on the bound, so more queries may not decide"
        if each["n_needed"] is not None:
            assert each["n_needed"] > 32
            said = f"about {each['n_needed']:,} queries would decide"
            assert f'name="invari_n_needed" value="{each["n_needed"]}"' in junit
        assert each["text"].endswith(said)
        assert said in page
    few = gated.compare("--invari-queries=8")
    few.stdout.no_fnmatch_line("*about 30 queries would decide*")
