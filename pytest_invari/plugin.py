"""pytest's entry to invari: the options, and the working plugin only for a run that asks for a suite.

PYTEST_DONT_REWRITE: there are no asserts to rewrite, and importing it before pytest.main must not warn.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

from pytest_invari import hookspecs
from pytest_invari.session.options import add_alias, add_options

if TYPE_CHECKING:
    from pytest_invari.session.fixture import Studies


# pytest's options that show something in place of running tests: fixtures, and what the cache holds.
_INFORMATION = ("showfixtures", "show_fixtures_per_test", "cacheshow")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options of group invari."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that conftests may implement."""
    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser
) -> Generator[None, object, object]:
    """Add the alias once everybody else has had the chance to own it."""
    result = yield
    add_alias(early_config, parser)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Answer ``--invari-list`` without a test session."""
    if not config.getoption("invari_list"):
        return None
    from pytest_invari.session.hooks import use_own_metrics
    from pytest_invari.session.listing import print_names

    use_own_metrics(config)
    print_names(config)
    return 0


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Know the users' own metrics, and start the working plugin when a suite or a check is asked for."""
    config.addinivalue_line(
        "markers", "invari: a check of an invari suite (set by the plugin, for -m invari)"
    )
    if (
        config.getoption("help", False)
        or config.getoption("version", 0)
        or config.getoption("markers", False)
    ):
        return
    if any(config.getoption(name, False) for name in _INFORMATION):
        # They collect what there is to show; paths of suites are none of pytest's.
        config.args[:] = [argument for argument in config.args if not _may_be_ours(argument)]
        return
    try:
        _start(config)
    except pytest.UsageError as error:
        from pytest_invari.reports.github import annotate_error

        annotate_error(config, str(error))
        raise


def _start(config: pytest.Config) -> None:
    from pytest_invari.session.hooks import use_own_metrics
    from pytest_invari.session.unused_options import (
        refuse_in_selfcheck,
        refuse_without_selfcheck,
        refuse_without_suite,
    )

    use_own_metrics(config)
    if config.getoption("invari_selfcheck"):
        from pytest_invari.selfcheck.plugin import start as start_selfcheck

        refuse_in_selfcheck(config)
        start_selfcheck(config)
        return
    refuse_without_selfcheck(config)
    asks = config.getoption("invari_suite") or config.getini("invari_suite")
    if asks or any(_may_be_ours(argument) for argument in config.args):
        from pytest_invari.session.plugin import start

        if start(config):
            return
    refuse_without_suite(config)


@pytest.fixture(scope="session")
def invari(pytestconfig: pytest.Config) -> Studies:
    """Build studies, as in invari.study(reranker, tasks, views), with assertions about their figures."""
    __tracebackhide__ = True
    from pytest_invari.session.fixture import make_studies

    return make_studies(pytestconfig)


def _may_be_ours(argument: str) -> bool:
    """Whether a test path begins with a suite file, or looks like ``suite::criterion`` where no file is."""
    head, colons, _ = str(argument).partition("::")
    if head.endswith(".invari.toml"):
        return True
    return bool(colons) and PurePosixPath(head).name.isidentifier() and not Path(head).exists()
