"""What the team calls its rerankers in suites and on the command line."""

from __future__ import annotations

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_invari_rerankers(config: pytest.Config) -> dict[str, object]:
    """The reranker in use and the one before it; each is imported only when a run names it."""
    return {"team": "team_search:TeamSearch", "previous": "team_search:previous"}
