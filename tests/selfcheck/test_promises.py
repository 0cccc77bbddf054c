"""What the self-check simulates: plans of a suite's own, but for the data and their number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_invari.observation.plan import Plan
from pytest_invari.observation.view_settings import settings_of
from pytest_invari.selfcheck.plugin import promises
from pytest_invari.settings import Settings
from pytest_invari.suitefile.reader import read_suite

BANK = 'bank = ["canonical", 13, 17, 19, 23]\nprobe = ["canonical", 13]\ntarget = [17, 19, 23]'
NAMES = ("canonical", "13", "17", "19", "23")
# Of each setting: what a suite says under [suite], in its profile, and what the plan then has.
CHOSEN: dict[str, tuple[str, str, Any]] = {
    "views": ("", "views = 7", 7),
    "view_seed": ("", "views = 4\nview_seed = 3", 3),
    "include_canonical": ("", "views = 4\ninclude_canonical = true", True),
    "labels": ("", 'views = 4\nlabels = "redrawn"', "redrawn"),
    "blind_ids": ("", "views = 4\nblind_ids = true", True),
    "repeats": ("", "views = 4\nrepeats = 5", 5),
    "bank": ("", BANK, NAMES),
    "probe": ("", BANK, NAMES[:2]),
    "target": ("", BANK, NAMES[2:]),
    "on_failure": ('on_failure = "drop"', "views = 4", "drop"),
    "ties": ('ties = "half"', "views = 4", "half"),
    "interval": ('interval = "percentile"', "views = 4", "percentile"),
}
SUITE = """
[suite]
name = "own"
{head}
[profile.quick]
datasets = "films"
k = 6
{profile}
[[criterion]]
name = "loc"
metric = "loc"
at_least = 0.5
"""


@pytest.mark.parametrize("name", settings_of(Plan))
def test_every_setting_is_the_suites_own(tmp_path: Path, name: str) -> None:
    head, profile, value = CHOSEN[name]
    path = tmp_path / "own.toml"
    path.write_text(SUITE.format(head=head, profile=profile), encoding="utf-8")
    plans = {promise.plan for promise in promises([read_suite(path)], Settings())}
    [plan] = plans
    assert getattr(plan, name) == value
    assert getattr(Plan("films", 6, None), name) != value
    assert (plan.dataset, plan.k, plan.queries) == ("simulated", 6, 100)


@pytest.mark.parametrize("chosen", [Settings(views=3), Settings(seed=5)])
def test_a_number_or_a_seed_takes_the_place_of_a_bank(tmp_path: Path, chosen: Settings) -> None:
    path = tmp_path / "own.toml"
    path.write_text(SUITE.format(head="", profile=BANK), encoding="utf-8")
    [plan] = {promise.plan for promise in promises([read_suite(path)], chosen)}
    assert (plan.views, plan.view_seed) == (chosen.views or 5, chosen.seed or 0)
    assert not plan.bank
