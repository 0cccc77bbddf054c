"""Measured: figures follow from the observations, the plan and the names alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from statistics import mean
from typing import Any

import numpy as np
import pytest

from pytest_invari import statistics
from pytest_invari.errors import InvariError
from pytest_invari.measure.blocks import Pooled
from pytest_invari.measure.measured import Measured
from pytest_invari.metrics import built_in_metrics
from pytest_invari.metrics.arrays import PerQuery
from pytest_invari.metrics.exposure import exposure, maximum_exposure_deviation
from pytest_invari.metrics.gpi import gpi
from pytest_invari.metrics.loc import loc
from pytest_invari.metrics.ppi import ppi
from pytest_invari.observation.observe import observe
from pytest_invari.observation.plan import Plan, SubjectName
from pytest_invari.protocol import Cost, Ranking, Request
from pytest_invari.protocol.seeding import shuffled
from pytest_invari.tasks.task import TaskSet

PLAN = Plan("films", 5, None, 6, repeats=3)
EVERY_METRIC = tuple(
    f"{name}@2" if metric.has_cutoff else name
    for name, metric in built_in_metrics().items()
    if metric.kind != "analysis"
)


class Noisy:
    """Scores by a hash of query, item and noise level; costs depend on the query, and it may fail.

    It says that it shows labels, so that every metric has something to measure.
    """

    label_binding = "redrawn"

    def __init__(self, noise: float = 1.0, fails: Callable[[Request], bool] = lambda request: False) -> None:
        self.noise, self.fails = noise, fails

    def rank(self, request: Request) -> Ranking:
        if self.fails(request):
            raise RuntimeError("asleep")
        drawn = random.Random("|".join(request.ids))
        scores = {
            item: random.Random(item).random() + self.noise * drawn.random() for item in sorted(request.ids)
        }
        number = int(request.query_id.removeprefix("query"))
        tokens = 10 * number + 3
        cost = Cost(calls=number, depth=1, tokens_in=tokens, tokens_cached=3, tokens_out=2, seconds=0.5)
        return Ranking.from_scores(request, scores, cost=cost)


class Unusable(Noisy):
    """Where the other fails, it answers for 9 calls and 2 s without its last item."""

    def rank(self, request: Request) -> Ranking:
        has_failed = self.fails(request)
        ranking = Noisy(self.noise).rank(request)
        cost = replace(ranking.cost, calls=9, seconds=2.0)
        return replace(ranking, order=ranking.order[1:], cost=cost) if has_failed else ranking


def measure(reranker: Any, tasks: TaskSet, plan: Plan = PLAN, name: str = "noisy") -> Measured:
    views = plan.sample(tasks)
    observations = observe(reranker, tasks, views, show=False)
    repeats = observe(reranker, tasks, plan.repeated(views, "alone"), show=False)
    return Measured(SubjectName(name, tasks.name, plan.k), plan, tasks, observations, repeats)


def values(measured: Measured, name: str) -> list[float | None]:
    found = measured.metric(name)
    assert isinstance(found, PerQuery)
    return [None if np.isnan(value) else float(value) for value in found.values]


def fails_in(query: int, *views: int) -> Callable[[Request], bool]:
    """Fails for these views of one query, counted from 0."""
    seen = iter(range(1000))
    return lambda request: request.query_id == f"query{query}" and next(seen) in views


def test_arrays_hold_positions_and_ranks_by_sorted_id(tasks: TaskSet) -> None:
    measured = measure(Noisy(), tasks)
    assert measured.positions.shape == measured.ranks.shape == (8, 6, 5)
    for n, query_id in enumerate(measured.query_ids):
        seen = [each for each in measured.observations if each.query_id == query_id]
        for t, each in enumerate(seen):
            for i, item in enumerate(sorted(each.shown)):
                assert measured.positions[n, t, i] == each.shown.index(item)
                assert measured.ranks[n, t, i] == each.ranking.order.index(item)


def test_consistency_metrics_are_those_of_the_arrays(tasks: TaskSet) -> None:
    measured = measure(Noisy(), tasks)
    assert values(measured, "loc") == list(loc(measured.ranks).values)
    assert values(measured, "gpi") == list(gpi(measured.ranks).values)
    assert values(measured, "ppi") == list(ppi(measured.positions, measured.ranks).values)
    pooled = measured.metric("exposure_deviation@2")
    assert isinstance(pooled, Pooled)
    assert pooled.value == maximum_exposure_deviation(exposure(measured.positions, measured.ranks, 2), 2)


def test_effectiveness_leaves_out_queries_without_relevant_items_and_consistency_does_not(
    tasks: TaskSet,
) -> None:
    measured = measure(Noisy(), tasks)
    assert measured.without_relevant == 2
    for name in ("hr@2", "ndcg@2", "ndcg_candidates@2"):
        assert [place for place, value in enumerate(values(measured, name)) if value is None] == [0, 4]
        interval = measured.interval(name)
        assert (interval.n, interval.undefined) == (6, 2)
        assert measured.metric(name).reasons[0] == "no_relevant_candidate"  # type: ignore[union-attr]  # per query
    for name in ("ppi", "gpi", "loc", "exposure_deviation@2", "calls"):
        assert (measured.interval(name).n, measured.interval(name).undefined) == (8, 0)


def test_effectiveness_agrees_with_counting_by_hand(tasks: TaskSet) -> None:
    measured = measure(Noisy(), tasks)
    hits: dict[str, list[bool]] = {}
    for seen in measured.observations:
        relevant = measured.tasks.tasks[int(seen.query_id[5:])].relevance
        hits.setdefault(seen.query_id, []).append(any(item in relevant for item in seen.ranking.order[:2]))
    expected = [sum(hits[f"query{n}"]) / 6 if n % 4 else None for n in range(8)]
    assert values(measured, "hr@2") == pytest.approx(expected)


def test_a_task_without_a_total_counts_the_positives_in_its_list(tasks: TaskSet) -> None:
    bare = TaskSet.of("films", (replace(task, relevant_total=0) for task in tasks.tasks))
    assert values(measure(Noisy(), bare), "ndcg@2") == values(measure(Noisy(), tasks), "ndcg@2")


def test_costs_are_means_per_ranking(tasks: TaskSet) -> None:
    measured = measure(Noisy(), tasks)
    assert values(measured, "calls") == list(range(8))
    assert measured.interval("tokens_in").estimate == 38.0
    assert measured.interval("tokens_cached").estimate == 3.0
    assert (measured.interval("depth").low, measured.interval("depth").high) == (1.0, 1.0)
    assert measured.interval("seconds").estimate == 0.5


@pytest.mark.parametrize("name", EVERY_METRIC)
@pytest.mark.parametrize("policy", ["strict", "drop", "random"])
def test_every_metric_has_an_interval_under_every_policy(tasks: TaskSet, name: str, policy: Any) -> None:
    measured = measure(Noisy(fails=fails_in(3, 0, 1)), tasks, replace(PLAN, on_failure=policy))
    interval = measured.interval(name)
    assert interval.reason is None
    assert interval.n + interval.undefined == (3 if name == "repeat_difference" else 8)
    if "exposure" not in name:
        assert interval.low <= interval.estimate <= interval.high


def test_no_metric_but_the_declared_ones(tasks: TaskSet) -> None:
    with pytest.raises(InvariError, match=r"unknown metric 'lok'\. Did you mean 'loc'"):
        measure(Noisy(), tasks).interval("lok")


# Failures


def test_strict_leaves_the_whole_query_without_a_value(tasks: TaskSet) -> None:
    measured = measure(Noisy(fails=fails_in(3, 1)), tasks)
    assert [(each.query_id, each.view, each.fault) for each in measured.failures] == [
        ("query3", "seed0.1", "raised RuntimeError: asleep")
    ]
    whole = measure(Noisy(), tasks)
    for name in ("loc", "ndcg@2"):
        assert values(measured, name)[3] is None
        assert values(measured, name)[:3] == values(whole, name)[:3]
    assert measured.metric("loc").reasons[3] == "failed_views"  # type: ignore[union-attr]  # per query
    assert (measured.interval("loc").n, measured.interval("loc").undefined) == (7, 1)
    assert (measured.interval("exposure_deviation@2").n, measured.positions.shape) == (7, (7, 6, 5))
    assert values(measured, "invalid_view_rate") == pytest.approx([0, 0, 0, 1 / 6, 0, 0, 0, 0])
    # The views that did not fail took 3 calls each; the one that did says nothing of its cost.
    assert (measured.interval("calls").n, values(measured, "calls")[3]) == (8, 3.0)


@pytest.mark.parametrize("policy", ["strict", "drop", "random"])
def test_a_failure_counts_for_the_cost_only_when_it_says_what_it_cost(tasks: TaskSet, policy: Any) -> None:
    plan = replace(PLAN, on_failure=policy)
    whole, silent = (measure(Noisy(fails=fails_in(3, *views)), tasks, plan) for views in ((), range(6)))
    for name in ("calls", "depth", "tokens_in", "seconds"):
        assert values(silent, name)[3] is None
        assert silent.metric(name).reasons[3] == "failed_views"  # type: ignore[union-attr]  # per query
        assert (silent.interval(name).n, silent.interval(name).undefined) == (7, 1)
        assert silent.interval(name).estimate == pytest.approx(
            mean(each for n, each in enumerate(values(whole, name)) if n != 3 and each is not None)
        )
    assert values(silent, "invalid_view_rate")[3] == 1.0

    told = measure(Unusable(fails=fails_in(3, 0)), tasks, plan)
    assert told.failure_count == 1
    assert values(told, "calls")[3] == pytest.approx((5 * 3 + 9) / 6)
    assert values(told, "seconds")[3] == pytest.approx((5 * 0.5 + 2.0) / 6)


def test_drop_measures_the_query_on_its_other_views(tasks: TaskSet) -> None:
    plan = replace(PLAN, on_failure="drop")
    measured = measure(Noisy(fails=fails_in(3, 1)), tasks, plan)
    assert [block.ranks.shape[:2] for block in measured.blocks] == [(1, 5), (7, 6)]
    fewer = replace(PLAN, views=5)
    others = [seen for seen in measure(Noisy(), tasks).observations if seen.view != "seed0.1"]
    alone = Measured(SubjectName("noisy", "films", 5), fewer, tasks, others)
    for name in ("loc", "gpi", "ppi", "hr@2"):
        assert values(measured, name)[3] == values(alone, name)[3]
    assert measured.interval("loc").undefined == 0
    with pytest.raises(ValueError, match=r"different numbers of valid views \(5, 6\); use blocks"):
        _ = measured.positions


@pytest.mark.parametrize(("left", "counts"), [(2, True), (1, False), (0, False)])
def test_drop_needs_two_views_of_a_query(tasks: TaskSet, left: int, counts: bool) -> None:
    failing = range(6 - left)
    measured = measure(Noisy(fails=fails_in(3, *failing)), tasks, replace(PLAN, on_failure="drop"))
    assert (values(measured, "loc")[3] is not None) == counts
    assert (values(measured, "hr@2")[3] is not None) == counts
    assert measured.failure_count == 6 - left


def test_random_puts_a_seeded_order_in_place_never_the_input_order(tasks: TaskSet) -> None:
    plan = replace(PLAN, on_failure="random")
    measured = measure(Noisy(fails=lambda request: True), tasks, plan)
    assert measured.failure_count == 48
    for n, seen in enumerate(measured.observations):
        expected = shuffled(seen.shown, "failed view", 0, seen.query_id, seen.view)
        ranks = [expected.index(item) for item in sorted(seen.shown)]
        assert measured.ranks[n // 6, n % 6].tolist() == ranks
    # Random: no agreement, and no position that is favoured. Echoed inputs would have a deviation of .6.
    assert abs(measured.interval("loc").estimate) < 0.12
    assert measured.metric("exposure_deviation@2").value < 0.25  # type: ignore[union-attr]  # pooled
    again = measure(Noisy(fails=lambda request: True), tasks, plan)
    assert np.array_equal(measured.ranks, again.ranks)


@pytest.mark.parametrize("policy", ["strict", "drop"])
def test_when_everything_failed_nothing_is_measured(tasks: TaskSet, policy: Any) -> None:
    measured = measure(Noisy(fails=lambda request: True), tasks, replace(PLAN, on_failure=policy))
    assert measured.positions.shape == (0, 6, 5)
    for name in ("loc", "ppi", "hr@2", "exposure_deviation@2"):
        interval = measured.interval(name)
        assert (interval.n, interval.undefined, interval.reason) == (0, 8, "no_defined_query")
        assert np.isnan(interval.estimate)
    assert measured.interval("invalid_view_rate").estimate == 1.0


def test_partial_rankings_fail_and_repaired_ones_count(tasks: TaskSet) -> None:
    class Declared(Noisy):
        def rank(self, request: Request) -> Ranking:
            status = {"query1": "partial", "query2": "repaired"}.get(request.query_id, "ok")
            return replace(super().rank(request), status=status)  # type: ignore[arg-type]  # one of the statuses

    measured = measure(Declared(), tasks)
    assert {failure.query_id for failure in measured.failures} == {"query1"}
    assert measured.failures[0].fault == "the reranker calls its ranking partial"
    assert values(measured, "loc")[1] is None
    assert values(measured, "loc")[2] is not None


# Ties


class Alike:
    def rank(self, request: Request) -> Ranking:
        return Ranking.from_scores(request, dict.fromkeys(request.ids, 0.5))


def test_a_reranker_that_scores_all_alike_is_invariant_and_its_ties_are_told(tasks: TaskSet) -> None:
    measured = measure(Alike(), tasks)
    found = {name: measured.interval(name).estimate for name in ("ppi", "gpi", "loc", "tie_rate")}
    assert found == {"ppi": 0.0, "gpi": 0.0, "loc": 1.0, "tie_rate": 1.0}


def test_ties_may_count_half_a_win_instead(tasks: TaskSet) -> None:
    measured = measure(Alike(), tasks, replace(PLAN, ties="half"))
    found = {name: measured.interval(name).estimate for name in ("ppi", "gpi", "loc", "tie_rate")}
    assert found == {"ppi": 0.0, "gpi": 0.5, "loc": 0.0, "tie_rate": 1.0}
    # Any order of the five is as likely: a hit is missed when both places go to items that are not relevant.
    for task, value in zip(tasks.tasks, values(measured, "hr@2"), strict=True):
        others = 5 - len(task.relevance)
        expected = None if others == 5 else pytest.approx(1 - others * (others - 1) / 20)
        assert value == expected


def test_labels_are_told_from_the_records_alone(tasks: TaskSet) -> None:
    class First:
        """Whatever bears the first labels comes first."""

        label_binding: str | None = "redrawn"

        def rank(self, request: Request) -> Ranking:
            return Ranking.from_scores(
                request, {i: -float(n) for i, n in zip(request.ids, request.label_indices, strict=True)}
            )

    class Unlabelled(First):
        label_binding = None

    class Bound(First):
        label_binding = "item"

    assert measure(First(), tasks).interval("label_agreement_gap").estimate == 1.0
    assert abs(measure(Noisy(), tasks).interval("label_agreement_gap").estimate) < 0.2

    class Noting(Unlabelled):
        """Has a use of its own for the word."""

        def rank(self, request: Request) -> Ranking:
            return Ranking.from_order(request, request.ids, diagnostics={"labels": ["A", "B"]})

    for reranker, reason in (
        (Unlabelled(), "no_labels"),
        (Noting(), "no_labels"),
        (Bound(), "labels_never_differ"),
    ):
        found = measure(reranker, tasks).metric("label_agreement_gap")
        assert isinstance(found, PerQuery)
        assert set(found.reasons) == {reason}


def test_the_noise_floor_is_of_the_views_that_were_asked_again(tasks: TaskSet) -> None:
    class Moody:
        """Another answer each time."""

        def __init__(self) -> None:
            self.random = random.Random(5)

        def rank(self, request: Request) -> Ranking:
            return Ranking.from_order(request, self.random.sample(request.ids, len(request.ids)))

    steady = measure(Noisy(), tasks)
    assert values(steady, "repeat_difference") == [0.0] * 3 + [None] * 5
    assert steady.metric("repeat_difference").reasons[3] == "not_repeated"  # type: ignore[union-attr]  # per query
    assert (steady.interval("repeat_difference").n, steady.interval("repeat_difference").undefined) == (3, 0)
    assert 0.2 < measure(Moody(), tasks).interval("repeat_difference").estimate < 0.8
    failing = measure(Noisy(fails=fails_in(1, 6)), tasks)
    assert failing.metric("repeat_difference").reasons[:3] == (None, "failed_views", None)  # type: ignore[union-attr]


def test_an_echo_of_the_input_depends_on_positions_and_noise_does_not(tasks: TaskSet) -> None:
    class Echo:
        def rank(self, request: Request) -> Ranking:
            return Ranking.from_order(request, request.ids)

    assert measure(Echo(), tasks).position_p_value == 1 / 200
    assert measure(Noisy(), tasks).position_p_value > 0.05


def test_orders_without_scores_have_no_ties(tasks: TaskSet) -> None:
    class Orders:
        def rank(self, request: Request) -> Ranking:
            return Ranking.from_order(request, sorted(request.ids))

    assert measure(Orders(), tasks).interval("tie_rate").estimate == 0.0


# Intervals and differences


def test_figures_do_not_depend_on_what_was_asked_before(tasks: TaskSet) -> None:
    forward, backward = measure(Noisy(), tasks), measure(Noisy(), tasks)
    base = measure(Noisy(0.1), tasks, name="steady")
    first = {name: (forward.interval(name), forward.difference(base, name)) for name in EVERY_METRIC}
    second = {
        name: (backward.interval(name), backward.difference(base, name)) for name in reversed(EVERY_METRIC)
    }
    assert first == second


def test_the_draws_are_named_by_data_set_and_length_alone(tasks: TaskSet) -> None:
    measured = measure(Noisy(), tasks)
    base = measure(Noisy(0.1), tasks, name="steady")
    new, old = measured.metric("loc"), base.metric("loc")
    assert isinstance(new, PerQuery)
    assert isinstance(old, PerQuery)
    draws = statistics.seeded_resamples(8, "films-K5")
    assert measured.interval("loc") == statistics.bootstrap_mean(new.values, draws, bounds=(-1 / 5, 1))
    assert base.interval("loc") == statistics.bootstrap_mean(old.values, draws, bounds=(-1 / 5, 1))
    assert measured.difference(base, "loc") == statistics.bootstrap_difference(
        new.values, old.values, draws, bounds=(-1 / 5, 1)
    )


@pytest.mark.parametrize("name", EVERY_METRIC)
def test_the_difference_from_itself_is_nothing(tasks: TaskSet, name: str) -> None:
    interval = measure(Noisy(), tasks).difference(measure(Noisy(), tasks), name)
    # Where a metric is bounded, eight equal queries do not show that others would be equal too.
    assert (interval.estimate, interval.low) == (0.0, -interval.high)
    assert (interval.high > 0) == (interval.method == "bca+guard")


@pytest.mark.parametrize("name", ["loc", "ndcg@2", "exposure_deviation@2"])
def test_differences_match_queries_by_id(tasks: TaskSet, name: str) -> None:
    turned = TaskSet.of("films", reversed(tasks.tasks))
    new, base = measure(Noisy(), tasks), measure(Noisy(0.1), tasks, name="steady")
    assert new.difference(measure(Noisy(0.1), turned, name="steady"), name) == new.difference(base, name)


def test_differences_are_over_the_queries_that_both_have(tasks: TaskSet) -> None:
    new = measure(Noisy(fails=fails_in(3, 0)), tasks)
    base = measure(Noisy(0.1, fails=fails_in(5, 0)), tasks, name="steady")
    expected = [
        (one - other) for one, other in zip(values(new, "loc"), values(base, "loc"), strict=True)
        if one is not None and other is not None
    ]  # fmt: skip
    for name in ("loc", "exposure_deviation@2"):
        interval = new.difference(base, name)
        assert (interval.n, interval.undefined) == (6, 2)
    assert new.difference(base, "loc").estimate == pytest.approx(np.mean(expected))
    assert new.difference(base, "ndcg@2").n == 4


@pytest.mark.parametrize(
    "changed",
    [{"views": 5}, {"view_seed": 1}, {"include_canonical": True}],
    ids=lambda each: next(iter(each)),
)
def test_other_views_cannot_be_compared(tasks: TaskSet, changed: dict[str, Any]) -> None:
    other = measure(Noisy(), tasks, replace(PLAN, **changed), "steady")
    message = "noisy-films-K5 and steady-films-K5 were measured on different queries or views"
    with pytest.raises(InvariError, match=message):
        measure(Noisy(), tasks).difference(other, "loc")


def test_other_queries_cannot_be_compared(tasks: TaskSet) -> None:
    few = tasks.head(5)
    with pytest.raises(InvariError, match="different queries or views"):
        measure(Noisy(), tasks).difference(measure(Noisy(), few), "loc")


def test_figures_do_not_depend_on_the_order_of_the_observations(tasks: TaskSet) -> None:
    observations = measure(Noisy(), tasks).observations
    mixed = list(observations)
    random.Random(3).shuffle(mixed)
    subject = SubjectName("noisy", "films", 5)
    one, other = (Measured(subject, PLAN, tasks, each) for each in (observations, mixed))
    for name in EVERY_METRIC:
        assert one.interval(name) == other.interval(name)
