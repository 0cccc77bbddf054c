"""A setting is declared once, and stands wherever one is chosen or explained."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_invari.criteria.evidence import DecisionRules
from pytest_invari.criteria.study import Rules
from pytest_invari.measure.subject import Subject
from pytest_invari.observation.plan import Plan
from pytest_invari.observation.view_settings import CountingRules, Setting, ViewSettings, settings_of
from pytest_invari.protocol import Candidate, Context
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.schema import suite_schema
from pytest_invari.session.fixture import Studies, StudyNotes
from pytest_invari.settings import BadValueError, ModelSettings, Settings, options
from pytest_invari.suitefile.keys import PROFILE, SUITE
from pytest_invari.suitefile.suite import Profile, Suite
from pytest_invari.tasks.task import Task
from pytest_invari.testing.inputs import ObjectRegistry
from tests.docs.test_reference import text

if TYPE_CHECKING:
    from pytest_invari.criteria.study import Study

DECLARED = {
    name: (declared, setting)
    for declared in (ViewSettings, CountingRules, DecisionRules)
    for name, setting in settings_of(declared).items()
}
# What the fixture leaves to suites.
OF_SUITES = ("interval", "repeats", "bank", "probe", "target")


def a_value(setting: Setting) -> Any:
    """One that is not the default."""
    if setting.choices:
        return next(each for each in setting.choices if each != setting.default)
    return {bool: True, int: setting.default + 7, float: 0.5}[setting.type]


@pytest.mark.parametrize("name", DECLARED)
def test_it_is_a_key_of_suites_with_its_meaning_and_default(name: str) -> None:
    declared, setting = DECLARED[name]
    section, keys, holder = (
        ("profile", PROFILE, Profile) if declared is ViewSettings else ("suite", SUITE, Suite)
    )
    [key] = [each for each in keys if each.name == name]
    assert key.description == setting.meaning
    # Either views or a bank has to be there.
    assert key.default == (None if name == "views" else setting.default)
    assert issubclass(holder, declared)
    part = suite_schema()["properties"][section]
    schema = (part if section == "suite" else part["additionalProperties"])["properties"][name]
    assert schema["description"] == setting.meaning
    assert schema.get("enum", []) == list(setting.choices)
    assert schema.get("minimum", setting.least) == setting.least
    assert f"| `{name}` |" in text("suite.md")
    assert setting.meaning in text("suite.md")


@pytest.mark.parametrize("name", DECLARED)
def test_it_is_part_of_what_is_measured_or_of_how_it_is_judged(name: str) -> None:
    declared, setting = DECLARED[name]
    made = Rules if declared is DecisionRules else Plan
    assert {each.name: each.default for each in fields(made)}[name] == setting.default
    assert settings_of(made)[name] == setting


def test_every_field_of_a_plan_but_its_lists_is_a_setting() -> None:
    lists = {"dataset", "k", "queries"}
    assert {each.name for each in fields(Plan)} - lists == settings_of(Plan).keys()


def a_study(folder: Path, **chosen: Any) -> Study:
    candidates = tuple(Candidate(str(number), str(number)) for number in range(9))
    studies = Studies(ObjectRegistry(folder, {}), Settings(), StudyNotes())
    return studies.study("random", [Task("q", Context("text"), candidates)], **({"views": 5} | chosen))


@pytest.mark.parametrize("name", [each for each in DECLARED if each not in OF_SUITES])
def test_a_study_takes_it_and_passes_it_on(tmp_path: Path, name: str) -> None:
    _, setting = DECLARED[name]
    parameter = "seed" if name == "view_seed" else name
    default = inspect.signature(Studies.study).parameters[parameter].default
    assert default in (inspect.Parameter.empty, None) or default == setting.default
    study = a_study(tmp_path, **{parameter: a_value(setting)})
    assert getattr(study._rules if hasattr(study._rules, name) else study.plan, name) == a_value(setting)
    other = a_study(tmp_path)
    assert getattr(other._rules if hasattr(other._rules, name) else other.plan, name) == (
        5 if name == "views" else setting.default
    )


@pytest.mark.parametrize(("option", "name"), [("views", "views"), ("seed", "view_seed")])
def test_an_option_takes_what_a_suite_takes(option: str, name: str) -> None:
    least = settings_of(ViewSettings)[name].least
    [found] = [each for each in options() if each.name == option]
    assert found.read(str(least)) == least
    with pytest.raises(BadValueError):
        found.read(str(least - 1))


def test_every_field_of_the_settings_is_an_option() -> None:
    of_models = [each.name for each in fields(ModelSettings)]
    own = [each.name for each in fields(Settings) if each.name != "model_settings"]
    assert sorted(each.setting for each in options()) == sorted(own + of_models)
    assert all(len(each.help) > 10 for each in options())


@pytest.mark.parametrize(
    "name", [each for each, (declared, _) in DECLARED.items() if declared is not DecisionRules]
)
def test_plans_that_differ_in_it_observe_the_same_only_where_it_decides_no_ranking(name: str) -> None:
    _, setting = DECLARED[name]
    bank = ("canonical", "13", "17", "19", "23")
    plan = Plan("films", 9, None, bank=bank, views=5)
    value = {"bank": bank[::-1], "probe": bank[:2], "target": bank[2:]}.get(name) or a_value(setting)
    chosen: dict[str, Any] = {name: value} | ({"bank": ()} if name == "views" else {})
    other = replace(plan, **chosen)
    assert plan != other
    assert (plan.deciding("orders") == other.deciding("orders")) == (setting.decides != "orders")
    mine, theirs = (Subject(RerankerSpec("mine"), each) for each in (plan, other))
    assert (mine.observed == theirs.observed) == (setting.decides in ("values", "figures"))
    assert (mine.shown_lists == theirs.shown_lists) == (setting.decides != "requests")
