"""Options on the command line that a run would ignore: refused before it starts, or told at its end.

PYTEST_DONT_REWRITE: there are no asserts to rewrite.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from pytest_invari.session.options import runs_nothing, typed_options
from pytest_invari.settings import ModelSettings, options

STUDIES_ARE_USED = "invari-notes"
"""The name of the plugin that a run has once a test uses the fixture ``invari``."""

# What the fixture heeds. Whether a test uses it is known at the end only.
_STUDIES = {
    "strict",
    "records",
    "replay",
    "retry-failed",
    *(option.name for option in options(ModelSettings)),
}
_SELFCHECK = {"selfcheck", "simulations", "suite", "profile", "k", "views", "queries", "seed", "json"}


def refuse_without_suite(config: pytest.Config) -> None:
    """Refuse what only suites heed in a run without one, and have the end of it tell what no test has heeded.

    Raises:
        pytest.UsageError: there are such options.
    """
    typed = typed_options(config)
    ignored = [switch for switch, name in typed.items() if name not in _STUDIES]
    if ignored:
        key = "invari_" + typed[ignored[0]].replace("-", "_")
        raise pytest.UsageError(
            f"without a suite, {' and '.join(ignored)} would be ignored: add --invari-suite=NAME "
            f"(--invari-list shows them); a default for every run is set by the ini key {key}"
        )
    _watch(config, list(typed), is_strict="strict" in typed.values())


def refuse_in_selfcheck(config: pytest.Config) -> None:
    """Refuse what a self-check ignores; tests that are run beside it may heed what the fixture does.

    Raises:
        pytest.UsageError: there are such options.
    """
    typed = typed_options(config)
    has_tests = config.args_source is pytest.Config.ArgsSource.ARGS
    heeded = _SELFCHECK | _STUDIES if has_tests else _SELFCHECK
    ignored = [switch for switch, name in typed.items() if name not in heeded]
    if ignored:
        raise pytest.UsageError(
            f"--invari-selfcheck judges simulated rerankers on simulated data and would ignore "
            f"{' and '.join(ignored)}: leave that out, or run the suite without --invari-selfcheck"
        )
    _watch(config, [switch for switch, name in typed.items() if name not in _SELFCHECK])


def refuse_without_selfcheck(config: pytest.Config) -> None:
    """Refuse the number of simulations where nothing is simulated.

    Raises:
        pytest.UsageError: it is there.
    """
    if "simulations" in typed_options(config).values():
        raise pytest.UsageError(
            "--invari-simulations would be ignored: it is the number of data sets that --invari-selfcheck "
            "simulates; add that, or leave it out"
        )


class _Watch:
    """Tells at the end that no test has used the fixture; a gate that has measured nothing fails."""

    def __init__(self, config: pytest.Config, switches: list[str], is_strict: bool) -> None:
        self._config, self._switches, self._is_strict = config, switches, is_strict
        self._assertions_before = _assertions_made()
        self._by_workers: set[str] = set()
        self._fails = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear of a worker of pytest-xdist what its tests have used."""
        self._by_workers |= {STUDIES_ARE_USED, _ASSERTIONS} & getattr(node, "workeroutput", {}).keys()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let a worker tell its controller; fail a run that would be a success."""
        if hasattr(self._config, "workeroutput"):
            if self._has_asserted:
                self._config.workeroutput[_ASSERTIONS] = True
        elif self._is_strict and not (self._is_used or self._has_asserted or runs_nothing(self._config)):
            self._fails = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
            if self._fails:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say it in one line."""
        if self._is_used or runs_nothing(self._config):
            return
        nothing = "no suite was asked for, and no test that ran uses the fixture invari"
        switches = [each for each in self._switches if not (self._fails and each == "--invari-strict")]
        if switches:
            said = f"invari: {' and '.join(switches)} changed nothing: {nothing}"
            terminalreporter.write_line(said, yellow=True)
        if self._fails:
            said = f"invari: nothing was measured, which fails under --invari-strict: {nothing}"
            terminalreporter.write_line(said, red=True)

    @property
    def _is_used(self) -> bool:
        return STUDIES_ARE_USED in self._by_workers or self._config.pluginmanager.has_plugin(STUDIES_ARE_USED)

    @property
    def _has_asserted(self) -> bool:
        return _ASSERTIONS in self._by_workers or _assertions_made() > self._assertions_before


_ASSERTIONS = "invari-assertions"


def _assertions_made() -> int:
    """How often this process has asserted an invariance; the module is not imported for this."""
    module = sys.modules.get("pytest_invari.testing.invariance")
    return 0 if module is None else module.assertions_made


def _watch(config: pytest.Config, switches: list[str], is_strict: bool = False) -> None:
    if switches:
        config.pluginmanager.register(_Watch(config, switches, is_strict), "invari-ignored")
