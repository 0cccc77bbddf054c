"""What the pictures are drawn from: it is what was measured, and says what chance alone would do."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, kendalltau

from pytest_invari.measure.measured import Measured
from pytest_invari.metrics.exposure import (
    expected_deviation,
    exposure,
    maximum_exposure_deviation,
    mean_exposure_deviation,
)
from pytest_invari.observation.observe import observe
from pytest_invari.observation.plan import Plan, SubjectName
from pytest_invari.protocol import Candidate, Context, HistoryEntry, Ranking, Request
from pytest_invari.reports.html.data import page_data
from pytest_invari.reports.html.exposure import chance_band, exposures
from pytest_invari.reports.html.lengths import lengths
from pytest_invari.reports.html.plane import Point, with_dominators
from pytest_invari.reports.html.unstable import queries
from pytest_invari.reports.subjects import Summary
from pytest_invari.settings import OnFailure
from pytest_invari.tasks.task import Task, TaskSet
from tests.reports.summaries import summary

K = 6


def make_tasks(queries: int = 14, k: int = K) -> TaskSet:
    tasks = []
    for number in range(queries):
        candidates = tuple(Candidate(f"i{item}", f"film {number}.{item}") for item in range(k))
        context = Context(f"films of {number}", (HistoryEntry("seen before", 5.0),))
        tasks.append(Task(f"q{number:02}", context, candidates, {"i0": 1.0}, 1))
    return TaskSet.of("films", tasks)


class Drifting:
    """Keeps the ids' order but for the last ones, the more of them the later the query; may fail once."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def rank(self, request: Request) -> Ranking:
        number = int(request.query_id[1:])
        if self.fails and number == 13:
            self.fails = False
            raise RuntimeError("asleep")
        order = sorted(request.ids)
        loose = min(number // 2, K)
        tail = order[K - loose :]
        random.Random("".join(request.ids)).shuffle(tail)
        return Ranking.from_order(request, order[: K - loose] + tail)


def measure(reranker: Any = None, plan: Plan | None = None) -> Measured:
    plan = plan or Plan("films", K, None, 5)
    tasks = make_tasks()
    found = observe(reranker or Drifting(), tasks, plan.sample(tasks), show=False)
    return Measured(SubjectName("drifting", "films", K), plan, tasks, found)


def test_exposure_is_that_of_the_metric() -> None:
    measured = measure()
    found = page_data(measured)["exposure"]
    table = exposure(measured.positions, measured.ranks, 5)
    assert found["views"] == 14 * 5
    assert [hits / found["views"] for hits in found["hits"]] == list(table)
    assert sum(found["hits"]) == 5 * found["views"]


def test_the_view_in_the_data_sets_own_order_does_not_count() -> None:
    found = page_data(measure(plan=Plan("films", K, None, 5, include_canonical=True)))["exposure"]
    assert found["views"] == 14 * 4


def test_the_least_stable_queries_come_first_and_ties_go_by_id() -> None:
    measured = measure()
    found = page_data(measured)["unstable"]
    assert len(found) == 10
    distances = []
    for each in found:
        ranks = np.array([candidate["ranks"] for candidate in each["candidates"]]).T
        pairs = [(first, second) for first in range(5) for second in range(first)]
        taus = [kendalltau(ranks[first], ranks[second]).statistic for first, second in pairs]
        assert each["distance"] == pytest.approx((1 - np.mean(taus)) / 2)
        distances.append((-each["distance"], each["query"]))
    assert distances == sorted(distances)
    # Queries 0 to 3 shuffle at most one item, and are stable.
    assert min(each["query"] for each in found) > "q03"


def test_a_query_is_shown_as_it_was_seen_and_ranked() -> None:
    measured = measure()
    found = page_data(measured)["unstable"][0]
    seen = {each.view: each for each in measured.observations if each.query_id == found["query"]}
    assert found["views"] == [f"seed0.{draw}" for draw in range(5)]
    for candidate in found["candidates"]:
        for view, rank, shown in zip(found["views"], candidate["ranks"], candidate["shown"], strict=True):
            assert seen[view].ranking.order[rank - 1] == candidate["id"]
            assert seen[view].shown[shown - 1] == candidate["id"]
    assert found["text"] == f"films of {int(found['query'][1:])} · seen before"
    assert [each["relevant"] for each in found["candidates"]] == [True] + [False] * (K - 1)


def test_a_view_without_a_ranking_is_shown_as_failed() -> None:
    plan = Plan("films", K, None, 5, on_failure="drop")
    found = page_data(measure(Drifting(fails=True), plan))
    assert found["exposure"]["views"] == 14 * 5 - 1
    [query] = [each for each in found["unstable"] if each["query"] == "q13"]
    assert {candidate["ranks"][0] for candidate in query["candidates"]} == {None}
    [shown] = [each for each in queries(summary(k=K, pictures=found)) if each.id == "q13"]
    assert {candidate.cells[0].rank for candidate in shown.candidates} == {"failed"}


class Silent(Drifting):
    """Ranks like the other one, but no view of the last query."""

    def rank(self, request: Request) -> Ranking:
        if request.query_id == "q13":
            raise RuntimeError("asleep")
        return super().rank(request)


def test_a_query_of_which_every_view_failed_moved_nothing() -> None:
    found = page_data(measure(Silent(), Plan("films", K, None, 5, on_failure="random")))
    # Nothing was ranked, and only the random orders in its place differ.
    assert "q13" not in [each["query"] for each in found["unstable"]]


@pytest.mark.parametrize(
    ("on_failure", "counted"), [("strict", 13 * 5), ("drop", 14 * 5 - 1), ("random", 14 * 5)]
)
def test_the_views_that_a_pooled_figure_counts_are_told(on_failure: OnFailure, counted: int) -> None:
    plan = Plan("films", K, None, 5, on_failure=on_failure)
    assert page_data(measure(Drifting(fails=True), plan))["exposure"]["pooled"] == counted


def test_candidates_stand_in_the_order_of_their_mean_rank_with_what_they_moved() -> None:
    shown = queries(summary(k=K, pictures=page_data(measure())))[0]
    means = [np.mean([int(cell.rank) for cell in each.cells]) for each in shown.candidates]
    assert means == sorted(means)
    for each in shown.candidates:
        ranks = [int(cell.rank) for cell in each.cells]
        assert each.moved == (
            f"{min(ranks)} to {max(ranks)}" if len(set(ranks)) > 1 else f"always {ranks[0]}"
        )
        assert all(0 <= cell.shade <= 9 for cell in each.cells)
    shades = {int(cell.rank): cell.shade for each in shown.candidates for cell in each.cells}
    assert shades[1] == 9
    assert shades[K] < 2


def test_long_titles_are_cut_and_secrets_hidden() -> None:
    tasks = make_tasks(1)
    task = tasks.tasks[0]
    texts = ["x" * 500, "api_key=abcdefgh12345678", *(f"{item}" for item in range(K - 2))]
    candidates = tuple(Candidate(f"i{item}", text) for item, text in enumerate(texts))
    tasks = TaskSet.of("films", [Task("q12", task.context, candidates, {}, 0)])
    plan = Plan("films", K, None, 5)
    found = observe(Drifting(), tasks, plan.sample(tasks), show=False)
    measured = Measured(SubjectName("drifting", "films", K), plan, tasks, found)
    titles = [each["title"] for each in page_data(measured)["unstable"][0]["candidates"]]
    assert titles[0] == "x" * 159 + "…"
    assert titles[1] == "api_key=(hidden)"


@pytest.mark.parametrize(("level", "views"), [(0.5, 180), (0.2, 20_000), (0.1, 7), (1 / 3, 1), (1.0, 50)])
@pytest.mark.parametrize("coverage", [0.95, 0.998])
def test_the_band_is_the_binomials(level: float, views: int, coverage: float) -> None:
    low, high = chance_band(level, views, coverage)
    assert low * views == pytest.approx(binom.ppf((1 - coverage) / 2, views, level))
    assert high * views == pytest.approx(binom.ppf((1 + coverage) / 2, views, level))


def test_chance_alone_stays_within_the_bands_as_often_as_they_say() -> None:
    generator = np.random.default_rng(5)
    items, top, queries_, views, runs = 10, 4, 20, 6, 400
    narrow = chance_band(top / items, queries_ * views, 0.95)
    wide = chance_band(top / items, queries_ * views, 1 - 0.05 / items)
    tables = []
    for _ in range(runs):
        shown = generator.random((queries_, views, items)).argsort(axis=-1).astype(np.int16)
        # A reranker that goes by nothing but the item: positions are drawn, so they say nothing.
        ranks = np.broadcast_to(np.arange(items, dtype=np.int16), shown.shape)
        tables.append(exposure(shown, ranks, top))
    shares = np.array(tables)
    assert 0.94 < ((shares >= narrow[0]) & (shares <= narrow[1])).mean() < 0.98
    assert 0.94 < ((shares >= wide[0]) & (shares <= wide[1])).all(axis=1).mean() <= 1
    largest, mean = expected_deviation(top, items, queries_ * views)
    assert maximum_exposure_deviation(shares, top).mean() == pytest.approx(largest, rel=0.05)
    assert mean_exposure_deviation(shares, top).mean() == pytest.approx(mean, rel=0.05)


class Steady:
    """Keeps the order of the ids, which is the data set's own."""

    def rank(self, request: Request) -> Ranking:
        return Ranking.from_order(request, sorted(request.ids))


@pytest.mark.parametrize("k", [2, 3, 4])
def test_what_ignores_positions_is_within_the_bands_of_short_lists_too(k: int) -> None:
    """Of the orders of a short list the data set's own, which is never drawn, is a large part."""
    tasks = make_tasks(200, k)
    plan = Plan("films", k, None, min(5, math.factorial(k) - 1))
    seen = observe(Steady(), tasks, plan.sample(tasks), show=False)
    counts = page_data(Measured(SubjectName("steady", "films", k), plan, tasks, seen))["exposure"]
    steady = subject("steady", k)
    steady.pictures = {"exposure": counts}
    [found] = exposures([steady])
    assert found.level == 1 / k
    low, high = found.wide
    assert low <= min(found.shares[0]) <= max(found.shares[0]) <= high


def test_the_noise_floor_is_that_of_the_literature_of_the_metric() -> None:
    """25 candidates, a top of 5, 20 views of each query."""
    for count, largest, mean in ((30, 0.036, 0.013), (100, 0.020, 0.007), (1000, 0.0064, 0.0023)):
        assert expected_deviation(5, 25, count * 20) == pytest.approx((largest, mean), rel=0.05)
    assert all(map(math.isnan, expected_deviation(5, 25, 0)))
    # What ignores positions has a deviation of 2/15 there, or of nothing: see above.
    assert all(map(math.isnan, expected_deviation(1, 3, 200)))


def subject(name: str, k: int = 10, dataset: str = "films", **metrics: float) -> Summary:
    figures = {
        metric: {"estimate": value, "low": value - 0.1, "high": value + 0.1, "n": 30, "reason": None}
        for metric, value in ({"ppi": 0.3, "ppi_null": 0.2, "gpi": 0.1} | metrics).items()
    }
    counts = {"top": 5, "views": 100, "hits": [50] * k}
    pictures = {"exposure": counts, "unstable": []}
    size = {"k": k, "views": 6, "rankings": 100}
    return summary(reranker=name, dataset=dataset, **size, metrics=figures, pictures=pictures)


def test_lines_that_would_not_be_told_apart_go_into_another_picture() -> None:
    found = exposures([subject(f"r{number}") for number in range(8)])
    assert [len(each.names) for each in found] == [6, 2]
    assert [each.title for each in found] == ["films, lists of 10"] * 2
    assert (found[0].level, found[0].shares[0]) == (0.5, [0.5] * 10)


def test_a_subject_without_a_valid_view_has_no_line() -> None:
    silent = subject("silent")
    silent.pictures["exposure"]["views"] = 0
    [found] = exposures([silent, subject("loud")])
    assert found.names == ["loud"]


def test_list_lengths_are_compared_where_there_are_several() -> None:
    assert lengths([subject("a"), subject("b")]) == []
    found = lengths([subject("a", 25, ppi=0.5), subject("a", 10), subject("b", 10), subject("c", 7, "other")])
    assert [(each.metric, each.dataset) for each in found] == [("ppi", "films"), ("gpi", "films")]
    [first, second] = found[0].curves
    assert [each[0] for each in first.points] == [10, 25]
    assert first.points[0][1:] == pytest.approx((0.3, 0.2, 0.4, 30, 0.2))
    assert first.points[1][1:] == pytest.approx((0.5, 0.4, 0.6, 30, 0.2))
    assert (second.name, len(second.points)) == ("b", 1)


def point(name: str, calls: float, *values: float) -> Point:
    return Point(name, name, calls, values)


@pytest.mark.parametrize(
    ("other", "dominates"),
    [
        (point("b", 1, 0.5, 0.9), True),
        (point("b", 2, 0.6, 0.8), True),
        (point("b", 2, 0.5, 0.8), False),
        (point("b", 1, 0.4, 0.9), False),
        (point("b", 3, 0.9, 0.9), False),
        (point("b", 2 - 1e-15, 0.5, 0.8), False),
        # What one of the two lacks compares nobody, and the other figures still do.
        (point("b", 1, math.nan, 0.8), True),
        (point("b", 3, math.nan, 0.9), False),
    ],
)
def test_a_point_is_dominated_by_one_that_is_nowhere_worse_and_somewhere_better(
    other: Point, dominates: bool
) -> None:
    [found, _] = with_dominators([point("a", 2, 0.5, 0.8), other])
    assert found.dominators == (("b",) if dominates else ())


def test_without_any_utility_nobody_can_be_told_to_be_dominated() -> None:
    found = with_dominators([point("a", 2, math.nan), point("b", 1, math.nan)])
    assert [each.dominators for each in found] == [None, None]
