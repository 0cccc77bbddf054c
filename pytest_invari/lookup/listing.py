"""The answer to ``--invari-list``: everything that can be named, one line each."""

from __future__ import annotations

import pytest

from pytest_invari.criteria.suite import find_suite, packaged_suites
from pytest_invari.errors import InvariError
from pytest_invari.metrics import metric_names
from pytest_invari.reports.text import harmless, printable
from pytest_invari.session.suite_plugin import make_registry

__all__ = ["print_names"]


def print_names(config: pytest.Config) -> None:
    """Print suites, rerankers, data sets and metrics under their headings.

    Raises:
        pytest.UsageError: a suite, hook or table in pyproject.toml has a mistake in it.
    """
    try:
        registry = make_registry(config)
        suites = {name: _describe_suite(name) for name in packaged_suites()}
        sections = {
            "suites (--invari-suite)": suites,
            "rerankers (--reranker)": registry.reranker_names(),
            "data sets (--invari-dataset)": registry.dataset_names(),
            "metrics (in a suite)": metric_names(),
        }
    except InvariError as error:
        raise pytest.UsageError(harmless(str(error))) from None
    for heading, names in sections.items():
        width = max(map(len, names), default=0)
        print(f"{heading}:")
        for name, description in names.items():
            print(printable(f"  {name:<{width}}  {description}".rstrip()))


def _describe_suite(name: str) -> str:
    suite = find_suite(name)
    profiles = ", ".join(suite.profiles)
    return f"{suite.title} ({len(suite.criteria)} criteria; profiles {profiles})"
