"""The end of a run: whether everything that was to be judged was, and no failing verdict was overruled.

PYTEST_DONT_REWRITE: there are no asserts to rewrite.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_invari.errors import counted
from pytest_invari.reports.models import Rerun, Unjudged
from pytest_invari.reports.run import why_failed, why_nothing
from pytest_invari.session.items import CheckFailed
from pytest_invari.session.options import runs_nothing, typed_options
from pytest_invari.suitefile.suite import AT_BASELINE
from pytest_invari.text import harmless

if TYPE_CHECKING:
    from pytest_invari.session.items import CheckItem
    from pytest_invari.settings import Settings
    from pytest_invari.suitefile.suite import Check, Expansion, LeftOut


STRICT_RULES = "invari-strict-rules"

# They would remember the id of something that is no item, stop the run, or show it amid the progress.
_WITHOUT_REPORTS = ("session", "lfplugin", "stepwiseplugin", "terminalreporter", "invari-suite", STRICT_RULES)


class StrictRules:
    """Hooks that compare what a run was to judge with what its reports say, wherever they arrive.

    The rule of ``--invari-strict``: each subject has an item that was selected and, where a baseline is to
    be compared with, a comparison, each selected item a verdict or a failure of its own. With and without it,
    no failing verdict may end in any report but a failed one.

    Args:
        expansion: what the run is to judge.
        settings: whether the rule holds in this run, and the baseline.
        may_choose: whether subjects of which nothing was selected are passed over all the same.
    """

    def __init__(self, expansion: Expansion, settings: Settings, may_choose: bool = False) -> None:
        self._expansion, self._strict, self._may_choose = expansion, settings.strict, may_choose
        self._compared = settings.compare
        self._items: dict[str, Check] = {check.id: check for check in expansion.items}
        self._selected: set[str] = set()
        self._failed: set[str] = set()
        self._judged: set[str] = set()
        self._overruled: set[str] = set()
        self._without: dict[str, str] = {}
        self._reruns: dict[str, list[Rerun]] = {}
        self.unjudged: list[Unjudged] = []
        """What was found at the end."""
        self.passed_over: set[str] = set()
        """The ids of those among them that this run has left out by choice, and need not answer for."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Know what is to run; the controller of pytest-xdist, which collects nothing, has the next hook."""
        self._select(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Iterable[str]) -> None:
        """Know what a worker is to run."""
        self._select(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of an item's report; those of other tests are ignored."""
        name, parts = report.nodeid, getattr(report, "invari", None)
        if name not in self._items:
            return
        # What has reported has been selected, whoever has collected it.
        self._selected.add(name)
        if report.outcome == "rerun":  # type: ignore[comparison-overlap]  # pytest-rerunfailures' own
            self._reruns.setdefault(name, []).append(Rerun(name, harmless(why_failed(report))))
        if report.failed:
            self._failed.add(name)
        elif parts is not None and _fails(parts, self._strict):
            if self._strict or not hasattr(report, "wasxfail"):
                self._overruled.add(name)
        elif parts is not None:
            self._judged.add(name)
        elif report.skipped:
            self._without[name] = why_nothing(report)
        elif report.when == "call":
            self._without[name] = "it passed without a verdict"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Fail a run that would be a success though something was not judged, before others write reports.

        Workers leave that to their controller, and a run that only shows its items has nothing to judge.
        """
        judges = not hasattr(session.config, "workerinput") and not runs_nothing(session.config)
        if judges:
            self._finish(session)
        yield
        if judges:
            self._take_success(session)

    @property
    def blamed(self) -> list[Unjudged]:
        """What people are told: all of it in a run that fails for it, else only verdicts overruled."""
        return [
            each
            for each in self.unjudged
            if each.id in self._overruled or (self._strict and each.id not in self.passed_over)
        ]

    @property
    def chosen_out(self) -> str:
        """How many subjects, and comparisons of subjects, this run has left out by choice, in words."""
        compared = sum(f"::{AT_BASELINE}[" in each for each in self.passed_over)
        subjects = len(self.passed_over) - compared
        whole = [counted(subjects, "subject")] if subjects else []
        part = [f"the comparisons of {counted(compared, 'subject')}"] if compared else []
        return " and ".join([*whole, *part])

    @property
    def reruns(self) -> list[Rerun]:
        """All attempts that did not stand, in the order of the suites."""
        return [each for name in self._items for each in self._reruns.get(name, ())]

    @property
    def flaky(self) -> list[Rerun]:
        """Those of items that did not fail in the end."""
        return [each for each in self.reruns if each.id not in self._failed]

    def _select(self, ids: Iterable[str]) -> None:
        self._selected.update(self._items.keys() & set(ids))

    def _finish(self, session: pytest.Session) -> None:
        """Find what was not judged; in a run that would be a success, fail for it and let reporters know."""
        stopped = session.shouldfail or session.shouldstop
        has_ended = session.exitstatus in _ENDED
        left = self._left(str(stopped) if stopped else "")
        self.unjudged = [*self._subjects(has_ended), *self._lost(), *left]
        if not self._must_fail:
            return
        if has_ended and not stopped:
            self._tell(session.config)
        self._take_success(session)

    @property
    def _must_fail(self) -> bool:
        """Whether the run cannot be a success for something that no failed report stands for."""
        return bool(self._overruled - self._failed) or (self._strict and bool(self.blamed))

    def _take_success(self, session: pytest.Session) -> None:
        """Take a success from a run that is none, whoever has declared it."""
        is_success = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if is_success and (self._must_fail or (self._strict and self._failed)):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _subjects(self, has_ended: bool) -> list[Unjudged]:
        """The subjects that have no item, or none that was selected; then those without a comparison."""
        expansion = self._expansion
        found = self._without_any(expansion.items, expansion.left_out, "", has_ended)
        if self._compared is not None:
            known = {(each.suite, each.subject) for each in found}
            left_out = [each for each in expansion.left_out if each.criterion.endswith(AT_BASELINE)]
            lacking = self._without_any(expansion.changes, left_out, AT_BASELINE, has_ended)
            found += [each for each in lacking if (each.suite, each.subject) not in known]
        return found

    def _lost(self) -> list[Unjudged]:
        """What a baseline has values for and the suite asks for no more, of subjects that were compared."""
        compared = {
            (change.suite.name, change.subject.label)
            for change in self._expansion.changes
            if change.id in self._selected
        }
        return [
            Unjudged(
                f"{left.suite}::{left.criterion}[{left.subject}]",
                left.suite,
                left.subject,
                harmless(left.reason),
            )
            for left in self._expansion.left_out
            if left.is_lost and (left.suite, left.subject) in compared
        ]

    def _without_any(
        self, checks: Iterable[Check], left_out: Iterable[LeftOut], kind: str, has_ended: bool
    ) -> list[Unjudged]:
        """The subjects of these items, or of what is left out, without one that was selected."""
        names: dict[tuple[str, str], list[str]] = {}
        reasons: dict[tuple[str, str], list[str]] = {}
        for each in left_out:
            reasons.setdefault((each.suite, each.subject), []).append(f"{each.criterion}: {each.reason}")
        for check in checks:
            names.setdefault((check.suite.name, check.subject.label), []).append(check.id)
        found = []
        for suite, subject in dict.fromkeys([*reasons, *names]):
            ids = names.get((suite, subject), [])
            if not self._selected.isdisjoint(ids):
                continue
            reason = self._why_none(kind, len(ids), reasons.get((suite, subject), []), has_ended)
            lacking = Unjudged(f"{suite}::{kind}[{subject}]", suite, subject, harmless(reason))
            if ids and has_ended and self._may_choose:
                self.passed_over.add(lacking.id)
            found.append(lacking)
        return found

    def _why_none(self, kind: str, items: int, left_out: Sequence[str], has_ended: bool) -> str:
        """Why none of a subject's items, or of its comparisons, was selected."""
        if not items:
            return f"every {'comparison' if kind else 'criterion'} is left out: {'; '.join(left_out)}"
        if not has_ended:
            return f"the run broke off before any of its {'comparisons' if kind else 'items'}"
        count = f"{counted(items, 'comparison')} with {self._compared}" if kind else counted(items, "item")
        return f"none of its {count} was selected (-k, -m, --deselect, --lf or a hook)"

    def _left(self, stopped: str) -> list[Unjudged]:
        """The selected items without a verdict or a failure, and those whose failure was overruled."""
        found = []
        for name, check in self._items.items():
            if name not in self._selected or name in self._failed:
                continue
            if name in self._overruled:
                reason = "a failing verdict on it did not end in a failed report, but in another"
            elif name in self._judged:
                continue
            else:
                reason = self._without.get(name, "it did not run to its end")
                reason += f" ({stopped})" if stopped and name not in self._without else ""
            found.append(Unjudged(name, check.suite.name, check.subject.label, harmless(reason)))
        return found

    def _tell(self, config: pytest.Config) -> None:
        """Report each of them as a failed test, so that JUnit, HTML and the summary line have it."""
        plugins = config.pluginmanager
        without = [plugin for name in _WITHOUT_REPORTS if (plugin := plugins.get_plugin(name)) is not None]
        tell = plugins.subset_hook_caller("pytest_runtest_logreport", without)
        for each in self.blamed:
            for report in self._as_reports(each):
                tell(report=report)
        terminal: Any = plugins.get_plugin("terminalreporter")
        if terminal is not None:
            terminal._add_stats("failed", [self._as_reports(each)[0] for each in self.blamed])

    def _as_reports(self, unjudged: Unjudged) -> list[pytest.TestReport]:
        """Its call, and the teardown at which reporters close a test."""
        check = self._items.get(unjudged.id)
        of_suite = [each for each in self._items.values() if each.suite.name == unjudged.suite]
        place = check.criterion.place if check is not None else None
        path = place.path if place is not None else of_suite[0].suite.path if of_suite else unjudged.suite
        location = (str(path), place.line - 1 if place is not None else 0, unjudged.id.partition("::")[2])
        text = _shown(f"not judged: {unjudged.reason}", *location[:2])
        return [
            pytest.TestReport(unjudged.id, location, {}, "failed", text, "call"),
            pytest.TestReport(unjudged.id, location, {}, "passed", None, "teardown"),
        ]


def may_choose(config: pytest.Config) -> bool:
    """Whether a run that is strict by the ini file may leave subjects out: somebody has selected at a desk.

    The selection is on the command line itself, strict is not, and this is no CI, by pytest's signs of one.
    """
    if "strict" in typed_options(config).values() or any(os.environ.get(name) for name in _CI):
        return False
    typed = [str(argument) for argument in config.invocation_params.args]
    return any(argument.startswith(_SELECTS) for argument in typed)


_CI = ("CI", "BUILD_NUMBER")
_SELECTS = ("-k", "-m", "--deselect", "--lf", "--last-failed", "--sw", "--stepwise")

# How a run ends that pytest has gone through with.
_ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


def restore_failure(item: CheckItem, report: pytest.TestReport, strict: bool) -> None:
    """Give the report of an item back the failure that a hook has taken from it; under the gate, skips fail.

    Without the gate an expected failure (xfail) remains one: its author has said so, and pytest shows it.
    """
    if report.failed or (hasattr(report, "wasxfail") and not strict):
        return
    if report.when == "call" and item.failure:
        said = "expected to fail" if hasattr(report, "wasxfail") else report.outcome
        text = f"{item.failure}; the report said {said!r}, and a failing verdict stands"
    elif strict and report.skipped:
        text = f"{why_nothing(report)}; what is skipped fails under --invari-strict"
    else:
        return
    report.outcome, report.longrepr = "failed", _shown(text, *item.reportinfo()[:2])
    if hasattr(report, "wasxfail"):
        del report.wasxfail


def _fails(parts: Mapping[str, Any], strict: bool) -> bool:
    """Whether the verdict that goes with a report is one that fails its item."""
    verdict = parts["judgement"]["verdict"]
    return bool(verdict == "fail" or (strict and verdict == "undecided"))


def _shown(text: str, path: os.PathLike[str] | str, line: int) -> Any:
    """A failure told in one line, in the form in which every release of pytest puts it into its summary."""
    try:
        raise CheckFailed(text)
    except CheckFailed:
        shown: Any = pytest.ExceptionInfo.from_current().getrepr(style="value")
    if shown.reprcrash is not None:
        shown.reprcrash.message, shown.reprcrash.path, shown.reprcrash.lineno = text, str(path), line + 1
    return shown
