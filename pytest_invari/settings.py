"""Settings: what a run was asked for. Each option is declared here once, with its help and how it is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

OnFailure = Literal["strict", "drop", "random"]
Ties = Literal["broken", "half"]
IntervalMethod = Literal["bca", "percentile"]

_Default = TypeVar("_Default")


class BadValueError(ValueError):
    """A value that an option does not take; the message says what it takes."""


@dataclass(frozen=True)
class Option:
    """One option ``--invari-NAME`` with its ini twin ``invari_NAME``, unless it has none.

    *read* turns the text into the setting.
    """

    setting: str
    default: Any
    help: str
    read: Callable[[str], Any]
    metavar: str
    has_ini: bool

    @property
    def name(self) -> str:
        """Its name without the prefix: ``retry-failed``."""
        return self.setting.replace("_", "-")

    @property
    def switch(self) -> str:
        """As it is written on the command line."""
        return "--invari-" + self.name

    @property
    def key(self) -> str:
        """As it is written in the ini file."""
        return "invari_" + self.setting

    @property
    def is_flag(self) -> bool:
        """Whether it takes no value."""
        return isinstance(self.default, bool)

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be repeated."""
        return isinstance(self.default, tuple)


def option(
    default: _Default, help: str, read: Callable[[str], Any] = str, metavar: str = "", has_ini: bool = True
) -> _Default:
    """A field that is an option; see :class:`Option`."""
    how = {"help": help, "read": read, "metavar": metavar, "has_ini": has_ini}
    return field(default=default, metadata=how)


def _text(value: str) -> str:
    if not value:
        raise BadValueError("the value is empty")
    return value


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        # isdecimal alone would take other scripts' digits, and int() also "1_0" and " 1".
        if not (text.isascii() and text.isdecimal()) or int(text) < least:
            raise BadValueError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return read


def _distance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise BadValueError(f"{text!r} is not a number of at least 0")
    return value


def _lengths(text: str) -> tuple[int, ...]:
    return tuple(_whole(1)(part.strip()) for part in text.split(","))


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise BadValueError(f"{text!r} is not one of {', '.join(choices)}")
        return text

    return read


def _device(text: str) -> str:
    kind, colon, index = text.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (colon and (kind != "cuda" or not index.isdecimal())):
        raise BadValueError(f"{text!r} is not one of auto, cpu, cuda, cuda:N")
    return text


def _path(text: str) -> Path:
    return Path(_text(text)).expanduser()


@dataclass(frozen=True)
class ModelSettings:
    """What the user asked of the language model engine.

    An empty ``model`` is the embedded one; ``batch_tokens=0`` leaves the size of a batch to the engine;
    ``calibrate`` makes methods that calibrate do so again.
    """

    model: str = option(
        "",
        "language model: a folder, a GGUF file or a model id in the local cache (default: the embedded "
        "SmolLM2-135M-Instruct).",
        _text,
        "ID|PATH",
    )
    device: str = option(
        "auto", "where the model runs: auto, cpu, cuda or cuda:N (default auto).", _device, "DEVICE"
    )
    dtype: str = option(
        "auto",
        "numbers the model computes with: auto, float32, bfloat16 or float16 (default auto: bfloat16 on "
        "CUDA, float32 on the CPU).",
        _one_of("auto", "float32", "bfloat16", "float16"),
        "DTYPE",
    )
    batch_tokens: int = option(
        0, "most tokens in one batch of the model (default: the engine's).", _whole(1), "N"
    )
    trust_remote_code: bool = option(False, "let a model's own Python code run; read it first.")
    calibrate: bool = option(False, "calibrate again where a method (stella) has a stored calibration.")


@dataclass(frozen=True)
class Settings:
    """What the user chose, the command line before the ini file. None or empty: the suite's own choice."""

    suite: tuple[str, ...] = option(
        (),
        "run this suite: a packaged one (see --invari-list) or the path of your own TOML file; may be "
        "repeated. It replaces the default test paths; paths you give are run as well.",
        _text,
        "NAME|PATH",
    )
    reranker: tuple[str, ...] = option(
        (),
        "test this reranker: NAME, NAME:OPTION=VALUE,… or MODULE:ATTRIBUTE, for example sgs, "
        "sgs:select=2 or shop.search:rerank; may be repeated. --reranker is short for it.",
        _text,
        "NAME",
    )
    profile: str = option(
        "", "how much to measure: a profile of the suite, for example quick or paper.", _text, "NAME"
    )
    dataset: tuple[str, ...] = option(
        (),
        "use this data set in place of the profile's: a name (see --invari-list), a task file (.parquet, "
        ".jsonl) or a MovieLens folder or zip; may be repeated.",
        _text,
        "NAME|PATH",
    )
    k: tuple[int, ...] = option(
        (), "list length in place of the profile's; several as 10,25.", _lengths, "K[,K]"
    )
    views: int | None = option(
        None, "number of orders in which each query's candidates are shown.", _whole(2), "M"
    )
    queries: int | None = option(
        None, "number of queries; intervals shrink with their square root.", _whole(1), "N"
    )
    seed: int | None = option(
        None, "seed of the views, for a fresh draw of orders (default 0).", _whole(0), "SEED"
    )
    baseline: str = option("", "compare with this reranker in place of the suite's baseline.", _text, "NAME")
    strict: bool = option(
        False, "a release gate: what is undecided, skipped or not judged fails, and the reason is told."
    )
    records: Path | None = option(
        None,
        "keep every ranking in this folder as Parquet; a run that was interrupted goes on from there.",
        _path,
        "DIR",
    )
    replay: bool = option(False, "judge the rankings kept in --invari-records again; no model is run.")
    retry_failed: bool = option(
        False,
        "rank again what --invari-records hold as failed; failed connections are asked again without it.",
    )
    model_settings: ModelSettings = ModelSettings()
    no_audit: bool = option(
        False,
        "leave out the audit, some ten questions to a reranker before it ranks: pointwise or listwise, "
        "its noise, its ties, and whether it reads long texts to their end.",
    )
    list: bool = option(
        False,
        "list suites, rerankers, data sets, metrics and kinds of criteria, one line each, and exit.",
        has_ini=False,
    )
    selfcheck: bool = option(
        False,
        "judge simulated rerankers whose truth is known, and report how often the verdicts of the suites "
        "are wrong; no reranker, data or model is needed.",
    )
    simulations: int = option(
        200, "simulated data sets of --invari-selfcheck (default 200).", _whole(20), "N"
    )
    json: Path | None = option(None, "write the results to this file as invari-report/1.", _path, "FILE")
    markdown: Path | None = option(
        None, "write the results to this file as Markdown, for people.", _path, "FILE"
    )
    html: Path | None = option(
        None,
        "write the results to this file as one page with pictures; needs pytest-invari[report].",
        _path,
        "FILE",
    )
    save: Path | None = option(
        None,
        "write what was measured to this file, the baseline of later runs; what else is in it stays.",
        _path,
        "FILE",
    )
    compare: Path | None = option(
        None,
        "compare each metric of the suite with the baseline in this file, query by query; one that is "
        "certainly worse fails.",
        _path,
        "FILE",
    )
    margin: float | None = option(
        None,
        "how much worse than --invari-compare's baseline is still no regression, for all criteria "
        "(default: their regression_margin, or 0).",
        _distance,
        "X",
    )


def options(declared: type = Settings) -> Iterator[Option]:
    """All options in the order of ``--help``."""
    for each in fields(declared):
        if is_dataclass(each.default):
            yield from options(type(each.default))
        else:
            yield Option(each.name, each.default, **each.metadata)


def settings_from(chosen: Mapping[str, Any]) -> Settings:
    """The settings with what was *chosen*, by the names of their fields; the rest are the defaults."""
    of_model = {
        each.setting: chosen[each.setting] for each in options(ModelSettings) if each.setting in chosen
    }
    own = {name: value for name, value in chosen.items() if name not in of_model}
    return Settings(model_settings=ModelSettings(**of_model), **own)
