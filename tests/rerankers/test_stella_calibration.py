"""The calibration of STELLA: what is counted, on which queries, and when its file is used or refused."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.protocol import Ranking, Request
from pytest_invari.tasks.task import TaskSet

SMALL = "probes=2,repeats=1"


def cached(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "cache" / "stella").glob("*"))


def test_probes_place_each_target_at_each_position_equally_often(lists: Callable[..., Any]) -> None:
    data = lists(7, 4)
    calibrator = data.build("stella:probes=3,repeats=5,base=biased").calibrator
    probes = list(calibrator.probe_requests())
    assert len(probes) == 3 * 1 * 4 * 5
    relevant = {task.query_id: next(iter(task.relevance)) for task in data.tasks.tasks}
    placed = Counter((request.query_id, position) for position, request in probes)
    assert set(placed.values()) == {5}
    assert len({query for query, _ in placed}) == 3
    for position, request in probes:
        assert request.ids.index(relevant[request.query_id]) == position
        assert sorted(request.ids) == sorted(c.id for c in request.candidates)
    others = {tuple(i for i in r.ids if i != relevant[r.query_id]) for _, r in probes}
    # 20 shuffles of three others in each list: 5.8 of the 6 orders on average.
    assert len(others) >= 15


def test_every_relevant_candidate_is_a_target(lists: Callable[..., Any]) -> None:
    data = lists(2, 4)
    two = replace(data.tasks.tasks[0], relevance={"item0.1": 1.0, "item0.3": 0.5, "item0.0": 0.0})
    none = replace(data.tasks.tasks[1], relevance={})
    data.tasks = TaskSet.of("lists", (two, none))
    calibrator = data.build("stella:repeats=1,base=biased").calibrator
    targets = {(r.query_id, r.ids[position]) for position, r in calibrator.probe_requests()}
    assert targets == {("query0", "item0.1"), ("query0", "item0.3")}


def test_counts_equal_a_plain_count(lists: Callable[..., Any]) -> None:
    data = lists(6, 4)
    options = "biased:beta=1,noise=1,relevance=1"
    calibrator = data.build(f"stella:probes=4,repeats=3,base=({options})").calibrator
    base = data.build(options)
    counted = [[0] * 4 for _ in range(4)]
    for position, request in calibrator.probe_requests():
        counted[position][request.ids.index(base.rank(request).order[0])] += 1
    calibration = calibrator.prepare()
    assert [list(row) for row in calibration.counts] == counted
    assert [sum(row) for row in counted] == [12] * 4
    assert calibration.calls == 48
    for row, logs in zip(counted, calibration.log_transitions, strict=True):
        assert [math.exp(log) for log in logs] == pytest.approx([(n + 1) / 16 for n in row])


def test_the_matrix_shows_the_bias_of_the_base(lists: Callable[..., Any]) -> None:
    data = lists(5, 4)
    copying = data.build("stella:base=input_order").calibrator.prepare()
    assert [list(row) for row in copying.counts] == [[25, 0, 0, 0]] * 4
    seeing = data.build("stella:base=oracle").calibrator.prepare()
    assert [list(row) for row in seeing.counts] == [[25 * (p == o) for o in range(4)] for p in range(4)]


def test_the_file_is_made_once_and_then_read(lists: Callable[..., Any], tmp_path: Path) -> None:
    data = lists(4, 3)
    first = data.build(f"stella:{SMALL},base=biased")
    first.prepare()
    (file,) = cached(tmp_path)
    assert file.suffix == ".json"
    content = json.loads(file.read_text())
    assert content["fingerprint"]["k"] == 3
    assert content["fingerprint"]["base"]["reranker"] == "biased"
    content["counts"][0][0] += 100
    file.write_text(json.dumps(content))
    again = data.build(f"stella:{SMALL},base=biased")
    assert again.calibrator.prepare().counts[0][0] >= 100
    assert data.build(f"stella:{SMALL},base=biased", calibrate=True).calibrator.prepare().counts[0][0] < 100
    assert cached(tmp_path) == [file]


def test_who_asks_for_a_new_calibration_gets_it_though_all_rankings_are_kept(
    lists: Callable[..., Any],
) -> None:
    data = lists(4, 3)
    early = [data.build("stella:base=biased", calibrate=again).early_fingerprint for again in (False, True)]
    assert early == [True, False]


@pytest.mark.parametrize("spec", ["base=biased:beta=2", "seed=1,base=biased", "repeats=2,base=biased"])
def test_another_fingerprint_gets_its_own_file(lists: Callable[..., Any], tmp_path: Path, spec: str) -> None:
    data = lists(4, 3)
    data.build("stella:repeats=1,base=biased").prepare()
    data.build(f"stella:{spec}" if "repeats" in spec else f"stella:repeats=1,{spec}").prepare()
    assert len(cached(tmp_path)) == 2


def test_a_damaged_file_in_the_cache_is_made_again(lists: Callable[..., Any], tmp_path: Path) -> None:
    data = lists(4, 3)
    data.build(f"stella:{SMALL},base=biased").prepare()
    (file,) = cached(tmp_path)
    whole = file.read_text()
    file.write_text(whole[:40])
    data.build(f"stella:{SMALL},base=biased").prepare()
    assert file.read_text() == whole


def test_a_given_path_is_written_and_used(lists: Callable[..., Any], tmp_path: Path) -> None:
    data = lists(4, 3)
    path = tmp_path / "folder" / "mine.json"
    spec = f"stella:{SMALL},calibration={path},base=biased"
    data.build(spec).check()
    data.build(spec).prepare()
    assert path.is_file()
    assert cached(tmp_path) == []
    data.build(spec).check()
    assert data.build(spec).rank(data.views(1)[0]).status == "ok"


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        (
            lambda path: (f"stella:probes=3,repeats=1,calibration={path},base=biased", 3),
            "probes is 2, here 3",
        ),
        (
            lambda path: (f"stella:{SMALL},calibration={path},base=biased:beta=2", 3),
            "base.beta is 1.0, here 2.0",
        ),
        (lambda path: (f"stella:{SMALL},calibration={path},base=biased", 4), "k is 3, here 4"),
    ],
)
def test_a_given_file_of_something_else_is_refused_before_anything_is_loaded(
    lists: Callable[..., Any], tmp_path: Path, changed: Callable[[Path], tuple[str, int]], difference: str
) -> None:
    path = tmp_path / "mine.json"
    lists(4, 3).build(f"stella:{SMALL},calibration={path},base=biased").prepare()
    before = path.read_text()
    spec, k = changed(path)
    with pytest.raises(InvariError) as error:
        lists(4, k).build(spec).check()
    assert str(error.value).startswith(f"{path}: calibrated for something else (")
    assert difference in str(error.value)
    assert str(error.value).endswith("; pass --invari-calibrate to calibrate again")
    assert path.read_text() == before
    lists(4, k).build(spec, calibrate=True).prepare()
    assert path.read_text() != before


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "x", "counts": []}', "\xff"])
def test_a_given_file_that_is_no_calibration_is_refused(
    lists: Callable[..., Any], tmp_path: Path, content: str
) -> None:
    path = tmp_path / "mine.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(InvariError, match=r"mine\.json: not a calibration of stella; remove it"):
        lists(4, 3).build(f"stella:calibration={path},base=biased").check()


def test_counts_of_the_wrong_shape_are_refused(lists: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    spec = f"stella:{SMALL},calibration={path},base=biased"
    lists(4, 3).build(spec).prepare()
    content = json.loads(path.read_text())
    content["counts"].pop()
    path.write_text(json.dumps(content))
    with pytest.raises(InvariError, match="the counts are not 3 × 3"):
        lists(4, 3).build(spec).check()


def test_tasks_without_relevance_are_refused(lists: Callable[..., Any]) -> None:
    data = lists(2, 3)
    data.tasks = TaskSet.of("blank", [replace(task, relevance={}) for task in data.tasks.tasks])
    with pytest.raises(InvariError, match="stella: no query of 'blank' has a list of 3 with a relevant"):
        data.build("stella:base=biased").check()


def test_failed_probes_are_counted_and_all_failed_is_an_error(
    lists: Callable[..., Any], tmp_path: Path
) -> None:
    class Silent:
        def __init__(self, query_ids: set[str]) -> None:
            self.query_ids = query_ids

        def rank(self, request: Request) -> Ranking:
            if request.query_id in self.query_ids:
                raise RuntimeError("silence")
            return Ranking.from_order(request, request.ids)

    data = lists(2, 3)
    some = data.build("stella:repeats=1,base=silent", silent=Silent({"query0"})).calibrator.prepare()
    assert (some.failed, sum(map(sum, some.counts))) == (3, 3)
    for file in cached(tmp_path):
        file.unlink()
    with pytest.raises(InvariError, match=r"all 6 calibration calls failed, the first on query 'query\d'"):
        data.build("stella:repeats=1,base=silent", silent=Silent({"query0", "query1"})).prepare()
    assert cached(tmp_path) == []


class Away:
    """Fails the first *times* calls about one query as a service that is away does."""

    def __init__(self, times: int) -> None:
        self.left = times

    def rank(self, request: Request) -> Ranking:
        if request.query_id == "query0" and self.left:
            self.left -= 1
            return Ranking.failed("503", is_transient=True)
        return Ranking.from_order(request, request.ids)


def test_probes_that_a_short_outage_failed_are_asked_again(lists: Callable[..., Any], tmp_path: Path) -> None:
    data, spec = lists(2, 3), "stella:repeats=2,base=away"
    found = data.build(spec, away=Away(2)).calibrator.prepare()
    whole = data.build(spec, calibrate=True, away=Away(0)).calibrator.prepare()
    assert (found.failed, found.counts) == (0, whole.counts)
    assert len(cached(tmp_path)) == 1


def test_a_calibration_that_an_outage_spoiled_is_not_kept(lists: Callable[..., Any], tmp_path: Path) -> None:
    data, spec = lists(2, 3), "stella:repeats=2,base=away"
    with pytest.raises(
        InvariError, match=r"[1-8] of 12 calibration calls .* was away, .* query 'query0': 503"
    ):
        data.build(spec, away=Away(8)).prepare()
    assert cached(tmp_path) == []
    assert data.build(spec, away=Away(0)).calibrator.prepare().failed == 0


def test_progress_states_the_number_of_calls(
    lists: Callable[..., Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    # Off a terminal a step this short would leave no line.
    monkeypatch.setattr("pytest_invari.progress.NOTABLE_SECONDS", 0.0)
    lists(4, 3).build("stella:probes=2,repeats=4,base=biased").prepare()
    shown = capsys.readouterr().err
    assert "calibrating stella on 2 queries, 4 repeats: 100%" in shown
    assert "24/24" in shown
