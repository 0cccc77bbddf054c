"""The pytest nodes: a suite is collected as a directory of checks, and a check passes, fails or is undecided.

PYTEST_DONT_REWRITE: verdicts are composed messages, not asserts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.progress import preceded_by, shown_on
from pytest_invari.reports.run import plain_values
from pytest_invari.session.options import runs_nothing
from pytest_invari.suitefile.suite import describe
from pytest_invari.text import harmless

if TYPE_CHECKING:
    from pytest_invari.baseline.stored import EntryMaker
    from pytest_invari.criteria.judgement import Judgement, Verdict
    from pytest_invari.reports.subjects import Summary
    from pytest_invari.session.judging import Judging
    from pytest_invari.suitefile.suite import Check


class CheckFailed(pytest.fail.Exception):  # type: ignore[name-defined,misc]  # pytest hides its class
    """A criterion that is not met; shown as its message alone."""

    # pytest shows the module of an exception unless it is builtins.
    __module__ = "builtins"

    def __init__(self, message: str) -> None:
        super().__init__(message, pytrace=False)


class CheckUndecided(pytest.skip.Exception):  # type: ignore[name-defined,misc]  # as above
    """A criterion that the measured queries do not decide; a skip to all that know no third verdict."""


class SuiteNode(pytest.Directory):
    """One suite of the run.

    It is a directory at pytest's root path, so that conftest hooks of the project see its items, and
    ``--lf`` does not skip it as a file that did not fail.
    """

    def __init__(self, *, make: Callable[[SuiteNode], Iterator[CheckItem]], **keywords: Any) -> None:
        super().__init__(**keywords)
        self._make = make
        # -k does not look at the names of directories.
        self.extra_keyword_matches.add(self.name)

    def collect(self) -> Iterator[CheckItem]:
        """The suite's items, in the order of the expansion."""
        return self._make(self)


class CheckItem(pytest.Item):
    """One check. ``nodeid`` is given, because pytest 9.2 would take the brackets apart."""

    def __init__(
        self, *, check: Check, judging: Judging, entry_maker: EntryMaker | None, **keywords: Any
    ) -> None:
        super().__init__(**keywords)
        self.check, self._judging, self._entry_maker = check, judging, entry_maker
        self.judgement: Judgement | None = None
        self.failure = ""
        self._subjects: list[Summary] = []
        self._entries: dict[str, Any] = {}
        self.add_marker("invari")

    def setup(self) -> None:
        """Load what the check needs, so that ``--durations`` tells loading from measuring."""
        if runs_nothing(self.config):
            return
        with showing_progress(self, shown=not self._judging.is_measured(self.check), back_to_line=False):
            self._judging.prepare(self.check)

    def runtest(self) -> None:
        """Measure, unless another check of the same subject has, and judge.

        Raises:
            CheckFailed: the criterion is not met, or nothing was measured.
            CheckUndecided: the interval holds the bound, or there is too little to judge.
        """
        check = self.check
        with showing_progress(self, shown=not self._judging.is_measured(check)):
            judgement = self._judging.judgement(check)
            self._make_report_parts()
        self.judgement = judgement
        self._put_properties(judgement)
        line = describe(check, judgement)
        outcome = check.criterion.outcome(judgement)
        self._end("\n".join([f"{outcome}: {line}" if outcome else line, *judgement.lines]), judgement.verdict)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], *arguments: Any, **keywords: Any
    ) -> Any:
        """Show a verdict as its message alone, so that summaries and JUnit begin with the figure."""
        shown = super().repr_failure(excinfo, *arguments, **keywords)
        crash = getattr(shown, "reprcrash", None)
        if isinstance(excinfo.value, CheckFailed) and crash is not None:
            place = self.check.criterion.place
            crash.message, crash.path, crash.lineno = str(excinfo.value), str(place.path), place.line
        return shown

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """The criterion's place in its suite's file (annotations land there) and the item's name."""
        place = self.check.criterion.place
        return place.path, place.line - 1, self.name

    def leave_undecided(self, reason: str) -> None:
        """Leave a failing verdict undecided that was expected, so that no report calls it a failure."""
        if self.judgement is not None:
            said = "; ".join(filter(None, [self.judgement.reason, reason]))
            self.judgement = replace(self.judgement, verdict="undecided", reason=said)
            self._put_properties(self.judgement)

    def report_parts(self) -> dict[str, Any] | None:
        """What goes with the report to the controller of pytest-xdist; None when nothing was judged."""
        if self.judgement is None:
            return None
        return plain_values(self.judgement, self._subjects, self._entries)

    def _put_properties(self, judgement: Judgement) -> None:
        """Set what reports say of the item, in plain types: numpy's would break pytest-xdist's transport.

        What is None is left out. An earlier attempt's, where the item is run again, are replaced.
        """
        check = self.check
        values = {
            "suite": check.suite.name,
            "profile": check.profile.name,
            "criterion": check.criterion.name,
            **{name: check.criterion.facts().get(name) for name in ("kind", "metric")},
            "reranker": check.shown_reranker,
            "baseline": check.shown_baseline or None,
            "dataset": check.shown_dataset,
            "k": check.plan.k,
            "views": check.plan.views,
            **check.criterion.properties(judgement),
        }
        others = [each for each in self.user_properties if not each[0].startswith("invari_")]
        ours = [(f"invari_{name}", value) for name, value in values.items() if value is not None]
        self.user_properties[:] = [*others, *ours]

    def _end(self, message: str, verdict: Verdict) -> None:
        """Raise what the verdict amounts to; nothing where it passes."""
        if verdict == "undecided" and self._judging.strict:
            message, verdict = f"{message}; undecided fails under --invari-strict", "fail"
        if verdict == "fail":
            self.failure = message
            raise CheckFailed(message)
        if verdict == "undecided":
            raise CheckUndecided(message)

    def _make_report_parts(self) -> None:
        """Make what goes with the report while the item runs: users' metrics are code, which may print.

        What a baseline is to store comes before an outcome that would hide that it cannot be.
        """
        self._subjects = self._judging.summaries(self.check)
        if self._entry_maker is None:
            return
        try:
            self._entries = self._entry_maker.entries(self.check)
        except InvariError as error:
            raise CheckFailed(harmless(f"nothing to store in a baseline: {error}")) from None


@contextmanager
def showing_progress(item: pytest.Item, *, shown: bool, back_to_line: bool = True) -> Generator[None]:
    """Where progress is *shown*, let it through on its own lines; then begin pytest's line of dots again.

    Whatever else is written in the block is captured and goes into the item's report, as of any test.
    """
    plugins = item.config.pluginmanager
    capture = plugins.getplugin("capturemanager")
    released = nullcontext if capture is None else capture.global_and_fixture_disabled
    terminal = None if hasattr(item.config, "workerinput") else plugins.getplugin("terminalreporter")
    with ExitStack() as stack:
        if shown:
            with released():
                stream = stack.enter_context(_duplicate(sys.stderr))
            stack.enter_context(shown_on(stream))
            if terminal is not None:

                def leave_line() -> None:
                    with released():
                        terminal.ensure_newline()
                        terminal.flush()
                    if back_to_line and terminal.showfspath and not terminal.showlongtestinfo:
                        stack.callback(begin_line)

                def begin_line() -> None:
                    with released():
                        terminal.write_fspath_result(item.nodeid, "")
                        terminal.flush()

                stack.enter_context(preceded_by(leave_line))
        yield


@contextmanager
def _duplicate(stream: TextIO) -> Generator[TextIO]:
    """The stream by a descriptor that capturing leaves alone; the stream itself where it has none."""
    try:
        descriptor = os.dup(stream.fileno())
    except (AttributeError, OSError):
        yield stream
        return
    with open(descriptor, "w", buffering=1, encoding=stream.encoding, errors="backslashreplace") as duplicate:
        yield duplicate
