"""JUnit of comparisons: each outcome's state, and its figures as properties that a reader may rely on."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.baseline.conftest import Gated

# What JUnit has within a case of each outcome; nothing where it passes.
STATES = {"improved": "", "same": "", "regressed": "failure", "missing": "failure", "undecided": "skipped"}


def cases(gated: Gated, *options: str) -> dict[str, tuple[str, str, dict[str, str]]]:
    """By criterion the state, its message, and the properties."""
    changes = gated.changes("--junitxml=junit.xml", *options)
    root = ElementTree.parse(gated.project.path / "junit.xml").getroot()
    found = {}
    for case in root.iter("testcase"):
        properties = {each.get("name", ""): each.get("value", "") for each in case.iter("property")}
        states = [each for each in case if each.tag in ("failure", "skipped", "error")]
        assert len(states) <= 1
        state, message = (states[0].tag, states[0].get("message", "")) if states else ("", "")
        criterion, is_change, _ = (case.get("name") or "").partition("@baseline[")
        if is_change:
            found[criterion] = (state, message, properties)
    assert found.keys() == changes.keys()
    for name, change in changes.items():
        properties = found[name][2]
        assert properties["invari_outcome"] == change["outcome"]
        for figure in ("difference", "low", "high", "before", "now"):
            given = properties.get(f"invari_{figure}")
            assert (None if given is None else float(given)) == change[figure]
    return found


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
def test_each_outcome_has_its_state(gated: Gated, workers: tuple[str, ...]) -> None:
    content = gated.save()
    del content["entries"]["small::hr@2[mine:rank-tasks-K6]"]
    gated.write(content)
    gated.make_noise(0.45)
    seen = cases(gated, *workers)
    outcomes = {properties["invari_outcome"] for _, _, properties in seen.values()}
    assert {"same", "missing", "undecided"} <= outcomes
    for state, message, properties in seen.values():
        assert state == STATES[properties["invari_outcome"]]
        assert message.startswith(f"{properties['invari_outcome']}: " if state else "")
    gated.make_noise(0.9)
    assert cases(gated, *workers)["loc"][0] == "failure"


def test_undecided_is_a_failure_under_the_gate(gated: Gated) -> None:
    gated.save()
    gated.make_noise(0.45)
    ends = [
        end for end in cases(gated, "--invari-strict").values() if end[2]["invari_outcome"] == "undecided"
    ]
    assert ends
    for state, message, _ in ends:
        assert state == "failure"
        assert message.endswith("undecided fails under --invari-strict")
