"""The working plugin of ``--invari-selfcheck``: it collects the promises of the suites and reports on them.

PYTEST_DONT_REWRITE: there are no asserts to rewrite.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import asdict, replace
from typing import Any

import msgspec
import pytest

from pytest_invari.criteria.metric import MetricCriterion
from pytest_invari.errors import InvariError
from pytest_invari.reports.json_report import REPORT_BEGINS, SELFCHECK_FORMAT, report_text
from pytest_invari.reports.models import SelfcheckModel
from pytest_invari.selfcheck.items import Promise, PromiseItem, SelfcheckNode
from pytest_invari.selfcheck.report import PromiseOutcome, write_section
from pytest_invari.session.hooks import named_kinds
from pytest_invari.session.options import read_settings
from pytest_invari.session.selection import replace_default_paths
from pytest_invari.session.writing import write_at_the_end
from pytest_invari.settings import Settings
from pytest_invari.suitefile.expansion import plans_of
from pytest_invari.suitefile.reader import find_suite, packaged_suites
from pytest_invari.suitefile.suite import Suite

NAME = "invari-selfcheck"
MOST_QUERIES = 100
"""Larger data sets take long to simulate and show intervals only where they are easiest to get right."""


def start(config: pytest.Config) -> None:
    """Register the plugin for the suites asked for, or else for all packaged ones.

    Raises:
        pytest.UsageError: a suite or an option has a mistake in it.
    """
    try:
        settings = read_settings(config)
        kinds = named_kinds(config)
        suites = [find_suite(name, kinds) for name in settings.suite or packaged_suites()]
        plugin = SelfcheckPlugin(config, settings, list(promises(suites, settings)))
        write_at_the_end(config, "--invari-json", settings.json, plugin.report, report_text, REPORT_BEGINS)
    except InvariError as error:
        raise pytest.UsageError(str(error)) from None
    replace_default_paths(config)
    config.pluginmanager.register(plugin, NAME)


def promises(suites: list[Suite], settings: Settings) -> Iterator[Promise]:
    """Each suite's criteria on each simulated reranker, those of one reranker together.

    Raises:
        InvariError: a criterion looks at a longer top than the lists have.
    """
    from pytest_invari.selfcheck.simulation import SIMULATED

    for suite in suites:
        profile = suite.profile(settings.profile)
        if settings.views is not None or settings.seed is not None:
            # Other orders than a bank's are simulated as well.
            profile = replace(profile, bank=(), probe=(), target=())
        queries = settings.queries or profile.queries or MOST_QUERIES
        simulated = replace(settings, dataset=("simulated",), queries=min(queries, MOST_QUERIES))
        for plan in plans_of(suite, profile, simulated):
            for reranker in SIMULATED:
                for criterion in suite.criteria:
                    if not isinstance(criterion, MetricCriterion):
                        continue
                    if criterion.metric.kind == "analysis" or criterion.left_out_because(
                        profile.name, plan.views
                    ):
                        continue
                    if criterion.metric.k is not None and criterion.metric.k > plan.k:
                        raise InvariError(
                            f"{criterion.place}: criterion {criterion.name!r} looks at the top "
                            f"{criterion.metric.k}, but the lists have {plan.k} candidates"
                        )
                    yield Promise(suite, criterion, reranker, plan)


class SelfcheckPlugin:
    """Hooks of a self-check."""

    def __init__(self, config: pytest.Config, settings: Settings, collected: list[Promise]) -> None:
        self._config, self._settings = config, settings
        self._promises = {promise.id: promise for promise in collected}
        self._outcomes: dict[str, PromiseOutcome] = {}

    def pytest_report_header(self) -> str:
        """Say what is simulated."""
        return (
            f"invari: self-check of {len(self._promises)} promises on {self._settings.simulations} simulated "
            "data sets each"
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Append the self-check to what the session collects from paths."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed:
            report.result.append(
                SelfcheckNode.from_parent(
                    collector,
                    name="selfcheck",
                    nodeid="selfcheck",
                    path=self._config.rootpath,
                    promises=list(self._promises.values()),
                    datasets=self._settings.simulations,
                )
            )
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the trial ride on the report, to the controller of pytest-xdist too."""
        report = yield
        if isinstance(item, PromiseItem) and report.when == "call":
            report.invari_trial = item.report_parts()  # type: ignore[attr-defined]  # reports take extra attributes
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather the trials."""
        parts = getattr(report, "invari_trial", None)
        if report.nodeid in self._promises and parts is not None:
            self._outcomes[report.nodeid] = PromiseOutcome.of(self._promises[report.nodeid], parts)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the tables."""
        outcomes = [self._outcomes[name] for name in self._promises if name in self._outcomes]
        if outcomes:
            write_section(terminalreporter, outcomes)

    def report(self) -> dict[str, Any]:
        """The JSON report."""
        trials = [
            {
                "id": name,
                "suite": outcome.promise.suite.name,
                "criterion": outcome.promise.criterion.name,
                "metric": outcome.promise.criterion.metric.name,
                "reranker": outcome.promise.reranker,
                "k": outcome.promise.plan.k,
                "views": outcome.promise.plan.views,
                "queries": outcome.promise.plan.queries,
                **asdict(outcome.trial),
                "broken": outcome.trial.broken,
            }
            for name, outcome in self._outcomes.items()
        ]
        report = msgspec.convert({"format": SELFCHECK_FORMAT, "trials": trials}, SelfcheckModel)
        plain: dict[str, Any] = msgspec.to_builtins(report)
        return plain

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> object | None:
        """Keep a simulated reranker in one worker, under the default distribution."""
        if config.getoption("dist") != "load":
            return None
        from pytest_invari.session.scheduling import SubjectScheduling

        return SubjectScheduling(config, log, {name: each.reranker for name, each in self._promises.items()})
