"""A run that is killed goes on where it was: nothing that was kept is ranked again, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from pytest_invari.measure.subject import Subject
from pytest_invari.observation.observation import Observation
from pytest_invari.observation.plan import SubjectName
from pytest_invari.records.folder import RecordFolder
from pytest_invari.records.manifest import Manifest
from pytest_invari.records.record import Record
from pytest_invari.registry.spec import RerankerSpec

if TYPE_CHECKING:
    from pytest_invari.measure.measured import Measured
    from tests.measure.conftest import Project

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")

# Every request is in the log, on the disk, before its answer leaves the reranker.
SHOP = """
import os, time
from pathlib import Path
from pytest_invari.protocol import Cost, Ranking

class Logged:
    batch_requests = 3

    def rank(self, request):
        with open("log.txt", "a") as log:
            log.write(f"{request.query_id} {' '.join(request.ids)}\\n")
            log.flush()
            os.fsync(log.fileno())
        time.sleep(float(os.environ["SECONDS"]))
        scores = {item: float(hash_of(item)) for item in request.ids}
        return Ranking.from_scores(request, scores, cost=Cost(calls=1, depth=1, seconds=0.5))

    def rank_many(self, requests):
        return [self.rank(request) for request in requests]

def hash_of(item):
    return sum(map(ord, item)) * 31 % 17

RERANKER = Logged()
"""

# A shell starts what it runs in the background with Ctrl-C ignored, and its children inherit that.
RUN = """
import signal
from pathlib import Path
from pytest_invari.measure.runner import Runner
from pytest_invari.measure.subject import Subject
from pytest_invari.observation.plan import Plan
from pytest_invari.registry.registry import Registry
from pytest_invari.registry.spec import RerankerSpec

signal.signal(signal.SIGINT, signal.default_int_handler)
runner = Runner(Registry(Path()), records=Path("records"))
runner.measure(Subject(RerankerSpec.parse("logged_shop:RERANKER"), Plan("films.jsonl", 5, None, 20)))
"""
VIEWS = 8 * 20


def start(project: Project, seconds: float) -> subprocess.Popen[bytes]:
    (project.path / "logged_shop.py").write_text(SHOP)
    environment = os.environ | {"SECONDS": str(seconds), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.Popen([sys.executable, "-c", RUN], cwd=project.path, env=environment)


def logged(project: Project) -> list[str]:
    path = project.path / "log.txt"
    return path.read_text().splitlines() if path.exists() else []


def kept(project: Project) -> dict[tuple[str, str], Observation]:
    found: dict[tuple[str, str], Observation] = {}
    for folder in RecordFolder(project.records)._folders():
        manifest = Manifest.read(folder / "manifest.json")
        found |= Record(folder, manifest, SubjectName("logged_shop:RERANKER", "films", 5)).read()
    return found


def run_until(project: Project, seconds: float, reached: Callable[[], bool]) -> None:
    """Start a run, and kill -9 it as soon as *reached*."""
    process = start(project, seconds)
    try:
        deadline = time.monotonic() + 20
        while not reached():
            assert process.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.002)
    finally:
        process.kill()
        assert process.wait() == -signal.SIGKILL


def test_killed_twice_and_run_again_only_missing_views_are_ranked(project: Project) -> None:
    kills: list[tuple[Counter[str], set[str]]] = []
    for target in (40, 90):

        def reached(target: int = target) -> bool:
            return len(logged(project)) >= target

        run_until(project, 0.004, reached)
        stored = {f"{seen.query_id} {' '.join(seen.shown)}" for seen in kept(project).values()}
        kills.append((Counter(logged(project)), stored))
    assert start(project, 0.0).wait() == 0
    ranked = Counter(logged(project))
    assert len(kept(project)) == len(ranked) == VIEWS
    for before, stored in kills:
        # The first batch is written at once.
        assert len(stored) >= 3
        assert stored <= set(before)
        # What was kept at the kill was never ranked again.
        assert all(ranked[line] == before[line] for line in stored)
    # What was ranked again is what a kill had lost: a batch, and what waited to be written.
    assert ranked.total() - VIEWS == sum(len(set(before) - stored) for before, stored in kills)


def test_a_resumed_run_measures_what_an_uninterrupted_one_does(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_until(project, 0.002, lambda: len(logged(project)) >= 50)
    monkeypatch.setenv("SECONDS", "0")
    monkeypatch.chdir(project.path)

    def measured(keep: bool) -> Measured:
        runner = project.runner(keep=keep)
        return runner.measure(Subject(RerankerSpec.parse("logged_shop:RERANKER"), project.plan(views=20)))

    resumed, whole = measured(True), measured(False)
    assert resumed.observations == whole.observations
    for metric in ("loc", "ppi", "exposure_deviation@2", "ndcg@2", "seconds"):
        assert resumed.interval(metric) == whole.interval(metric)
    assert len(list(project.records.glob("*/views/*.parquet"))) == 1


def test_interrupted_by_control_c_the_run_keeps_all_it_has_ranked(project: Project) -> None:
    process = start(project, 0.004)
    while len(logged(project)) < 30:
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    assert process.wait() != 0
    assert len(kept(project)) >= len(logged(project)) - 3


def test_a_folder_left_half_made_is_completed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(project, 0.0).wait() == 0
    [folder] = RecordFolder(project.records)._folders()
    (folder / "manifest.json").unlink()
    assert RecordFolder(project.records)._folders() == []
    assert start(project, 0.0).wait() == 0
    assert RecordFolder(project.records)._folders() == [folder]
    assert len(logged(project)) == VIEWS
