"""JUnit: properties, one-line failures, and undecided as a skip with its reason."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
def test_cases_carry_their_figures_and_reasons(project: Project, workers: tuple[str, ...]) -> None:
    project.write_suite("open", loc="at_least = 0.001", gpi="at_most = 0.1")
    project.pytest("open.invari.toml", "--reranker=random", "--junitxml=junit.xml", *workers)
    root = ElementTree.parse(project.path / "junit.xml").getroot()
    cases = {case.get("name"): case for case in root.iter("testcase")}
    undecided, failed = cases["loc[random-tasks-K6]"], cases["gpi[random-tasks-K6]"]
    properties = {each.get("name"): each.get("value", "") for each in undecided.iter("property")}
    assert properties["invari_verdict"] == "undecided"
    assert properties["invari_dataset"] == "tasks"
    assert float(properties["invari_low"]) < 0.001 < float(properties["invari_high"])
    assert int(properties["invari_n_needed"]) > 32
    skip = undecided.find("skipped")
    assert skip is not None
    assert skip.get("message", "").startswith("0.0")
    assert "queries would decide" in skip.get("message", "")
    failure = failed.find("failure")
    assert failure is not None
    assert failure.get("message") == failure.text
    assert failure.text is not None
    assert failure.text.startswith("0.3")
    assert undecided.get("classname") == "open"
