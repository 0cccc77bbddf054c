"""Checks: one criterion for one subject, and all checks of a run."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_invari.criteria.criterion import Criterion
from pytest_invari.criteria.judgement import Judgement
from pytest_invari.criteria.wording import Wording
from pytest_invari.measure.subject import Subject
from pytest_invari.observation.plan import Plan
from pytest_invari.suitefile.suite import Profile, Suite

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
