"""Several processes that rank into one folder at once: no lock, nothing lost, disagreement told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pytest_invari.observation.plan import SubjectName
from pytest_invari.records.folder import RecordFolder
from pytest_invari.records.manifest import Manifest
from pytest_invari.records.record import Record
from pytest_invari.tasks.taskfile import write_tasks
from tests.measure.conftest import make_tasks

RUNNERS = 3
QUERIES, VIEWS = 8, 20

SHOP = """
import os, time
from pytest_invari.protocol import Cost, Ranking

class Shop:
    batch_requests = 2

    def fingerprint(self):
        return {"shop": 1}

    def rank(self, request):
        return self.rank_many([request])[0]

    def rank_many(self, requests):
        time.sleep(0.002)
        return [self.one(request) for request in requests]

    def one(self, request):
        salt = os.getpid() if os.environ.get("DISAGREE") else 1
        scores = {item: float(sum(map(ord, item)) * salt % 17) + 0.5 for item in request.ids}
        return Ranking.from_scores(request, scores, cost=Cost(calls=1, depth=1, seconds=0.5))

RERANKER = Shop()
"""

# All wait for the last to be there, with all that is imported late, so that they rank at once.
RUN = f"""
import os, time, warnings
from pathlib import Path
import pyarrow.parquet
import pytest_invari.measure.measured
from pytest_invari.measure.runner import Runner
from pytest_invari.measure.subject import Subject
from pytest_invari.observation.plan import Plan
from pytest_invari.registry.registry import Registry
from pytest_invari.registry.spec import RerankerSpec

warnings.simplefilter("always")
runner = Runner(Registry(Path()), records=Path("records"))
subject = Subject(RerankerSpec.parse("shop:RERANKER"), Plan("films.jsonl", 5, None, {VIEWS}))
runner.check(subject)
Path(f"ready-{{os.getpid()}}").touch()
while len(list(Path().glob("ready-*"))) < {RUNNERS}:
    time.sleep(0.001)
measured = runner.measure(subject)
print(len(measured.observations), f"{{measured.interval('loc').estimate:.6f}}")
"""


def run_at_once(folder: Path, **environment: str) -> list[tuple[str, str]]:
    """What each of the runners printed, and what it warned of."""
    write_tasks(folder / "films.jsonl", make_tasks(QUERIES))
    (folder / "shop.py").write_text(SHOP)
    variables = os.environ | environment | {"PYTHONDONTWRITEBYTECODE": "1"}
    variables.pop("PYTEST_XDIST_WORKER", None)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", RUN],
            cwd=folder,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(RUNNERS)
    ]
    told = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0] * RUNNERS, told
    return told


def record_in(folder: Path) -> Record:
    (path,) = RecordFolder(folder / "records")._folders()
    return Record(path, Manifest.read(path / "manifest.json"), SubjectName("shop:RERANKER", "films", 5))


def test_runners_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    told = run_at_once(tmp_path)
    assert {output for output, _ in told} == {f"{QUERIES * VIEWS} 1.000000\n"}
    assert not any("do not agree" in warned for _, warned in told)
    record = record_in(tmp_path)
    assert len(record.read(strict=True)) == QUERIES * VIEWS
    record.compact()
    assert len(record.read(strict=True)) == QUERIES * VIEWS
    assert len(record._parts()) == 1


def test_runners_that_do_not_agree_are_told(tmp_path: Path) -> None:
    told = run_at_once(tmp_path, DISAGREE="1")
    # Each has its own answers; who tidies up last finds those of the others.
    warned = [text for _, text in told if "InvariRecordsWarning" in text]
    assert warned
    assert all("several runs at once have ranked" in text for text in warned)
    record = record_in(tmp_path)
    assert len(record.read()) == QUERIES * VIEWS
    # Merged, there is one answer a view, and yet a replay says that it is one of several.
    record.compact()
    replay = RUN[: RUN.index("runner.check")].replace('Path("records"))', 'Path("records"), replay=True)')
    replay += "runner.measure(subject)"
    done = subprocess.run(
        [sys.executable, "-c", replay], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "several runs at once have ranked" in done.stderr


def test_one_run_after_another_disagrees_with_nobody(tmp_path: Path) -> None:
    run_at_once(tmp_path)
    for path in tmp_path.glob("ready-*"):
        path.unlink()
    told = run_at_once(tmp_path, DISAGREE="1")
    assert {output for output, _ in told} == {f"{QUERIES * VIEWS} 1.000000\n"}
    assert not any("InvariRecordsWarning" in warned for _, warned in told)
