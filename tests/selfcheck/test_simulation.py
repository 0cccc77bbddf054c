"""The simulation behind the self-check: known truths, honest rates, and that it catches what it is for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scipy.stats import binomtest

from pytest_invari.criteria.metric import MetricCriterion
from pytest_invari.measure.measured import Measured
from pytest_invari.observation.plan import Plan
from pytest_invari.selfcheck import simulation
from pytest_invari.selfcheck.simulation import SIMULATED, Rate, Trial, World
from pytest_invari.statistics import Interval
from pytest_invari.suitefile.reader import find_suite

SUITE = find_suite("recsys26")
CRITERIA = {each.name: each for each in SUITE.criteria if isinstance(each, MetricCriterion)}
PLAN = Plan(dataset="", k=6, queries=30, views=4)


@pytest.fixture(scope="module")
def world() -> World:
    return World(PLAN, 40)


@pytest.mark.parametrize(("count", "total"), [(0, 40), (1, 40), (17, 40), (40, 40), (5, 200)])
def test_a_rates_interval_is_clopper_and_pearsons(count: int, total: int) -> None:
    expected = binomtest(count, total).proportion_ci(0.95, "exact")
    assert Rate(count, total).interval == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize("reranker", ["invariant", "sorts_by_id"])
def test_an_invariant_reranker_has_the_known_truth_and_always_passes(world: World, reranker: str) -> None:
    for name, truth in (("loc", 1.0), ("gpi", 0.0), ("calls", 1.0)):
        trial = world.trial(CRITERIA[name], reranker, SUITE)
        assert (trial.truth, trial.right) == (truth, "pass")
        assert (trial.passed.share, trial.wrong.count, trial.broken) == (1.0, 0, [])


def test_an_echo_of_the_input_is_found_out_every_time(world: World) -> None:
    trial = world.trial(CRITERIA["loc"], "input_echo", SUITE)
    assert trial.right == "fail"
    assert abs(trial.truth) < 0.03
    assert trial.failed.share == 1.0
    assert trial.wrong is trial.passed


def test_stronger_position_effects_have_lower_truths(world: World) -> None:
    order = ["noise", "position_0.5", "position_2"]
    truths = [world.trial(CRITERIA["loc"], name, SUITE).truth for name in order]
    assert truths == sorted(truths, reverse=True)
    assert set(order) < set(SIMULATED)


def test_a_comparison_is_judged_on_the_difference_from_the_simulated_baseline(world: World) -> None:
    trial = world.trial(CRITERIA["loc_vs_baseline"], "invariant", SUITE)
    assert trial.right == "pass"
    assert 0.5 < trial.truth < 1.0


class TooNarrow(Measured):
    """Intervals of a quarter of their width."""

    def interval(self, name: str) -> Interval:
        found = super().interval(name)
        width = 0.25
        return replace(
            found,
            low=found.estimate + width * (found.low - found.estimate),
            high=found.estimate + width * (found.high - found.estimate),
        )


def test_intervals_that_are_too_narrow_break_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "Measured", TooNarrow)
    trial = World(PLAN, 40).trial(CRITERIA["loc"], "noise", SUITE)
    assert len(trial.broken) == 2
    assert trial.broken[0].startswith("has its interval below the truth in ")


def test_a_verdict_opposite_to_the_truth_is_wrong_and_undecided_is_not() -> None:
    def rate(count: int) -> Rate:
        return Rate(count, 200)

    trial = Trial(0.7, 0.75, "fail", rate(25), rate(100), rate(75), rate(0), rate(0))
    assert trial.wrong == rate(25)
    assert trial.broken == ["is passed wrongly in 12.5% [8.3%, 17.9%] of 200"]
    assert replace(trial, right="pass", failed=rate(9)).broken == []
