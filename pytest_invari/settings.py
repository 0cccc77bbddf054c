"""Settings: what a run was asked for, resolved from the command line and the ini file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

OnFailure = Literal["strict", "drop", "random"]


Ties = Literal["broken", "half"]


IntervalMethod = Literal["bca", "percentile"]


@dataclass(frozen=True)
class ModelSettings:
    """What the user asked of the language model engine.

    An empty ``model`` is the embedded one; ``batch_tokens=0`` leaves the size of a batch to the engine;
    ``calibrate`` makes methods that calibrate do so again.
    """

    model: str = ""
    device: str = "auto"
    dtype: str = "auto"
    batch_tokens: int = 0
    trust_remote_code: bool = False
    calibrate: bool = False


@dataclass(frozen=True)
class Settings:
    """What the user chose, the command line before the ini file. None or empty: the suite's own choice."""

    suite: tuple[str, ...] = ()
    reranker: tuple[str, ...] = ()
    profile: str = ""
    dataset: tuple[str, ...] = ()
    k: tuple[int, ...] = ()
    views: int | None = None
    queries: int | None = None
    seed: int | None = None
    baseline: str = ""
    strict: bool = False
    records: Path | None = None
    replay: bool = False
    retry_failed: bool = False
    model: str = ""
    device: str = "auto"
    dtype: str = "auto"
    batch_tokens: int = 0
    trust_remote_code: bool = False
    calibrate: bool = False
    list: bool = False
    no_audit: bool = False
    json: Path | None = None
    markdown: Path | None = None
    html: Path | None = None
    save: Path | None = None
    compare: Path | None = None
    margin: float | None = None
    selfcheck: bool = False
    simulations: int = 200

    @property
    def model_settings(self) -> ModelSettings:
        """What the user chose for the language model."""
        return ModelSettings(**{each.name: getattr(self, each.name) for each in fields(ModelSettings)})
