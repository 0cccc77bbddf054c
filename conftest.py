"""Keep the checkout off sys.path: ./datasets and ./rerankers must not answer for the PyPI packages."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]

# Test files import helpers from one another by their names from here; old releases of pytest make no package
# of the folders above them.
TESTS = PathFinder.find_spec("tests", [str(ROOT)])
assert TESTS is not None
sys.modules.setdefault("tests", module_from_spec(TESTS))

pytest_plugins = ["pytester"]

# A run of a suite in the checkout loads this file as well, and needs no hypothesis.
if find_spec("hypothesis") is not None:
    from hypothesis import settings

    # Property-based tests draw the same examples in every run; --hypothesis-profile=default draws others.
    settings.register_profile("repeatable", derandomize=True)
    settings.load_profile("repeatable")

# A run of pytest within a test loads none of the other plugins that are installed: they would reorder its
# tests, and import NumPy and Jinja anew in each of hundreds of runs.
OTHER_PLUGINS = (
    *("randomly", "rerunfailures", "timeout", "html", "html_fixtures", "metadata", "pytest_cov"),
    "pytest_github_actions_annotate_failures",
)
ALONE = " ".join(f"-p no:{name}" for name in OTHER_PLUGINS)

# Nor does it speak to the service that runs the tests, or print longer lines or colours because of it.
SURROUNDINGS = (
    *("CI", "BUILD_NUMBER", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"),
    *("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"),
)


@pytest.fixture(autouse=True)
def _alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "pytester" in request.fixturenames:
        # Made first, because it forgets the variable.
        request.getfixturevalue("pytester")
    monkeypatch.setenv("PYTEST_ADDOPTS", ALONE)
    for name in SURROUNDINGS:
        monkeypatch.delenv(name, raising=False)
