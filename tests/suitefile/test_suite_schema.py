"""The JSON Schema of suites: shipped as generated, and of one mind with the reader."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pytest_invari.criteria.metric import MetricCriterion
from pytest_invari.criteria.witness import WitnessCriterion
from pytest_invari.errors import InvariError
from pytest_invari.metrics import built_in_metrics, parse_metric
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.schema import suite_schema
from pytest_invari.suitefile.keys import (
    COMPARISONS,
    CRITERION,
    CRITERION_KINDS,
    GOES_WITH,
    PROFILE,
    SUITE,
    MetricWord,
    RerankerWord,
)
from pytest_invari.suitefile.reader import read_suite

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "pytest_invari" / "suites" / "suite.schema.json"

schema = Draft202012Validator(suite_schema())


def test_it_is_a_valid_schema() -> None:
    Draft202012Validator.check_schema(suite_schema())


def test_the_shipped_file_is_what_the_command_prints() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest_invari.schema"], capture_output=True, cwd=ROOT.parent, check=True
    )
    command = "python -m pytest_invari.schema > suites/suite.schema.json"
    assert SHIPPED.read_bytes() == done.stdout, f"the suite's keys have changed; run: {command}"
    assert strict_json(done.stdout) == suite_schema()


def strict_json(text: str | bytes) -> Any:
    """What the text says, which has none of Python's words for what is no number in JSON."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_an_argument_is_refused() -> None:
    command = [sys.executable, "-m", "pytest_invari.schema", "foo"]
    done = subprocess.run(command, capture_output=True, cwd=ROOT.parent, check=False, text=True)
    assert done.returncode == 2
    assert "unrecognized arguments: foo" in done.stderr
    assert not done.stdout


def test_a_metric_without_a_lowest_value_takes_any_bound_from_below() -> None:
    suite = {"suite": {"name": "s"}, "profile": {"a": {"datasets": "d", "k": 5, "views": 2}}}
    for bound, fits in ((-1e300, True), (1, True), (1.5, False)):
        criterion = {"name": "a", "metric": "r2_gain", "at_least": bound}
        assert schema.is_valid(suite | {"criterion": [criterion]}) == fits


def suites_in_pages() -> list[str]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    blocks = [
        block
        for page in pages
        for block in re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.M | re.S)
    ]
    return [block for block in blocks if "[suite]" in block]


@pytest.mark.parametrize(
    "text", [*(path.read_text() for path in sorted((ROOT / "suites").glob("*.toml"))), *suites_in_pages()]
)
def test_the_suites_that_come_with_the_project_fit(text: str) -> None:
    assert not list(schema.iter_errors(tomllib.loads(text)))


def test_packaged_suites_name_their_schema() -> None:
    assert len(suites_in_pages()) >= 2
    for path in (ROOT / "suites").glob("*.toml"):
        directive = re.match(r"#:schema (\S+)\n", path.read_text())
        assert directive
        assert (path.parent / directive[1]).resolve() == SHIPPED.resolve()


@pytest.mark.parametrize("keys", [SUITE, PROFILE, CRITERION])
def test_every_key_is_explained_once(keys: Any) -> None:
    assert len({key.name for key in keys}) == len(keys)
    assert all(len(key.description) > 10 for key in keys)


def test_defaults_of_a_criterion_in_code_and_in_a_file_are_the_same() -> None:
    for kind, made in (("metric", MetricCriterion), ("witness", WitnessCriterion)):
        in_code = {field.name: field.default for field in dataclasses.fields(made)}
        apart = ("name", "kind", "metric", *COMPARISONS, *GOES_WITH)
        in_file = {key.name: key.default for key in CRITERION_KINDS[kind] if key.name not in apart}
        assert {name: in_code[name] for name in in_file} == in_file


@given(
    st.sampled_from(sorted(built_in_metrics())),
    st.sampled_from(["", "@5", "@0", "@", "@05", "@123456", "@99999", "@k", " "]),
)
def test_a_metric_is_known_to_both_or_to_neither(family: str, rest: str) -> None:
    try:
        parse_metric(family + rest)
        known = True
    except InvariError:
        known = False
    assert Draft202012Validator(MetricWord().schema()).is_valid(family + rest) == known


@pytest.mark.parametrize("word", ["top_moves", "top_moves@5", "locs", "ndcg2@99999"])
def test_a_name_that_may_be_a_users_own_metric_fits(word: str) -> None:
    criterion = {"name": "a", "metric": word, "at_most": 12.5}
    suite = {"suite": {"name": "s"}, "profile": {"a": {"datasets": "d", "k": 5, "views": 2}}}
    assert schema.is_valid(suite | {"criterion": [criterion]})


@pytest.mark.parametrize("word", ["Top", "1st", "_a", "a b", "", "moves@0", "moves@", "ndcg", "loc@5"])
def test_one_that_cannot_be_does_not(word: str) -> None:
    assert not Draft202012Validator(MetricWord().schema()).is_valid(word)


@given(st.text(st.sampled_from("aZ_0.-:,= ()é\n"), max_size=12))
def test_a_reranker_that_can_be_read_fits(text: str) -> None:
    try:
        RerankerSpec.parse(text)
    except InvariError:
        return
    assert Draft202012Validator(RerankerWord().schema()).is_valid(text)


# Any value where another is meant; no whole floats and no NaN, which JSON does not tell from numbers.
ODD = [
    0,
    1,
    2,
    5,
    -1,
    0.5,
    1.5,
    -0.5,
    True,
    False,
    "",
    "k",
    "x",
    "a b",
    "loc",
    "strict",
    [],
    {},
    ["x"],
    [3, 3],
]
RERANKERS = ["baseline", "random", "sgs:select=2"]
VALUES: dict[str, dict[str, list[Any]]] = {
    "suite": {
        "name": ["s", "s_2", "S"],
        "title": ["t"],
        "baseline": RERANKERS,
        "profile": ["a"],
        "min_queries": [1, 30],
        "max_undefined": [0, 0.5, 1],
        "on_failure": ["strict", "drop", "random"],
        "ties": ["broken", "half"],
    },
    "profile": {
        "datasets": ["d", ["d"], ["d", "e"]],
        "k": [4, 5, [5, 6]],
        "views": [1, 2, 3],
        "queries": [0, 1],
        "title": ["t"],
        "view_seed": [0, 1],
        "include_canonical": [True],
    },
    "criterion": {
        "name": ["a"],
        "kind": ["metric", "witness", "own", "nobodys own"],
        "max_calls": [0, 50, -1],
        "options": [{}, {"least": 0.5}, {"least": {}}],
        "metric": ["loc", "gpi", "ndcg@5", "calls", "calls@5"],
        "at_least": [0.25, 0, 0.5, 1, -1, "k"],
        "at_most": [0.25, 0, 0.5, 1, -1, "k"],
        "not_worse_than": RERANKERS,
        "margin": [0, 0.25, 0.5, 1.25, 2],
        "better_than": RERANKERS,
        "by": [0, 0.25, 0.5, 1.25, 2],
        "why": ["w"],
        "profiles": ["a", ["a"]],
        "needs_views": [0, 2],
        "only_at_views": [0, 2],
    },
}
BOUNDS: list[dict[str, Any]] = [
    {"at_least": 0.5},
    {"at_most": 0.25},
    {"not_worse_than": "random", "margin": 0.25},
    {"better_than": "random"},
]
CRITERIA: list[dict[str, Any]] = [
    *({"metric": "loc", **bound} for bound in BOUNDS),
    {"kind": "witness"},
    {"kind": "witness", "max_calls": 0},
    {"kind": "own", "options": {"least": 0.5}},
]


def own(study: object, least: float = 0.5) -> None:
    """A kind that the suites may name."""


@st.composite
def suites(draw: st.DrawFn) -> dict[str, Any]:
    """A suite that is right but for up to three changes."""
    suite, profile = {"name": "s"}, {"datasets": "d", "k": 5, "views": 2}
    criterion = {"name": "a", **draw(st.sampled_from(CRITERIA))}
    tables: dict[str, dict[str, Any]] = {"suite": suite, "profile": profile, "criterion": criterion}
    for section in draw(st.lists(st.sampled_from([*tables, "criterion", "criterion"]), max_size=3)):
        key = draw(st.sampled_from([*VALUES[section]]))
        change = draw(st.sampled_from(["value", "value", "value", "odd", "left out", "another key"]))
        if change == "left out":
            tables[section].pop(key, None)
        elif change == "another key":
            tables[section]["odd"] = 1
        else:
            tables[section][key] = draw(st.sampled_from(VALUES[section][key] if change == "value" else ODD))
    whole = {"suite": suite, "profile": {"a": profile}, "criterion": [criterion]}
    if draw(st.integers(0, 9)) == 0:
        whole[draw(st.sampled_from([*whole, "odd"]))] = draw(st.sampled_from(ODD))
    return whole


def as_toml(suite: dict[str, Any]) -> str:
    """A suite as TOML, on one line a section; JSON's texts, numbers and words are TOML's too."""
    return "\n".join(f"{json.dumps(section)} = {_value(content)}" for section, content in suite.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


@given(suites())
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reader_and_schema_accept_the_same_suites(tmp_path: Path, suite: dict[str, Any]) -> None:
    (tmp_path / "s.toml").write_text(as_toml(suite), encoding="utf-8")
    assert tomllib.loads(as_toml(suite)) == suite
    try:
        read_suite(tmp_path / "s.toml", {"own": own})
        told = ""
    except InvariError as error:
        told = str(error)
    refused = [error.message for error in schema.iter_errors(suite)]
    only_the_reader_knows = re.search(
        r"unknown profile|looks at the top|unknown metric '[a-z][a-z0-9_]*(@\d+)?'", told
    )
    assert bool(told) == bool(refused) or only_the_reader_knows, (told, refused)
