"""Suites: what is measured on which data, and what is demanded of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_invari.criteria.criterion import Criterion, Place
from pytest_invari.criteria.evidence import DecisionRules
from pytest_invari.errors import unknown_name
from pytest_invari.observation.view_settings import CountingRules, ViewSettings
from pytest_invari.suitefile.document import Document

if TYPE_CHECKING:
    from pytest_invari.metrics import Metric
    from pytest_invari.metrics.metric import Analysis


SUFFIX = ".invari.toml"
"""The end of a file name that marks a user's own suite on the command line."""


@dataclass(frozen=True, kw_only=True)
class Profile(ViewSettings):
    """How much a suite measures; the fields but the name are the keys ``PROFILE`` of ``suitefile.keys``.

    ``views`` is their number also where a bank names them.
    """

    name: str
    datasets: tuple[str, ...]
    k: tuple[int, ...]
    queries: int | None
    title: str
    allow_overlap: bool


@dataclass(frozen=True, kw_only=True)
class Suite(CountingRules, DecisionRules):
    """A suite as read; what its keys mean stands in ``suitefile.keys``.

    ``default_profile`` is used unless another is asked for.
    """

    name: str
    title: str
    path: Path
    sha256: str
    profiles: Mapping[str, Profile]
    default_profile: str
    criteria: tuple[Criterion, ...]
    baseline: str
    analyses: tuple[Analysis, ...]
    report: tuple[Metric, ...]
    document: Document = field(repr=False, compare=False)

    def place(self, *key: str) -> Place:
        """Where a key is written: ``place("suite", "baseline")``."""
        return Place(self.path, self.document.line(key))

    def profile(self, name: str = "") -> Profile:
        """The profile called *name*, or the default one.

        Raises:
            InvariError: there is none of that name.
        """
        chosen = name or self.default_profile
        if chosen not in self.profiles:
            raise unknown_name("profile", chosen, self.profiles, f"suite {self.name!r}")
        return self.profiles[chosen]
