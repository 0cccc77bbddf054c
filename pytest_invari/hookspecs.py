"""The hooks that a conftest or a plugin may implement, each with an example.

Mark an implementation in a conftest with ``@pytest.hookimpl(optionalhook=True)``; otherwise pytest refuses
that conftest when the plugin is switched off with ``-p no:invari``. A run that has a suite, or uses the
fixture ``invari``, refuses a hook whose name only begins like these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_invari.metrics.custom import CustomMetric


def pytest_invari_rerankers(config: pytest.Config) -> Mapping[str, object]:  # type: ignore[empty-body]
    """Name rerankers for ``--reranker``; called once, before any suite is read.

    A value is a reranker, a class or factory that makes one, a plain function of a query and its
    candidates' texts that returns a score for each, or a text MODULE:ATTRIBUTE that is imported only when
    chosen. Names of several implementations are joined; a name given twice is an error, and so is that of a
    built-in reranker.

    Example::

        @pytest.hookimpl(optionalhook=True)
        def pytest_invari_rerankers(config):
            def longest_first(context, texts):
                return [float(len(text)) for text in texts]

            return {"longest_first": longest_first, "search": "shop.search:make_reranker"}
    """


def pytest_invari_metrics(config: pytest.Config) -> Mapping[str, CustomMetric]:  # type: ignore[empty-body]
    """Name metrics of your own for suites and for the fixture ``invari``.

    It is called before any suite is read, and again when a test first uses the fixture, by when the conftest
    files of the folders below are loaded. A name has lower-case letters, digits and _, and is none of a
    built-in metric. Names of several implementations are joined; a name given twice is an error.

    Example::

        from pytest_invari import CustomMetric


        def top_moves(lists):
            first = lists.ranks.argmin(axis=2)  # (queries, views)
            return (first != first[:, :1]).mean(axis=1)


        @pytest.hookimpl(optionalhook=True)
        def pytest_invari_metrics(config):
            says = "how often the first item is another one"
            return {"top_moves": CustomMetric(top_moves, direction="lower", low=0, high=1, description=says)}
    """


def pytest_invari_criteria(config: pytest.Config) -> Mapping[str, Callable[..., None]]:  # type: ignore[empty-body]
    """Name kinds of criteria for suites; called once, before a suite is read.

    The function gets a study of what the suite has measured of one reranker, as the fixture ``invari`` gives
    it, and the options that the suite gives it by the names of its parameters. It passes when it returns, and
    fails with the message of an AssertionError. Names of several implementations are joined; a name given
    twice is an error, and so is that of a built-in kind.

    Example::

        def stable_head(study, at_least=0.8):
            study.assert_at_least("loc", at_least)
            study.assert_at_most("exposure_deviation@1", 1 - at_least)


        @pytest.hookimpl(optionalhook=True)
        def pytest_invari_criteria(config):
            return {"stable_head": stable_head}

    A suite then holds ``kind = "stable_head"`` and ``options = {at_least = 0.9}`` under ``[[criterion]]``.
    """


def pytest_invari_update_report(config: pytest.Config, report: dict[str, Any]) -> None:
    """Change the JSON report of ``--invari-json`` before it is written; called once, in the controller.

    Example::

        @pytest.hookimpl(optionalhook=True)
        def pytest_invari_update_report(config, report):
            report["environment"]["commit"] = os.environ.get("GITHUB_SHA")
    """
