"""Suites, what is measured and demanded, and their checks: a criterion for a subject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_invari.criteria.criterion import Criterion, Place
from pytest_invari.criteria.evidence import DecisionRules
from pytest_invari.criteria.judgement import Judgement, Wording
from pytest_invari.errors import unknown_name
from pytest_invari.measure.subject import Subject
from pytest_invari.observation.plan import Plan
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


AT_BASELINE = "@baseline"
"""What the name of a criterion has behind it in the id of a change."""


@dataclass(frozen=True)
class Check:
    """One criterion for one subject: a reranker on one data set at one list length."""

    suite: Suite
    profile: Profile
    criterion: Criterion
    subject: Subject
    baseline_subject: Subject | None = None

    @property
    def plan(self) -> Plan:
        """The plan by which the subject is measured, and its baseline too."""
        return self.subject.plan

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """The subject, and its baseline where there is one."""
        return (self.subject,) if self.baseline_subject is None else (self.subject, self.baseline_subject)

    @property
    def shown_reranker(self) -> str:
        """The reranker as the user wrote it, but for secrets in its options."""
        return self.subject.shown_reranker

    @property
    def shown_baseline(self) -> str:
        """The baseline likewise; empty when there is none."""
        return self.baseline_subject.shown_reranker if self.baseline_subject else ""

    @property
    def shown_dataset(self) -> str:
        """The data set's name, the same on every machine."""
        return self.subject.shown_dataset

    @property
    def name(self) -> str:
        """The item's name: ``loc[sgs-movielens_small-K10]``."""
        return f"{self.criterion.item_name}[{self.subject.label}]"

    @property
    def id(self) -> str:
        """The whole id, the same from every folder: ``recsys26::loc[sgs-movielens_small-K10]``."""
        return f"{self.suite.name}::{self.name}"


@dataclass(frozen=True)
class LeftOut:
    """A criterion that is not checked for a subject, and why.

    One that is *lost* is no choice of the suite's: a gate must not pass it over.
    """

    suite: str
    criterion: str
    subject: str
    reason: str
    is_lost: bool = False


@dataclass(frozen=True)
class Expansion:
    """All checks of a run in the order in which they run, what was left out, and what was not asked for.

    ``changes`` are the comparisons with a stored baseline, which run after the checks of their suite.
    """

    checks: tuple[Check, ...]
    left_out: tuple[LeftOut, ...] = ()
    unselected: tuple[Check, ...] = ()
    changes: tuple[Check, ...] = ()

    @property
    def items(self) -> tuple[Check, ...]:
        """Checks and changes."""
        return (*self.checks, *self.changes)


def describe(check: Check, judgement: Judgement) -> str:
    """One line that begins with the figure and goes on to the demand and the reason."""
    return wording(check, judgement).line


def wording(check: Check, judgement: Judgement) -> Wording:
    """The same in its parts."""
    return check.criterion.wording(
        judgement,
        k=check.plan.k,
        baseline=check.shown_baseline,
        min_queries=check.suite.min_queries,
    )
