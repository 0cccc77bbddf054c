"""The command line options and their ini twins: their help, how each value is read, and what was chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.session.separate_files import require_separate_files
from pytest_invari.settings import Settings

ALIAS = "--reranker"

_ALIAS_IS_TAKEN = pytest.StashKey[bool]()


class _BadValueError(ValueError):
    """A value that an option does not take; the message says what it takes."""


@dataclass(frozen=True)
class _Option:
    """One option ``--invari-NAME`` with its ini twin ``invari_NAME``.

    A *many* option may be repeated; a *flag* takes no value. *read* turns the text into the setting.
    """

    name: str
    help: str
    read: Callable[[str], Any] = str
    metavar: str = ""
    many: bool = False
    flag: bool = False

    @property
    def switch(self) -> str:
        return "--invari-" + self.name

    @property
    def key(self) -> str:
        return "invari_" + self.name.replace("-", "_")

    @property
    def setting(self) -> str:
        return self.name.replace("-", "_")


def add_options(parser: pytest.Parser) -> None:
    """Register every option but the alias, and its ini key."""
    group = parser.getgroup("invari", "invari: rerankers whose input is reordered")
    for option in _options():
        shown = {"metavar": option.metavar} if option.metavar else {}
        action = "store_true" if option.flag else "append" if option.many else "store"
        group.addoption(
            option.switch, action=action, dest=option.key, default=None, help=option.help, **shown
        )
        if option.name == "list":
            continue
        kind: Any = "bool" if option.flag else "args" if option.many else None
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
    names = {option.switch: option.name for option in _options()}
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
    for option in _options():
        value = config.getoption(option.key)
        source = option.switch
        if value is None and option.name == "list":
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
        except _BadValueError as error:
            raise pytest.UsageError(f"{source}: {error}") from None
    settings = Settings(**chosen)
    require_separate_files(config, settings)
    if settings.replay and config.getoption("invari_retry_failed"):
        raise pytest.UsageError(
            "--invari-retry-failed ranks again, and --invari-replay ranks nothing: leave one of them out"
        )
    return settings


def _read(option: _Option, value: Any) -> Any:
    if option.flag:
        return bool(value)
    if not option.many:
        return option.read(str(value).strip())
    read = [one for text in value for one in _as_sequence(option.read(str(text).strip()))]
    return tuple(dict.fromkeys(read))


def _as_sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value,)


def _text(value: str) -> str:
    if not value:
        raise _BadValueError("the value is empty")
    return value


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        # isdecimal alone would take other scripts' digits, and int() also "1_0" and " 1".
        if not (text.isascii() and text.isdecimal()) or int(text) < least:
            raise _BadValueError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return read


def _distance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise _BadValueError(f"{text!r} is not a number of at least 0")
    return value


def _lengths(text: str) -> tuple[int, ...]:
    return tuple(_whole(1)(part.strip()) for part in text.split(","))


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise _BadValueError(f"{text!r} is not one of {', '.join(choices)}")
        return text

    return read


def _device(text: str) -> str:
    kind, colon, index = text.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (colon and (kind != "cuda" or not index.isdecimal())):
        raise _BadValueError(f"{text!r} is not one of auto, cpu, cuda, cuda:N")
    return text


def _path(text: str) -> Path:
    return Path(_text(text)).expanduser()


def _options() -> tuple[_Option, ...]:
    return (
        _Option(
            "suite",
            "run this suite: a packaged one (see --invari-list) or the path of your own TOML file; may be "
            "repeated. It replaces the default test paths; paths you give are run as well.",
            _text,
            "NAME|PATH",
            many=True,
        ),
        _Option(
            "reranker",
            f"test this reranker: NAME, NAME:OPTION=VALUE,… or MODULE:ATTRIBUTE, for example sgs, "
            f"sgs:select=2 or shop.search:rerank; may be repeated. {ALIAS} is short for it.",
            _text,
            "NAME",
            many=True,
        ),
        _Option(
            "profile",
            "how much to measure: a profile of the suite, for example quick or paper.",
            _text,
            "NAME",
        ),
        _Option(
            "dataset",
            "use this data set in place of the profile's: a name (see --invari-list), a task file (.parquet, "
            ".jsonl) or a MovieLens folder or zip; may be repeated.",
            _text,
            "NAME|PATH",
            many=True,
        ),
        _Option(
            "k", "list length in place of the profile's; several as 10,25.", _lengths, "K[,K]", many=True
        ),
        _Option("views", "number of orders in which each query's candidates are shown.", _whole(2), "M"),
        _Option("queries", "number of queries; intervals shrink with their square root.", _whole(1), "N"),
        _Option("seed", "seed of the views, for a fresh draw of orders (default 0).", _whole(0), "SEED"),
        _Option("baseline", "compare with this reranker in place of the suite's baseline.", _text, "NAME"),
        _Option(
            "strict",
            "a release gate: what is undecided, skipped or not judged fails, and the reason is told.",
            flag=True,
        ),
        _Option(
            "records",
            "keep every ranking in this folder as Parquet; a run that was interrupted goes on from there.",
            _path,
            "DIR",
        ),
        _Option("replay", "judge the rankings kept in --invari-records again; no model is run.", flag=True),
        _Option(
            "retry-failed",
            "rank again what --invari-records hold as failed; failed connections are asked again without it.",
            flag=True,
        ),
        _Option(
            "model",
            "language model: a folder, a GGUF file or a model id in the local cache (default: the embedded "
            "SmolLM2-135M-Instruct).",
            _text,
            "ID|PATH",
        ),
        _Option(
            "device", "where the model runs: auto, cpu, cuda or cuda:N (default auto).", _device, "DEVICE"
        ),
        _Option(
            "dtype",
            "numbers the model computes with: auto, float32, bfloat16 or float16 (default auto: bfloat16 on "
            "CUDA, float32 on the CPU).",
            _one_of("auto", "float32", "bfloat16", "float16"),
            "DTYPE",
        ),
        _Option(
            "batch-tokens", "most tokens in one batch of the model (default: the engine's).", _whole(1), "N"
        ),
        _Option("trust-remote-code", "let a model's own Python code run; read it first.", flag=True),
        _Option("calibrate", "calibrate again where a method (stella) has a stored calibration.", flag=True),
        _Option(
            "no-audit",
            "leave out the audit, some ten questions to a reranker before it ranks: pointwise or listwise, "
            "its noise, its ties, and whether it reads long texts to their end.",
            flag=True,
        ),
        _Option(
            "list",
            "list suites, rerankers, data sets, metrics and kinds of criteria, one line each, and exit.",
            flag=True,
        ),
        _Option(
            "selfcheck",
            "judge simulated rerankers whose truth is known, and report how often the verdicts of the suites "
            "are wrong; no reranker, data or model is needed.",
            flag=True,
        ),
        _Option("simulations", "simulated data sets of --invari-selfcheck (default 200).", _whole(20), "N"),
        _Option("json", "write the results to this file as invari-report/1.", _path, "FILE"),
        _Option("markdown", "write the results to this file as Markdown, for people.", _path, "FILE"),
        _Option(
            "html",
            "write the results to this file as one page with pictures; needs pytest-invari[report].",
            _path,
            "FILE",
        ),
        _Option(
            "save",
            "write what was measured to this file, the baseline of later runs; what else is in it stays.",
            _path,
            "FILE",
        ),
        _Option(
            "compare",
            "compare each metric of the suite with the baseline in this file, query by query; one that is "
            "certainly worse fails.",
            _path,
            "FILE",
        ),
        _Option(
            "margin",
            "how much worse than --invari-compare's baseline is still no regression, for all criteria "
            "(default: their regression_margin, or 0).",
            _distance,
            "X",
        ),
    )
