"""The JSON Schemas of reports: shipped as generated, and every key of every report is declared."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from pytest_invari.reports.schema import SCHEMAS
from tests.baseline.conftest import Gated, gated
from tests.session.test_analyses import lists, run
from tests.session.test_custom_metrics import CONFTEST
from tests.session.test_custom_metrics import SUITE as OWN
from tests.suitefile.test_suite_schema import strict_json

if TYPE_CHECKING:
    from tests.session.conftest import Project

__all__ = ["gated", "lists"]

ROOT = Path(__file__).resolve().parents[2]
VALIDATORS = {name: Draft202012Validator(make()) for name, make in SCHEMAS.items()}
# To the one a hook may add; of the other each kind of criterion makes its own.
OPEN = ("environment", "details")


def checked(project: Project, name: str = "report") -> Any:
    """The report that the last run has written, which fits its schema."""
    found = json.loads((project.path / "report.json").read_text(encoding="utf-8"))
    faults = [f"{error.json_path}: {error.message}" for error in VALIDATORS[name].iter_errors(found)]
    assert not faults
    return found


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_shipped_file_is_what_the_command_prints(name: str) -> None:
    command = [sys.executable, "-m", "pytest_invari.reports.schema", name]
    done = subprocess.run(command, capture_output=True, cwd=ROOT.parent, check=True)
    shipped = ROOT / "pytest_invari" / "reports" / f"{name}.schema.json"
    assert shipped.read_bytes() == done.stdout, (
        f"a report has changed; run: {' '.join(command[1:])} > {shipped}"
    )
    Draft202012Validator.check_schema(strict_json(done.stdout))


def objects(schema: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Each part of a schema that describes an object, with the key that it is the value of."""
    if isinstance(schema, list):
        for part in schema:
            yield from objects(part, key)
    elif isinstance(schema, dict):
        if "properties" in schema or schema.get("type") in ("object", ["object", "null"]):
            yield key, schema
        for name, part in schema.get("properties", {}).items():
            yield from objects(part, name)
        for name in ("items", "anyOf", "additionalProperties"):
            yield from objects(schema.get(name), key)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_key_is_explained_and_nothing_else_is_let_in(name: str) -> None:
    found = list(objects(SCHEMAS[name]()))
    assert len(found) >= 4
    for key, schema in found:
        assert ("additionalProperties" in schema) != (key in OPEN), key
        for inner, value in schema.get("properties", {}).items():
            assert len(value["description"]) > 4, (key, inner)


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
def test_plain_failing_undecided_and_left_out(project: Project, workers: tuple[str, ...]) -> None:
    arguments = ("--invari-json=report.json", "--reranker=random", *workers)
    project.run(*arguments, reranker="input_order")
    found = checked(project)
    assert found["verdicts"] == {"pass": 2, "fail": 4, "undecided": 1}
    assert found["left_out"]
    declared = SCHEMAS["report"]()["properties"]["environment"]["properties"]
    assert set(found["environment"]) == set(declared)


def test_undefined_is_null_also_where_every_ranking_fails(project: Project) -> None:
    project.write("mine_bad.py", "def rank(context, texts):\n    raise RuntimeError('no answer')\n")
    project.run("--invari-json=report.json", reranker="mine_bad:rank")
    found = checked(project)
    assert found["subjects"][0]["metrics"]["loc"]["estimate"] is None
    assert found["subjects"][0]["position_p_value"] is None
    assert found["criteria"][0]["p_fail"] is None


def test_what_was_not_judged_and_a_run_without_any_item(project: Project) -> None:
    project.run("--invari-json=report.json", "--invari-strict", "-k", "nothing")
    found = checked(project)
    assert (found["suite"], found["criteria"]) == (None, [])
    assert found["unjudged"]


def test_comparisons(gated: Gated) -> None:
    gated.save()
    gated.make_noise(0.9)
    gated.compare("--invari-json=report.json")
    assert {each["outcome"] for each in checked(gated.project)["changes"]} >= {"regressed"}
    project = gated.project
    project.run("--invari-compare=mine.json", "--invari-json=report.json", reranker="random")
    assert {each["outcome"] for each in checked(project)["changes"]} == {"missing"}


@pytest.mark.usefixtures("lists")
@pytest.mark.parametrize("suite", ["independent_views", "routing"])
@pytest.mark.parametrize("reranker", ["biased:noise=0.7", "oracle", "mine_bad:rank"])
def test_analyses(project: Project, suite: str, reranker: str) -> None:
    project.write("mine_bad.py", "def rank(context, texts):\n    raise RuntimeError('no answer')\n")
    run(project, suite, reranker=reranker)
    assert list(checked(project)["subjects"][0]["analyses"]) == [suite]


KIND = """

@pytest.hookimpl(optionalhook=True)
def pytest_invari_criteria(config):
    return {"steady": lambda study: study.assert_at_least("slow_loc", 0.5)}
"""
KINDS = """
[[criterion]]
name = "steady"
kind = "steady"
[[criterion]]
name = "seen"
kind = "witness"
"""


@pytest.mark.parametrize("reranker", ["first_stage", "input_order", "mine_bad:rank"])
def test_metrics_and_kinds_of_the_users_own(project: Project, reranker: str) -> None:
    project.write("mine_bad.py", "def rank(context, texts):\n    raise RuntimeError('no answer')\n")
    project.write("conftest.py", CONFTEST + KIND)
    project.write("own.invari.toml", OWN + KINDS)
    project.pytest("--invari-suite=own.invari.toml", f"--reranker={reranker}", "--invari-json=report.json")
    found = checked(project)
    assert "slow_loc" in found["subjects"][0]["metrics"]
    assert [each["kind"] for each in found["criteria"]] == [*["metric"] * 3, "steady", "witness"]


def test_a_self_check(project: Project) -> None:
    options = ("--invari-selfcheck", "--invari-simulations=20", "--invari-suite=small.invari.toml")
    project.pytest(*options, "--invari-json=report.json", "-k", "loc and noise")
    assert checked(project, "selfcheck")["trials"]


def test_a_key_that_is_not_declared_does_not_fit(project: Project) -> None:
    project.run("--invari-json=report.json", "-k", "calls")
    found = checked(project)
    found["environment"]["commit"] = "abc"
    assert VALIDATORS["report"].is_valid(found)
    for part in (found, found["criteria"][0], found["subjects"][0], found["subjects"][0]["metrics"]["loc"]):
        part["more"] = 1
        assert not VALIDATORS["report"].is_valid(found)
        del part["more"]
        removed = part.popitem()
        assert not VALIDATORS["report"].is_valid(found)
        part[removed[0]] = removed[1]
