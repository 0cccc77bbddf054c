"""What a run is about: its suites, rerankers and checks, from options, test paths, hooks and pyproject.toml.

PYTEST_DONT_REWRITE: there are no asserts to rewrite.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.measure.runner import Runner
from pytest_invari.registry.registry import Registry
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.session.hooks import named_kinds
from pytest_invari.session.options import reranker_switch
from pytest_invari.settings import Settings
from pytest_invari.suitefile.expansion import expand, select, specs_in_ids
from pytest_invari.suitefile.reader import find_suite, packaged_suites
from pytest_invari.suitefile.suite import SUFFIX, Expansion, Suite

_CHECK_ID = re.compile(r"(.*/)?[a-z][a-z0-9_]*::[a-z][a-z0-9_@]*\[.+-K\d+\]")


def take_suites(config: pytest.Config, settings: Settings) -> tuple[list[Suite], list[str]]:
    """The suites, from options and arguments, and the ids among the latter; a suite's name means all of it.

    What is ours is taken out of pytest's test paths, and a suite replaces those that pytest would choose.

    Raises:
        InvariError: there is no such suite, or a mistake in it or in a hook that names kinds of criteria.
    """
    # Only for a suite: an ordinary run has nothing to do with these.
    kinds = functools.cache(lambda: named_kinds(config))
    suites = [find_suite(name, kinds()) for name in settings.suite]
    ids = []
    for argument in _take(config, _is_suite_file):
        path, _, wanted = argument.partition("::")
        suites.append(suite := find_suite(path, kinds()))
        ids.append(f"{suite.name}::{wanted}" if wanted else suite.name)
    known = {suite.name for suite in suites} | set(packaged_suites())
    for argument in _take(config, lambda each: _names_a_check(each, known)):
        ids.append(wanted := _bare(argument))
        name = wanted.partition("::")[0]
        if all(suite.name != name for suite in suites):
            suites.append(find_suite(name, kinds()))
    for argument in config.args:
        # With --pyargs, a module's test may look like this too.
        if _CHECK_ID.fullmatch(argument) and not config.getoption("pyargs"):
            name, _, wanted = _bare(argument).partition("::")
            raise InvariError(
                f"{argument}: no packaged suite is called {name!r}; for one of your own add "
                f"--invari-suite=PATH, or write PATH::{wanted}"
            )
    if suites:
        replace_default_paths(config)
        _deselect_by_path(config, suites)
    return suites, ids


def expansion_of(
    config: pytest.Config, suites: list[Suite], ids: list[str], settings: Settings, registry: Registry
) -> Expansion:
    """The checks of the run, and its comparisons with a baseline.

    Raises:
        InvariError: no reranker is named, a suite's baseline is unknown, or the suites, the settings and the
            ids do not go together.
    """
    names = list(settings.reranker) or specs_in_ids(ids, suites, settings)
    if not names:
        raise InvariError(
            f"suite {suites[0].name!r} needs a reranker to test: {reranker_switch(config)}; known: "
            f"{', '.join(registry.reranker_names())}, or MODULE:ATTRIBUTE"
        )
    if config.getoption("invari_retry_failed") and settings.records is None:
        raise InvariError(
            "--invari-retry-failed needs --invari-records=DIR, the folder that holds what failed"
        )
    if not settings.baseline and not settings.replay:
        _require_known_baselines(suites, registry)
    expansion = expand(suites, [RerankerSpec.parse(name) for name in names], settings)
    if settings.compare is None and config.getoption("invari_margin") is not None:
        raise InvariError(
            "--invari-margin needs --invari-compare=FILE, the baseline that may be missed by it"
        )

    def chosen(expansion: Expansion) -> Expansion:
        return select(expansion, ids) if any("::" in wanted for wanted in ids) else expansion

    if settings.compare is None:
        return chosen(expansion)
    from pytest_invari.baseline.changes import with_changes, with_lost
    from pytest_invari.baseline.file import read_baseline

    stored = read_baseline(settings.compare)
    expansion = chosen(with_changes(expansion, settings.compare, stored, settings.margin))
    return with_lost(expansion, settings.compare, stored)


def _require_known_baselines(suites: list[Suite], registry: Registry) -> None:
    """Refuse the baseline of a suite that nobody knows, though no criterion may compare with it."""
    for suite in suites:
        if suite.baseline:
            registry.require_known(suite.baseline, f"{suite.place('suite', 'baseline')}: [suite]: baseline")


def make_runner(settings: Settings, registry: Registry) -> Runner:
    """What measures the subjects of the run.

    Raises:
        InvariError: a replay has no records.
    """
    if settings.replay and settings.records is None:
        raise InvariError("--invari-replay needs --invari-records=DIR, the folder that holds the rankings")
    return Runner(
        registry,
        settings.model_settings,
        records=settings.records,
        replay=settings.replay,
        retry_failed=settings.retry_failed,
        audits=not settings.no_audit,
    )


def _take(config: pytest.Config, ours: Any) -> list[str]:
    """Move the arguments that are ours out of pytest's test paths."""
    taken = [argument for argument in config.args if ours(argument)]
    config.args[:] = [argument for argument in config.args if argument not in taken]
    return taken


def _is_suite_file(argument: str) -> bool:
    return argument.partition("::")[0].endswith(SUFFIX)


def _names_a_check(argument: str, known: set[str]) -> bool:
    head, colons, _ = argument.partition("::")
    return bool(colons) and PurePosixPath(head).name in known and not Path(head).exists()


def _bare(argument: str) -> str:
    """Without the ``../`` that pytest's summary puts before an id outside of its root path."""
    head, _, rest = argument.partition("::")
    return f"{PurePosixPath(head).name}::{rest}"


def _deselect_by_path(config: pytest.Config, suites: list[Suite]) -> None:
    """Let ``--deselect`` take the path of a suite, by which arguments name its items, for the name in ids."""
    names = {suite.path.resolve(): suite.name for suite in suites}

    def as_id(prefix: str) -> str:
        path, _, rest = prefix.partition("::")
        name = names.get(Path(path).resolve()) if _is_suite_file(prefix) else None
        return prefix if name is None else f"{name}::{rest}"

    config.option.deselect = [as_id(prefix) for prefix in config.getoption("deselect") or ()]


def replace_default_paths(config: pytest.Config) -> None:
    """Keep no test path but those of the user's own, which are run as well."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []
        config.args_source = pytest.Config.ArgsSource.ARGS
