"""The answer to ``--invari-list``: everything that can be named, one line each."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.metrics import metric_names
from pytest_invari.registry.registry import Registry
from pytest_invari.session.hooks import named_kinds, named_rerankers
from pytest_invari.suitefile.keys import KIND_TITLES
from pytest_invari.suitefile.reader import find_suite, packaged_suites
from pytest_invari.text import harmless, printable

if TYPE_CHECKING:
    from pytest_invari.criteria.assertion import AssertionFunction


def print_names(config: pytest.Config) -> None:
    """Print suites, rerankers, data sets, metrics and kinds of criteria under their headings.

    Raises:
        pytest.UsageError: a suite, hook or table in pyproject.toml has a mistake in it.
    """
    try:
        registry = Registry(config.rootpath, named_rerankers(config))
        own_kinds = {name: _describe_kind(check) for name, check in named_kinds(config).items()}
        suites = {name: _describe_suite(name) for name in packaged_suites()}
        sections = {
            "suites (--invari-suite)": suites,
            "rerankers (--reranker)": registry.reranker_names(),
            "data sets (--invari-dataset)": registry.dataset_names(),
            "metrics (in a suite)": metric_names(),
            "kinds of criteria (in a suite)": dict(sorted({**KIND_TITLES, **own_kinds}.items())),
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


def _describe_kind(check: AssertionFunction) -> str:
    """The first line of a function's docstring, or else a name."""
    named = check if hasattr(check, "__qualname__") else type(check)
    first = (inspect.getdoc(check) or "").partition("\n")[0] if inspect.isroutine(check) else ""
    return f"conftest hook: {first or f'{named.__module__}.{named.__qualname__}'}"
