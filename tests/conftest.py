"""What all tests share: a run of pytest within one loads none of the other plugins that are installed."""

from __future__ import annotations

import pytest

OTHER_PLUGINS = (
    *("randomly", "rerunfailures", "timeout", "html", "html_fixtures", "metadata", "pytest_cov"),
    "pytest_github_actions_annotate_failures",
)
# They would reorder tests, and import NumPy and Jinja anew in each of hundreds of runs.
ALONE = " ".join(f"-p no:{name}" for name in OTHER_PLUGINS)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", ALONE)
    # Nor does it speak to the service that runs the tests.
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """pytest's own, which forgets the variable."""
    monkeypatch.setenv("PYTEST_ADDOPTS", ALONE)
    return pytester
