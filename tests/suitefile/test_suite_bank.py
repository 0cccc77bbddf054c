"""A profile that names its views: what it may say, and what a run makes of it."""

# ruff: noqa: E501  # a table reads better with a case a line

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pytest_invari.errors import InvariError
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.schema import suite_schema
from pytest_invari.selfcheck.plugin import promises
from pytest_invari.settings import Settings
from pytest_invari.suitefile.expansion import expand
from pytest_invari.suitefile.reader import read_suite

if TYPE_CHECKING:
    from tests.session.conftest import Project

SUITE = """\
[suite]
name = "{name}"
[profile.quick]
datasets = "longer.jsonl"
k = 8
{views}
{roles}
[[criterion]]
name = "loc"
metric = "loc"
at_least = 0.5
"""
BANK = 'bank = ["canonical", 13, 17, 19, 23, 29, 31, 41]'
ROLES = 'probe = ["canonical", 13]\ntarget = [23, 29, 31, 41]'
NAMES = ("canonical", "13", "17", "19", "23", "29", "31", "41")

schema = Draft202012Validator(suite_schema())


def written(views: str = BANK, roles: str = ROLES, name: str = "banked") -> str:
    return SUITE.format(name=name, views=views, roles=roles)


def test_a_bank_is_read_as_names_and_counts_as_views(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(written())
    suite = read_suite(tmp_path / "s.toml")
    profile = suite.profile()
    assert (profile.bank, profile.views) == (NAMES, 8)
    assert (profile.probe, profile.target) == (("canonical", "13"), ("23", "29", "31", "41"))
    [check] = expand([suite], [RerankerSpec.parse("random")], Settings()).checks
    plan = check.plan
    assert (plan.bank, plan.views, plan.probe_places, plan.target_places) == (NAMES, 8, (0, 1), (4, 5, 6, 7))
    assert schema.is_valid(tomllib.loads(written()))


@pytest.mark.parametrize("roles", ["", 'probe = [13, "canonical"]\ntarget = [17, 19]\nallow_overlap = true'])
def test_roles_may_be_missing_and_targets_reused_where_that_is_said(tmp_path: Path, roles: str) -> None:
    (tmp_path / "s.toml").write_text(written(roles=roles))
    profile = read_suite(tmp_path / "s.toml").profile()
    assert profile.probe == (("13", "canonical") if roles else ())
    assert schema.is_valid(tomllib.loads(written(roles=roles)))


# What is written in place of the bank (line 6) and of the roles (lines 7 and 8), and what is told.
WRONG: list[tuple[str, str, str]] = [
    ("", "", "3: [profile.quick]: the key 'views' is missing: orders in which each list is shown; or give a bank, which names them"),
    ("", ROLES, "3: [profile.quick]: the key 'views' is missing"),
    ("views = 4", ROLES, "7: [profile.quick]: probe needs bank beside it"),
    (f"{BANK}\nviews = 8", "", "7: [profile.quick]: views and bank are both given; the bank says it all, so leave views out"),
    (BANK, "view_seed = 0", "7: [profile.quick]: view_seed and bank are both given"),
    (BANK, "include_canonical = true", "7: [profile.quick]: include_canonical and bank are both given"),
    (BANK, "probe = [13, 17]", "7: [profile.quick]: probe needs target beside it"),
    (BANK, "target = [13, 17]", "7: [profile.quick]: target needs probe beside it"),
    (BANK, "allow_overlap = true", "7: [profile.quick]: allow_overlap needs probe beside it"),
    ("bank = [13, 13]", "", "6: [profile.quick]: bank names 13 twice"),
    ('bank = ["canonical", 13, "canonical"]', "", "6: [profile.quick]: bank names 'canonical' twice"),
    ("bank = [13]", "", "6: [profile.quick]: bank has one view, 13: a single order shows no instability; give at least two"),
    ("bank = 13", "", "6: [profile.quick]: bank has one view, 13: "),
    ("bank = []", "", "6: [profile.quick]: bank is empty; give at least one value"),
    ('bank = ["cannonical", 13]', "", "6: [profile.quick]: bank must hold \"canonical\" and seeds, which are whole numbers such as 13, not 'cannonical'"),
    ('bank = ["13", 17]', "", "6: [profile.quick]: bank must hold \"canonical\" and seeds, which are whole numbers such as 13, not '13'"),
    ("bank = [-1, 17]", "", "6: [profile.quick]: bank must hold \"canonical\" and seeds, which are whole numbers such as 13, not -1"),
    ("bank = [true, 17]", "", "6: [profile.quick]: bank must hold \"canonical\" and seeds, which are whole numbers such as 13, not true"),
    (BANK, "probe = [13, 13]\ntarget = [17, 19]", "7: [profile.quick]: probe names 13 twice"),
    (BANK, "probe = [13]\ntarget = [17, 19]", "7: [profile.quick]: probe has one view, 13: its variance is 0 for every query, so that its correlation with anything is undefined; give at least two"),
    (BANK, "probe = [13, 17]\ntarget = 19", "8: [profile.quick]: target has one view, 19: a single order has no instability that a probe could predict; give at least two"),
]  # fmt: skip

BEYOND_THE_SCHEMA: list[tuple[str, str, str]] = [
    (BANK, "probe = [13, 12]\ntarget = [17, 19]", "7: [profile.quick]: probe names 12, which is not in the bank: canonical, 13, 17, 19, 23, 29, 31, 41"),
    (BANK, "probe = [13, 17]\ntarget = [\n  19,\n  37,\n]", "8: [profile.quick]: target names 37, which is not in the bank: canonical, 13"),
    (BANK, "probe = [13, 17]\ntarget = [17, 19, 13]", "8: [profile.quick]: target and probe share 17, 13: they correlate by what they share, whatever is ranked; give the target views of its own"),
    (BANK, "probe = [13, 17]\ntarget = [17, 19]\nallow_overlap = true", "8: [profile.quick]: target and probe share 17: "),
    (f"bank = [13, {2**63}]", "", "6: [profile.quick]: bank must hold"),
]  # fmt: skip


@pytest.mark.parametrize(("views", "roles", "message"), [*WRONG, *BEYOND_THE_SCHEMA])
def test_a_mistake_in_a_bank_is_told_with_its_line(
    tmp_path: Path, views: str, roles: str, message: str
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(written(views, roles))
    with pytest.raises(InvariError) as caught:
        read_suite(path)
    assert str(caught.value).startswith(f"{path}:{message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("views", "roles", "message"), WRONG)
def test_the_schema_refuses_it_too(views: str, roles: str, message: str) -> None:
    assert not schema.is_valid(tomllib.loads(written(views, roles))), message


VIEW = st.sampled_from(["canonical", 13, 17, 19, "13", "x", True, -1])
ROLE = st.lists(VIEW, max_size=3)


@given(
    st.fixed_dictionaries(
        {"datasets": st.just("d"), "k": st.just(8)},
        optional={
            "views": st.just(4), "bank": st.lists(VIEW, max_size=4), "probe": ROLE, "target": ROLE,
            "allow_overlap": st.booleans(), "view_seed": st.just(1),
        },
    )
)  # fmt: skip
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reader_and_schema_accept_the_same_banks(tmp_path: Path, profile: dict[str, Any]) -> None:
    lines = [f"{key} = {json.dumps(value)}" for key, value in profile.items()]
    text = '[suite]\nname = "s"\n[profile.a]\n' + "\n".join(lines) + "\n"
    text += '[[criterion]]\nname = "a"\nmetric = "loc"\nat_least = 0.5\n'
    (tmp_path / "s.toml").write_text(text)
    try:
        read_suite(tmp_path / "s.toml")
        told = ""
    except InvariError as error:
        told = str(error)
    known_to_the_schema = bool(told) and "which is not in the bank" not in told and " share " not in told
    assert schema.is_valid(tomllib.loads(text)) != known_to_the_schema, told


# Runs

COUNTED = """
from pathlib import Path

def rank(context, texts):
    with Path("calls.txt").open("a") as file:
        file.write("x")
    return [float(len(text)) + float(text[-1]) for text in texts]
"""


@pytest.fixture
def banked(project: Project) -> Project:
    rows = []
    for query in range(32):
        candidates = [{"id": f"q{query}i{item}", "text": f"Film {item}"} for item in range(8)]
        rows.append(json.dumps({"query_id": f"q{query}", "candidates": candidates}) + "\n")
    project.write("longer.jsonl", "".join(rows))
    project.write("mine_banked.py", COUNTED)
    project.write("banked.invari.toml", written())
    other = written(BANK.replace("41]", "41, 43]"), 'probe = ["canonical", 17]\ntarget = [19, 23]', "other")
    project.write("other.invari.toml", other)
    project.write("third.invari.toml", written(roles="probe = [17, 19]\ntarget = [23, 29]", name="third"))
    return project


def calls(project: Project) -> int:
    path = project.path / "calls.txt"
    return len(path.read_text()) if path.exists() else 0


def test_two_suites_of_one_bank_rank_once_with_and_without_records(banked: Project) -> None:
    both = ("banked.invari.toml", "third.invari.toml", "--reranker=mine_banked:rank")
    banked.pytest(*both).assert_outcomes(passed=2)
    assert calls(banked) == 32 * 8
    banked.pytest(*both, "--invari-records=kept").assert_outcomes(passed=2)
    assert calls(banked) == 2 * 32 * 8
    [folder] = (banked.path / "kept").iterdir()
    assert folder.name.startswith("mine_banked_rank-longer-K8-")


def test_a_suite_of_a_larger_bank_ranks_what_is_new(banked: Project) -> None:
    kept = ("--reranker=mine_banked:rank", "--invari-records=kept", "--invari-json=report.json")
    banked.pytest("banked.invari.toml", *kept).assert_outcomes(passed=1)
    banked.pytest("other.invari.toml", *kept).assert_outcomes(passed=1)
    assert calls(banked) == 32 * 9
    [subject] = json.loads((banked.path / "report.json").read_text())["subjects"]
    assert (subject["views"], subject["rankings_from_records"]) == (9, 32 * 8)
    assert len(list((banked.path / "kept").iterdir())) == 1
    banked.pytest("banked.invari.toml", *kept, "--invari-replay").assert_outcomes(passed=1)
    assert calls(banked) == 32 * 9


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "--invari-views=4",
            "--invari-views=4: profile 'quick' (banked.invari.toml:6) names its views, and a number does not "
            "say which of these 8 are meant; change the bank instead",
        ),
        (
            "--invari-seed=1",
            "--invari-seed=1: profile 'quick' (banked.invari.toml:6) names its views by seeds of their own; "
            "change the bank instead",
        ),
        (
            "--invari-k=6",
            "lists of 6 have 720 orders, too few for a bank of 8 views, whose orders are drawn independently: "
            "28 pairs of views would each share an order in one query of 720; use longer lists or fewer views",
        ),
    ],
)
def test_what_a_bank_leaves_no_room_for_is_refused(banked: Project, given: str, message: str) -> None:
    result = banked.pytest("banked.invari.toml", "--reranker=random", given)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == f"ERROR: {message}"


def test_other_suites_of_the_run_may_be_given_a_number_where_none_has_a_bank(banked: Project) -> None:
    result = banked.run("--invari-views=4", "banked.invari.toml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    banked.run("--invari-views=4", "-k", "loc and not baseline").assert_outcomes(passed=1)


def test_a_self_check_simulates_as_many_views(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(written())
    suite = read_suite(tmp_path / "s.toml")
    assert {promise.plan.views for promise in promises([suite], Settings())} == {8}
