"""The runner: what it refuses before anything is loaded, and what it does only once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.measure.runner import Runner
from pytest_invari.measure.subject import Subject
from pytest_invari.observation.plan import Plan, SubjectName
from pytest_invari.protocol import Ranking, Request
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.tasks.task import TaskSet

if TYPE_CHECKING:
    from tests.measure.conftest import ById, Project

MINE = RerankerSpec("mine")


class Careful:
    """Notes what is done to it, in order."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.log: list[str] = []

    def check(self) -> None:
        self.log.append("check")
        if self.fault:
            raise InvariError(self.fault)

    def prepare(self) -> None:
        self.log.append("prepare")

    def fingerprint(self) -> Mapping[str, object]:
        self.log.append("fingerprint")
        return {"prompt": "p1", "layers": [1, 2], "options": {"select": 2, "api_key": "x"}}

    def rank(self, request: Request) -> Ranking:
        self.log.append("rank")
        return Ranking.from_order(request, sorted(request.ids))


def test_a_subject_reads_as_reranker_data_set_and_length() -> None:
    assert SubjectName("sgs:select=2", "movielens_small", 10).label == "sgs:select=2-movielens_small-K10"


def test_a_check_builds_and_checks_but_loads_and_ranks_nothing(project: Project) -> None:
    reranker = Careful()
    project.runner({"mine": reranker}).check(Subject(MINE, project.plan()))
    assert reranker.log == ["check"]
    assert not project.records.exists()


def test_a_reranker_is_loaded_before_it_says_what_it_is_and_only_once(project: Project) -> None:
    reranker = Careful()
    runner = project.runner({"mine": reranker})
    runner.prepare(Subject(MINE, project.plan()))
    runner.prepare(Subject(MINE, project.plan()))
    measured = runner.measure(Subject(MINE, project.plan()))
    assert reranker.log == ["prepare", "fingerprint", *["rank"] * 32]
    assert runner.measure(Subject(MINE, project.plan())) is measured
    runner.measure(Subject(MINE, project.plan(views=6)))
    assert reranker.log.count("prepare") == 1
    assert reranker.log.count("rank") == 32 + 16
    manifest = json.loads(next(project.records.glob("*/manifest.json")).read_text())
    shown = {key.partition(".")[2]: value for key, value in manifest.items() if key.startswith("reranker.")}
    assert shown == {"prompt": "p1", "layers": "[1, 2]", "options.select": 2, "options.api_key": "(hidden)"}
    assert {"environment.python", "environment.pytest-invari", "environment.device"} <= set(manifest)
    assert {key.partition(".")[2] for key in manifest if key.startswith("asked.")} == {
        "reranker", "model", "dtype", "dataset", "queries", "tasks_sha256", "k", "labels",
        "blind_ids",
    }  # fmt: skip


def test_measuring_prepares_what_nobody_has(project: Project) -> None:
    reranker = Careful()
    project.runner({"mine": reranker}, keep=False).measure(Subject(MINE, project.plan(views=2)))
    assert reranker.log == ["prepare", *["rank"] * 16]


class Loaded:
    """Ranks by what it has loaded."""

    def prepare(self) -> None:
        assert not hasattr(self, "model")
        self.model = str

    def rank(self, request: Request) -> Ranking:
        return Ranking.from_order(request, sorted(request.ids, key=self.model))


@pytest.mark.parametrize("target", [Loaded, Loaded()], ids=["a class", "a ready one"])
def test_what_is_built_anew_is_loaded_too_and_nothing_twice(project: Project, target: object) -> None:
    runner = project.runner({"mine": target}, keep=False, audits=True)
    measured = runner.measure(Subject(MINE, replace(project.plan(), repeats=2)))
    assert [seen.ranking.fault for seen in measured.repeats] == [""] * 4
    audit = runner.audit(Subject(MINE, measured.plan))
    assert audit is not None
    assert audit.fault == ""


class Early(Careful):
    """Says what it is before it is loaded, and fails one query where it is told to."""

    early_fingerprint = True

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.fails = fails

    def rank(self, request: Request) -> Ranking:
        if self.fails and request.query_id == "query1":
            return Ranking.failed("gone", is_transient=True)
        return super().rank(request)


class Nameless:
    """Is known by its source alone, and loads what it ranks with."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def prepare(self) -> None:
        self.log.append("prepare")

    def rank(self, request: Request) -> Ranking:
        return Ranking.from_order(request, sorted(request.ids))


@pytest.mark.parametrize(("kind", "log"), [(Early, ["fingerprint"]), (Nameless, [])])
def test_where_all_rankings_are_kept_nothing_is_loaded(
    project: Project, kind: type[Early | Nameless], log: list[str]
) -> None:
    plan = replace(project.plan(), repeats=2)
    first = project.runner({"mine": kind()}, audits=True).measure(Subject(MINE, plan))
    reranker = kind()
    runner = project.runner({"mine": reranker}, audits=True)
    runner.check(Subject(MINE, plan))
    runner.prepare(Subject(MINE, plan))
    again = runner.measure(Subject(MINE, plan))
    assert (again.observations, again.repeats) == (first.observations, first.repeats)
    assert runner.audit(Subject(MINE, plan)) is not None
    assert [each for each in reranker.log if each != "check"] == log
    with runner.ranking_again(Subject(MINE, plan), again.tasks.tasks[0], 1) as rank:
        assert rank(again.tasks.tasks[0].ids[:2])
    assert reranker.log.count("prepare") == 1


def test_preparing_makes_no_folder_for_what_may_never_be_ranked(project: Project) -> None:
    reranker = Early()
    project.runner({"mine": reranker}).prepare(Subject(MINE, project.plan()))
    assert reranker.log == ["fingerprint", "prepare"]
    assert not project.records.exists()


def test_nothing_is_loaded_for_fewer_queries_of_a_finished_run(project: Project) -> None:
    project.runner({"mine": Early()}).measure(Subject(MINE, project.plan()))
    reranker = Early()
    runner = project.runner({"mine": reranker})
    runner.prepare(Subject(MINE, project.plan(queries=5)))
    runner.measure(Subject(MINE, project.plan(queries=5)))
    assert reranker.log == ["fingerprint"]


def test_what_must_be_loaded_to_say_what_it_is_is_loaded_all_the_same(project: Project) -> None:
    project.runner({"mine": Careful()}).measure(Subject(MINE, project.plan()))
    reranker = Careful()
    project.runner({"mine": reranker}).measure(Subject(MINE, project.plan()))
    assert reranker.log == ["prepare", "fingerprint"]


@pytest.mark.parametrize(
    ("fails", "more"),
    [(True, {}), (False, {"views": 5}), (False, {"queries": None})],
    ids=["one was away", "another view", "more queries"],
)
def test_it_is_loaded_once_before_the_first_list_that_must_be_ranked(
    project: Project, fails: bool, more: dict[str, Any]
) -> None:
    plan = project.plan(queries=6)
    project.runner({"mine": Early(fails)}).measure(Subject(MINE, plan))
    reranker = Early()
    runner = project.runner({"mine": reranker})
    runner.prepare(Subject(MINE, replace(plan, **more)))
    runner.measure(Subject(MINE, replace(plan, **more)))
    assert reranker.log[:3] == ["fingerprint", "prepare", "rank"]
    assert reranker.log.count("prepare") == 1


def test_policies_for_failures_and_ties_rank_nothing_again(project: Project, by_id: type[ById]) -> None:
    reranker = by_id(lambda request: request.query_id == "query1")
    runner = project.runner({"mine": reranker}, keep=False)
    plans = [
        project.plan(on_failure=policy, ties=ties)
        for policy in ("strict", "drop", "random")
        for ties in ("broken", "half")
    ]
    undefined = [runner.measure(Subject(MINE, plan)).interval("loc").undefined for plan in plans]
    assert undefined == [1, 1, 1, 1, 0, 0]
    assert len(reranker.shown) == 32


def test_without_records_nothing_is_written(project: Project, by_id: type[ById]) -> None:
    before = sorted(project.path.iterdir())
    runner = project.runner({"mine": by_id()}, keep=False)
    runner.check(Subject(MINE, project.plan()))
    runner.measure(Subject(MINE, project.plan()))
    assert sorted(project.path.iterdir()) == before


def test_a_model_is_shared_by_all_that_are_built(project: Project) -> None:
    shared = []

    def make(build: Build) -> Careful:
        shared.append(build.shared)
        return Careful()

    runner = project.runner({"mine": make, "other": make})
    for spec in (MINE, RerankerSpec("other")):
        for k in (4, 5):
            runner.check(Subject(spec, project.plan(k=k)))
            runner.check(Subject(spec, project.plan(k=k, views=2)))
    assert len(shared) == 4
    assert all(each is shared[0] for each in shared)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"k": 6}, "data set 'films': query 'query0' has 5 candidates, fewer than the 6 asked for"),
        (
            {"k": 2, "views": 2},
            "query 'query0': 2 views asked for, but 2 candidates have only 1 order besides",
        ),
        ({"k": 3, "views": 7}, "query 'query0': 7 views asked for, but 3 candidates have only 5 orders"),
        ({"dataset": "nowhere"}, "unknown data set 'nowhere'"),
        ({"dataset": "nowhere.jsonl"}, "there is no such file or folder"),
    ],
)
def test_impossible_plans_are_refused_before_anything_is_loaded(
    project: Project, changed: dict[str, Any], message: str
) -> None:
    reranker = Careful()
    with pytest.raises(InvariError) as caught:
        project.runner({"mine": reranker}).check(Subject(MINE, project.plan(**changed)))
    assert message in str(caught.value)
    assert reranker.log == []


def test_settings_that_a_reranker_refuses_are_refused(project: Project) -> None:
    with pytest.raises(InvariError, match="no such model"):
        project.runner({"mine": Careful("no such model")}).check(Subject(MINE, project.plan()))


@pytest.mark.parametrize(
    ("name", "message"),
    [("nobody", "unknown reranker 'nobody'"), ("random:depth=2", "depth"), ("random:seed=much", "seed")],
)
def test_unknown_rerankers_and_options_are_refused(project: Project, name: str, message: str) -> None:
    with pytest.raises(InvariError, match=message):
        project.runner().check(Subject(RerankerSpec.parse(name), project.plan()))


def test_records_in_a_file_are_refused(project: Project) -> None:
    project.records.write_text("")
    with pytest.raises(InvariError, match="records: is a file; records need a folder"):
        project.runner({"mine": Careful()}).check(Subject(MINE, project.plan()))


class Given(Registry):
    """A registry whose data sets are given."""

    def __init__(self, tasks: TaskSet) -> None:
        super().__init__()
        self.given = tasks

    def load_tasks(self, dataset: str, k: int, queries: int | None = None) -> TaskSet:
        return self.given


def test_tasks_that_cannot_be_are_refused(tasks: TaskSet) -> None:
    first, second, *_ = tasks.tasks
    plan = Plan("films", 5, None, 4)
    for given, message in (
        ((), "data set 'films': has no queries"),
        ((first, second, first), "query 'query0' is there twice"),
        ((replace(first, candidates=first.candidates[:4] + first.candidates[:1]),), "has a candidate twice"),
        ((replace(first, candidates=first.candidates[:4]),), "has 4 candidates, not the 5 asked for"),
    ):
        with pytest.raises(InvariError, match=message):
            Runner(Given(TaskSet.of("films", given))).check(Subject(RerankerSpec("random"), plan))


def test_any_text_is_shown_kept_and_replayed(project: Project) -> None:
    strange = [
        '"', "\\", "\x00", "\u2028", "é😀", "\u202edrowssap", "=1+1", "a,b\nc", "</script>", "  ",
    ]  # fmt: skip
    candidates = [{"id": f"i{text}", "text": f"film {text}"} for text in strange]
    rows = [
        json.dumps({"query_id": f"q{text}", "text": text, "candidates": candidates}) + "\n"
        for text in strange
    ]
    (project.path / "strange.jsonl").write_text("".join(rows), encoding="utf-8")
    plan = project.plan(str(project.path / "strange.jsonl"), k=10, views=3)
    spec = RerankerSpec.parse("biased:beta=0.5")
    measured = project.runner().measure(Subject(spec, plan))
    assert measured.failure_count == 0
    again = project.runner(replay=True).measure(Subject(spec, plan))
    assert again.observations == measured.observations
    assert {seen.query_id for seen in again.observations} == {f"q{text}" for text in strange}
