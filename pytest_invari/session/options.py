"""The command line options and their ini twins are registered, and what was chosen is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.settings import BadValueError, Option, Settings, options, settings_from

ALIAS = "--reranker"

_REPORTS = ("json", "markdown", "html")
# Options of pytest, pytest-html and pytest-reportlog that name what they write.
_OTHERS = ("--junitxml", "--html", "--log-file", "--report-log")

_ALIAS_IS_TAKEN = pytest.StashKey[bool]()


def add_options(parser: pytest.Parser) -> None:
    """Register every option but the alias, and its ini key."""
    group = parser.getgroup("invari", "invari: rerankers whose input is reordered")
    for option in options():
        shown = {"metavar": option.metavar} if option.metavar else {}
        action = "store_true" if option.is_flag else "append" if option.is_repeatable else "store"
        group.addoption(
            option.switch, action=action, dest=option.key, default=None, help=option.help, **shown
        )
        if not option.has_ini:
            continue
        kind: Any = "bool" if option.is_flag else "args" if option.is_repeatable else None
        parser.addini(option.key, f"default of {option.switch}", type=kind, default=None)


def add_alias(config: pytest.Config, parser: pytest.Parser) -> None:
    """Register ``--reranker`` unless somebody else has it.

    It is done after plugins and conftests are loaded, so that theirs wins and does not crash on ours.
    """
    _, unknown = parser.parse_known_and_unknown_args([f"{ALIAS}=probe"])
    if not unknown:
        config.stash[_ALIAS_IS_TAKEN] = True
        return
    parser.getgroup("invari").addoption(
        ALIAS, action="append", dest="invari_reranker", metavar="NAME", help="short for --invari-reranker"
    )


def reranker_switch(config: pytest.Config) -> str:
    """The option by which a reranker is named in this run, to be told to the user."""
    if config.stash.get(_ALIAS_IS_TAKEN, False):
        return f"--invari-reranker=NAME ({ALIAS} belongs to another plugin or conftest here)"
    return f"{ALIAS}=NAME"


def typed_options(config: pytest.Config) -> dict[str, str]:
    """Our switches on the command line itself, as they were typed, each with the name of its option.

    Only these are meant for this one run; ``addopts``, ``PYTEST_ADDOPTS`` and our ini keys are defaults.
    """
    names = {option.switch: option.name for option in options()}
    if not config.stash.get(_ALIAS_IS_TAKEN, False):
        names[ALIAS] = "reranker"
    typed = (str(argument).partition("=")[0] for argument in config.invocation_params.args)
    return {switch: names[switch] for switch in typed if switch in names}


def runs_nothing(config: pytest.Config) -> bool:
    """Whether the run only lists its items, or plans them, so that there is nothing to judge or to report."""
    return bool(config.getoption("collectonly") or config.getoption("setupplan", False))


def read_settings(config: pytest.Config) -> Settings:
    """Resolve all options.

    Raises:
        pytest.UsageError: a value is not one that its option takes.
    """
    chosen: dict[str, Any] = {}
    for option in options():
        value = config.getoption(option.key)
        source = option.switch
        if value is None and not option.has_ini:
            continue
        if value is None:
            source = f"ini key {option.key}"
            try:
                value = config.getini(option.key)
            except (ValueError, pytest.UsageError) as error:
                raise pytest.UsageError(f"{source}: {error}") from None
            if value is None or value == "" or value == []:
                continue
        try:
            chosen[option.setting] = _read(option, value)
        except BadValueError as error:
            raise pytest.UsageError(f"{source}: {error}") from None
    settings = settings_from(chosen)
    _require_separate_files(config, settings)
    if settings.replay and config.getoption("invari_retry_failed"):
        raise pytest.UsageError(
            "--invari-retry-failed ranks again, and --invari-replay ranks nothing: leave one of them out"
        )
    return settings


def _read(option: Option, value: Any) -> Any:
    if option.is_flag:
        return bool(value)
    if not option.is_repeatable:
        return option.read(str(value).strip())
    read = [one for text in value for one in _as_sequence(option.read(str(text).strip()))]
    return tuple(dict.fromkeys(read))


def _as_sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value,)


def _require_separate_files(config: pytest.Config, settings: Settings) -> None:
    """Refuse a path that two options name, of ours or of other plugins; one file would replace the other."""
    if settings.save and settings.compare and settings.save.resolve() == settings.compare.resolve():
        raise pytest.UsageError(
            f"--invari-save={settings.save} would replace the baseline that it is compared with; save to "
            "another file, or renew it by a run of its own"
        )
    known = {path.resolve(): switch for switch, path in _written_by_others(config).items()}
    # Of two, a report is the one to be written elsewhere.
    for option in sorted(options(), key=lambda each: each.name in _REPORTS):
        path = getattr(settings, option.setting, None)
        if not isinstance(path, Path):
            continue
        if other := known.get(path.resolve()):
            raise pytest.UsageError(
                f"{option.switch}={path}: {other} names the same file; give each one of its own"
            )
        known[path.resolve()] = option.switch


def _written_by_others(config: pytest.Config) -> dict[str, Path]:
    named = {switch: config.getoption(switch, None) for switch in _OTHERS}
    # A conftest may have an option of that name that is a flag.
    return {
        switch: Path(path).expanduser() for switch, path in named.items() if path and isinstance(path, str)
    }
