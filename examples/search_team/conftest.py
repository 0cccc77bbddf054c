"""What the team calls its rerankers, metrics and criteria in suites and on the command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_invari import CustomMetric
from team_criteria import every_query
from team_metrics import house_share, page_changes


@pytest.hookimpl(optionalhook=True)
def pytest_invari_rerankers(config: pytest.Config) -> dict[str, object]:
    """The reranker in use and the one before it; each is imported only when a run names it."""
    return {"team": "team_search:TeamSearch", "previous": "team_search:previous"}


@pytest.hookimpl(optionalhook=True)
def pytest_invari_metrics(config: pytest.Config) -> dict[str, CustomMetric]:
    """Both look at the first k products: ``page_changes@3``. A new version asks for a new baseline."""
    return {
        "page_changes": CustomMetric(
            page_changes,
            direction="lower",
            low=0.0,
            high=1.0,
            description="views whose first k products are others than in the first view",
            has_cutoff=True,
            version="1",
        ),
        "house_share": CustomMetric(
            house_share,
            direction="higher",
            low=0.0,
            high=1.0,
            description="the house brand's share of the first k places",
            has_cutoff=True,
            version="1",
        ),
    }


@pytest.hookimpl(optionalhook=True)
def pytest_invari_criteria(config: pytest.Config) -> dict[str, Callable[..., None]]:
    """A kind of criterion, which a suite asks for by ``kind = "every_query"``."""
    return {"every_query": every_query}
