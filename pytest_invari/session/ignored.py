"""Options on the command line that a run would ignore: refused before it starts, or told at its end.

PYTEST_DONT_REWRITE: there are no asserts to rewrite.
"""

from __future__ import annotations

from typing import Any

import pytest

from pytest_invari.options import runs_nothing, typed_options

__all__ = ["STUDIES_ARE_USED", "refuse_in_selfcheck", "refuse_without_selfcheck", "refuse_without_suite"]

STUDIES_ARE_USED = "invari-notes"
"""The name of the plugin that a run has once a test uses the fixture ``invari``."""

# What the fixture heeds. Whether a test uses it is known at the end only.
_STUDIES = {
    "strict",
    "records",
    "replay",
    "retry-failed",
    "model",
    "device",
    "dtype",
    "batch-tokens",
    "trust-remote-code",
    "calibrate",
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
    _watch(config, list(typed))


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
    """Tells at the end of the run that no test has used the fixture."""

    def __init__(self, config: pytest.Config, switches: list[str]) -> None:
        self._config, self._switches = config, switches
        self._used_in_a_worker = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear it of a worker of pytest-xdist."""
        self._used_in_a_worker |= STUDIES_ARE_USED in getattr(node, "workeroutput", {})

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say it in one line."""
        is_used = self._used_in_a_worker or self._config.pluginmanager.has_plugin(STUDIES_ARE_USED)
        if not is_used and not runs_nothing(self._config):
            terminalreporter.write_line(
                f"invari: {' and '.join(self._switches)} changed nothing: no suite was asked for, and no "
                "test that ran uses the fixture invari",
                yellow=True,
            )


def _watch(config: pytest.Config, switches: list[str]) -> None:
    if switches:
        config.pluginmanager.register(_Watch(config, switches), "invari-ignored")
