"""What a suite must say before an analysis of views can run, told with its line before anything is ranked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pytest_invari.criteria.metric import MetricCriterion
from pytest_invari.errors import InvariError
from pytest_invari.metrics.metric import FindingMetric

if TYPE_CHECKING:
    from pytest_invari.suitefile.suite import Profile, Suite


def require_analysable(suite: Suite) -> None:
    """Refuse criteria on findings, and analyses, that the suite's profiles do not support.

    Raises:
        InvariError: file and line; a finding is compared with a baseline; a profile has no bank with a probe
            and a target, or one that makes no design; or a target reuses views of the probe, which confirms
            any instability by algebra (P2), and the profile does not allow that.
    """
    for profile in suite.profiles.values():
        findings = [each for each in _findings(suite) if not each.profiles or profile.name in each.profiles]
        for criterion in findings:
            _require_sound(criterion, profile, suite)
        if findings or suite.analyses:
            _require_design(suite, profile, findings)


def _findings(suite: Suite) -> list[MetricCriterion]:
    criteria = [each for each in suite.criteria if isinstance(each, MetricCriterion)]
    return [each for each in criteria if isinstance(each.metric, FindingMetric)]


def _require_sound(criterion: MetricCriterion, profile: Profile, suite: Suite) -> None:
    name = criterion.metric.name
    where = f"{criterion.place}: criterion {criterion.name!r}"
    if criterion.is_relative:
        raise InvariError(
            f"{where} compares {name} with a baseline's, but it is a finding about one reranker; give it "
            "at_least or at_most"
        )
    if (
        isinstance(criterion.metric, FindingMetric)
        and criterion.metric.is_reused
        and not profile.allow_overlap
    ):
        raise InvariError(
            f"{where} holds the probe against targets that contain views of the probe, which confirm it by "
            f"algebra; use rho_0, or say allow_overlap = true in profile {profile.name!r} "
            f"({suite.place('profile', profile.name)}) and read the level that reuse alone would give"
        )


def _require_design(suite: Suite, profile: Profile, findings: Iterable[MetricCriterion]) -> None:
    if not (profile.bank and profile.probe and profile.target):
        asked = next((f"criterion {each.name!r} ({each.place})" for each in findings), "analyses")
        raise InvariError(
            f"{suite.place('profile', profile.name)}: profile {profile.name!r} has no bank with a probe and "
            f"a target, which {asked} needs, for example bank = ['canonical', 13, 17, 19, 23, 29, 31, 41], "
            "probe = ['canonical', 13], target = [23, 29, 31, 41]"
        )
    from pytest_invari.observation.design import Design

    try:
        Design(profile.bank, profile.probe, profile.target)
    except InvariError as error:
        place = suite.place("profile", profile.name, "bank")
        raise InvariError(f"{place}: profile {profile.name!r}: {error}") from None
