"""What GitHub Actions shows of a run by itself: the summary of its job, and annotations at its criteria.

PYTEST_DONT_REWRITE: there are no asserts to rewrite.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_invari.reports.markdown import markdown_blocks, shortened
from pytest_invari.reports.run import Run
from pytest_invari.suitefile.reader import packaged_suites
from pytest_invari.text import harmless, printable

if TYPE_CHECKING:
    from pytest_invari.suitefile.suite import Check


NAME = "invari-github"
OTHERS = "pytest_github_actions_annotate_failures"
"""The plugin that annotates whatever fails, ours included; then only the undecided are left to us."""

SUMMARY_BYTES = 1024 * 1024
"""More than that GitHub refuses to show of a step's summary."""

MOST_ANNOTATIONS = 10
"""More of a level than these GitHub does not show of a step."""

_LONGEST_MESSAGE = 4000

Level = Literal["error", "warning"]


@dataclass(frozen=True)
class Annotation:
    """A message at a line of a file of the repository, or, without a file, at the run."""

    level: Level
    title: str
    message: str
    file: str = ""
    line: int = 0


def tell_github(config: pytest.Config, run: Callable[[], Run]) -> None:
    """In a workflow of GitHub Actions, have its summary and annotations made of *run* at the end."""
    if _is_in_workflow(config):
        config.pluginmanager.register(GitHub(config, run), NAME)


def annotate_error(config: pytest.Config, message: str) -> None:
    """In a workflow, annotate at the run what cannot be done: the line of it stands in the log alone."""
    if _is_in_workflow(config) and config.pluginmanager.hasplugin("terminal"):
        said = Annotation("error", "invari cannot do this", harmless(message))
        print(workflow_command(said), file=sys.stderr)


def _is_in_workflow(config: pytest.Config) -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true" and not hasattr(config, "workerinput")


def workflow_command(annotation: Annotation) -> str:
    """The line by which a step annotates."""
    place = {"file": annotation.file, "line": str(annotation.line)} if annotation.file else {}
    properties = ",".join(
        f"{key}={_property(value)}" for key, value in (place | {"title": annotation.title}).items()
    )
    return f"::{annotation.level} {properties}::{_data(annotation.message)}"


class GitHub:
    """Hooks of a run in a workflow; a summary that cannot be written is told of and fails nothing."""

    def __init__(self, config: pytest.Config, run: Callable[[], Run]) -> None:
        self._config, self._run = config, run
        self._fault = ""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Append the report to the summary of the step."""
        path = os.environ.get("GITHUB_STEP_SUMMARY", "")
        run = self._run()
        if not path or not run.has_results:
            return
        try:
            _append(Path(path), markdown_blocks(run))
        except OSError as error:
            reason = error.strerror or error
            self._fault = harmless(f"invari: GITHUB_STEP_SUMMARY={path}: cannot be written ({reason})")

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Annotate what has failed and what is undecided."""
        found = list(_annotations(self._run(), self._workspace))
        if self._config.pluginmanager.hasplugin(OTHERS):
            found = [each for each in found if each.level != "error"]
        for level in ("error", "warning"):
            for each in _as_many_as_are_shown([each for each in found if each.level == level]):
                terminalreporter.write_line(workflow_command(each))

    def pytest_unconfigure(self) -> None:
        """Tell the fault."""
        if self._fault:
            print(self._fault, file=sys.stderr)

    @property
    def _workspace(self) -> Path:
        return Path(os.environ.get("GITHUB_WORKSPACE") or self._config.rootpath).resolve()


def _append(path: Path, blocks: Sequence[str]) -> None:
    written = path.stat().st_size if path.exists() else 0
    # A blank line keeps apart what an earlier command of the step has written.
    gap = "\n\n" if written else ""
    text = shortened(blocks, SUMMARY_BYTES - written - len(gap))
    if text:
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(gap + text)


def _annotations(run: Run, workspace: Path) -> Iterator[Annotation]:
    undecided: Level = "error" if run.settings.strict else "warning"
    for result in run.results.criteria:
        verdict, check = result.judgement.verdict, result.check
        if verdict == "pass":
            continue
        level: Level = "error" if verdict == "fail" else "warning" if result.aside else undecided
        why = [f"why: {check.criterion.why}"] if verdict == "fail" and check.criterion.why else []
        lines = [result.line, *why, *result.judgement.lines]
        word = result.aside or {"fail": "failed"}.get(verdict, verdict)
        yield _at(check, level, word, lines, workspace)
    for result in run.results.comparisons:
        if result.judgement.verdict != "pass":
            level = "error" if result.judgement.verdict == "fail" else undecided
            yield _at(result.check, level, result.outcome, [result.line], workspace)
    for each in run.blamed:
        yield Annotation("error", printable(f"invari not judged: {each.id}"), printable(each.reason))


def _at(check: Check, level: Level, word: str, lines: Sequence[str], workspace: Path) -> Annotation:
    message = "\n".join(printable(each) for text in lines for each in text.split("\n"))
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[:_LONGEST_MESSAGE]}…"
    title = printable(f"invari {word}: {check.name}")
    place = check.criterion.place
    path = place.path.resolve()
    # Packaged suites may lie in an environment below the workspace, but are no files of the repository.
    if check.suite.path in packaged_suites().values() or not path.is_relative_to(workspace):
        return Annotation(level, title, f"{check.suite.name}: {message}")
    return Annotation(level, title, message, path.relative_to(workspace).as_posix(), place.line)


def _as_many_as_are_shown(found: Sequence[Annotation]) -> list[Annotation]:
    """All of them, or, where some would not be shown, the first ones and one that says how many more."""
    if len(found) <= MOST_ANNOTATIONS:
        return list(found)
    shown = list(found[: MOST_ANNOTATIONS - 1])
    more = len(found) - len(shown)
    message = f"{more} more are in the section invari of the log and in the summary of the job"
    return [*shown, Annotation(found[0].level, "invari: more than GitHub shows", message)]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
