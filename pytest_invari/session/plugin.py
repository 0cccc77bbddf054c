"""The working plugin of a run that asked for a suite: it collects and reports.

PYTEST_DONT_REWRITE: there are no asserts to rewrite.
"""

from __future__ import annotations

import copy
import os
import shlex
import sys
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_invari.errors import InvariError, counted
from pytest_invari.protocol.usercode import user_code
from pytest_invari.registry.registry import Registry
from pytest_invari.reports.run import Results, Run, why_nothing
from pytest_invari.session.hooks import named_rerankers
from pytest_invari.session.items import CheckItem, CheckUndecided, SuiteNode
from pytest_invari.session.judging import Judging
from pytest_invari.session.options import read_settings
from pytest_invari.session.selection import expansion_of, make_runner, take_suites
from pytest_invari.session.strict import STRICT_RULES, StrictRules, may_choose, restore_failure
from pytest_invari.session.termination import sigterm_interrupts
from pytest_invari.settings import Settings
from pytest_invari.suitefile.suite import Expansion
from pytest_invari.text import harmless, printable

if TYPE_CHECKING:
    from pytest_invari.session.saving import Saving

NAME = "invari-suite"


def start(config: pytest.Config) -> bool:
    """Resolve and check everything the user asked for, then register the working plugin.

    Returns:
        Whether there is a suite. Nothing happens when none is asked for and no argument turns out to be ours.

    Raises:
        pytest.UsageError: there is a mistake in it; in the controller, before any worker starts.
    """
    try:
        settings = read_settings(config)
        suites, ids = take_suites(config, settings)
        if not suites:
            return False
        registry = Registry(config.rootpath, named_rerankers(config))
        expansion = expansion_of(config, suites, ids, settings, registry)
        judging = Judging(
            make_runner(settings, registry),
            expansion.checks,
            settings.strict,
            expansion.unselected,
            expansion.changes,
            pictures=settings.html is not None,
        )
        if not hasattr(config, "workerinput"):
            if settings.html is not None:
                from pytest_invari.reports.html.page import require_packages

                require_packages()
            judging.check()
            if expansion.changes:
                from pytest_invari.baseline.stored import require_fit

                require_fit(expansion.changes, judging.tasks)
        plugin = SuitePlugin(config, settings, expansion, judging)
        plugin.write_at_the_end()
        if os.environ.get("GITHUB_ACTIONS") == "true":
            from pytest_invari.reports.github import tell_github

            tell_github(config, plugin.run)
    except InvariError as error:
        raise pytest.UsageError(harmless(str(error))) from None
    config.pluginmanager.register(plugin, NAME)
    config.pluginmanager.register(plugin.strict_rules, STRICT_RULES)
    return True


class SuitePlugin:
    """Hooks of a run with a suite. All state of the run hangs on this object."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        expansion: Expansion,
        judging: Judging,
    ) -> None:
        self._config, self._settings, self._expansion = config, settings, expansion
        self._judging = judging
        self._results = Results(expansion)
        self._saving: Saving | None = None
        self.strict_rules = StrictRules(expansion, settings, may_choose(config))
        self._interruption = ""

    def pytest_report_header(self) -> str | None:
        """Say what is tested on what; workers of pytest-xdist, which check nothing, say nothing."""
        if hasattr(self._config, "workerinput"):
            return None
        chosen = dict.fromkeys(
            f"{check.suite.name} ({check.profile.name}: {check.plan.views} views of "
            f"{'all queries' if check.plan.queries is None else counted(check.plan.queries, 'query')})"
            for check in self._expansion.items
        )
        compared = counted(len(self._expansion.changes), "comparison")
        more = f", {compared} with {self._settings.compare}" if self._expansion.changes else ""
        return printable(
            f"invari: {', '.join(chosen)}; {counted(len(self._expansion.checks), 'check')}{more}"
            f"{''.join(f'; {each}' for each in self._short_datasets())}"
        )

    def _short_datasets(self) -> list[str]:
        """The data sets that have fewer queries than were asked for."""
        found: dict[str, None] = {}
        for check in self._expansion.items:
            queries = len(self._judging.tasks(check).tasks)
            if queries < (check.plan.queries or 0):
                found[f"{check.shown_dataset} has only {counted(queries, 'query')}"] = None
        return list(found)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Append the suites to what the session collects from paths."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed:
            for name in dict.fromkeys(check.suite.name for check in self._expansion.items):
                report.result.append(
                    SuiteNode.from_parent(
                        collector,
                        name=name,
                        nodeid=name,
                        path=self._config.rootpath,
                        make=self._items,
                    )
                )
        return report

    def _items(self, node: SuiteNode) -> Iterator[CheckItem]:
        """A suite's checks, then its comparisons with a baseline."""
        for check in self._expansion.items:
            if check.suite.name == node.name:
                yield CheckItem.from_parent(
                    node,
                    name=check.name,
                    nodeid=check.id,
                    check=check,
                    judging=self._judging,
                    entry_maker=None if self._saving is None else self._saving.entry_maker,
                )

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the result ride on the report; an undecided check is skipped at its criterion's line.

        It is the outermost of these hooks, so that others' cannot change what a verdict amounts to.
        """
        report = yield
        if not isinstance(item, CheckItem):
            return report
        restore_failure(item, report, self._settings.strict)
        if report.when == "call":
            if report.skipped and hasattr(report, "wasxfail"):
                item.leave_undecided(why_nothing(report))
                report.user_properties = list(item.user_properties)
            report.invari = item.report_parts()  # type: ignore[attr-defined]  # reports take extra attributes
            if call.excinfo is not None and isinstance(call.excinfo.value, CheckUndecided):
                path, line, _ = item.reportinfo()
                report.longrepr = (str(path), line + 1, str(call.excinfo.value))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather the results; in the controller of pytest-xdist these are the workers'."""
        self._results.add(report)
        if self._saving is not None:
            self._saving.add(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, tuple[str, Mapping[str, bool]]] | None:
        """Give undecided an outcome of its own."""
        if report.when != "call" or not report.skipped or hasattr(report, "wasxfail"):
            return None
        if getattr(report, "invari", None) is None:
            return None
        return "undecided", "u", ("UNDECIDED", {"yellow": True})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Let SIGTERM end the run as Ctrl-C does."""
        with sigterm_interrupts():
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Say what an interrupted run has kept; how much, is not known of the workers of pytest-xdist."""
        records = self._settings.records
        if records is None or self._settings.replay or not isinstance(excinfo.value, KeyboardInterrupt):
            return
        notes = getattr(excinfo.value, "__notes__", [])
        kept = notes[0] if notes else "the rankings that were written are kept"
        # pytest would show it within its own line.
        notes.clear()
        self._interruption = f"interrupted: {kept} in {records}; the same command goes on from there"

    def pytest_unconfigure(self) -> None:
        """Tell it last, where it is not overlooked."""
        if self._interruption:
            print(harmless(self._interruption), file=sys.stderr)

    def write_at_the_end(self) -> None:
        """Have each file written that is asked for: reports, and what was measured as a baseline.

        Raises:
            InvariError: it cannot be written there, or a baseline's file is something else.
        """
        config, settings = self._config, self._settings
        if settings.json is not None:
            from pytest_invari.reports.json_report import REPORT_BEGINS, report_text

            self._write("--invari-json", settings.json, self.report, report_text, REPORT_BEGINS)
        if settings.markdown is not None:
            from pytest_invari.reports.markdown import MARKDOWN_BEGINS, markdown_text

            self._write("--invari-markdown", settings.markdown, self.run, markdown_text, MARKDOWN_BEGINS)
        if settings.html is not None:
            from pytest_invari.reports.html.page import PAGE_BEGINS, page_text

            self._write("--invari-html", settings.html, self.run, page_text, PAGE_BEGINS)
        if settings.save is not None:
            from pytest_invari.session.saving import Saving

            self._saving = Saving(config, settings.save, self._judging, self._expansion.items)

    def _write(self, switch: str, path: Path, *how: Any) -> None:
        from pytest_invari.session.writing import write_at_the_end

        write_at_the_end(self._config, switch, path, *how)

    def run(self) -> Run:
        """What a report says, as far as the run has come."""
        rules = self.strict_rules
        return Run(
            harmless(shlex.join(["pytest", *map(str, self._config.invocation_params.args)])),
            self._settings,
            self._expansion,
            self._results,
            None if self._saving is None else self._saving.entries,
            rules.unjudged,
            rules.blamed,
            rules.reruns,
            rules.flaky,
        )

    def report(self) -> dict[str, Any]:
        """The JSON report.

        Raises:
            InvariError: a hook that may change it raises.
        """
        from pytest_invari.reports.json_report import make_report

        report = make_report(self.run())
        with user_code("hook pytest_invari_update_report"):
            self._config.hook.pytest_invari_update_report(config=self._config, report=report)
        return report

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the section invari; a strict run that judges less than it might says so."""
        self._write_section(terminalreporter)
        if self._settings.strict and (left := self.strict_rules.chosen_out):
            terminalreporter.write_line(
                f"invari: this selection leaves out {left}, which you may do at a desk; "
                "under --invari-strict, and in CI, it fails",
                yellow=True,
            )

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_summary(self, summary: list[str]) -> None:
        """Put the same section into the page of pytest-html."""
        from pytest_invari.session.pytest_html import PytestHtmlSection

        page = PytestHtmlSection()
        self._write_section(page)
        summary.extend(page.html())

    def _write_section(self, reporter: Any) -> None:
        from pytest_invari.reports.terminal import write_section

        run = self.run()
        if run.has_results:
            write_section(reporter, run)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport, sched: object) -> None:
        """Fail the other checks of a subject whose worker crashed."""
        from pytest_invari.session.scheduling import SubjectScheduling

        if isinstance(sched, SubjectScheduling):
            for name in sched.abandoned_with(crashitem):
                lost = copy.copy(report)
                lost.nodeid, lost.longrepr = name, f"its worker crashed while running {crashitem!r}"
                self._config.hook.pytest_runtest_logreport(report=lost)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> object | None:
        """Keep a subject's checks in one worker, under the default distribution and those by scopes."""
        from pytest_invari.session.scheduling import OF_OTHERS, SubjectScheduling

        if config.getoption("dist") not in OF_OTHERS:
            return None
        scopes = {check.id: f"{check.suite.name}::{check.subject.label}" for check in self._expansion.items}
        return SubjectScheduling(config, log, scopes)
