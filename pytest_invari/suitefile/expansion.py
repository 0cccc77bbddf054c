"""From suites, rerankers and settings to plans and to the checks of a run, without measuring anything."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_invari.criteria.criterion import BASELINE, Criterion
from pytest_invari.criteria.metric import MetricCriterion, why_no_bound_of
from pytest_invari.errors import InvariError
from pytest_invari.measure.subject import Subject
from pytest_invari.observation.plan import Plan, dataset_label
from pytest_invari.observation.view_settings import CountingRules, ViewSettings, values_of
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.settings import Settings
from pytest_invari.suitefile.suite import AT_BASELINE, Check, Expansion, LeftOut, Profile, Suite


def expand(suites: Sequence[Suite], rerankers: Sequence[RerankerSpec], settings: Settings) -> Expansion:
    """Cross suites with rerankers, data sets, list lengths and criteria, in this order.

    It is pure, so that every worker and the controller of pytest-xdist come to the same checks.

    Raises:
        InvariError: two suites or subjects share an id; a reported metric, or a criterion that is not left
            out, looks at a longer top than the lists have or has a bound that so many views always keep to; a
            criterion names a baseline that is not set; or nothing is left to check.
    """
    checks: dict[str, Check] = {}
    left_out: list[LeftOut] = []
    if settings.baseline and not any(c.baseline == BASELINE for suite in suites for c in suite.criteria):
        raise InvariError(
            f"--invari-baseline={settings.baseline}: no criterion of the suite compares with its baseline; "
            'one that should says not_worse_than = "baseline" or better_than = "baseline"'
        )
    for suite in _distinct(suites):
        profile = suite.profile(settings.profile)
        plans = plans_of(suite, profile, settings)
        for plan in plans:
            _require_long_enough(plan.k, suite)
        for reranker in rerankers:
            for plan in plans:
                for criterion in suite.criteria:
                    check = Check(suite, profile, criterion, Subject(reranker, plan))
                    reason = _left_out_because(check, suite.criteria)
                    if reason is None:
                        continue
                    if not reason:
                        check = _complete(check, settings)
                        if check.baseline_subject == check.subject:
                            reason = f"{check.shown_reranker} is itself the baseline"
                    if reason:
                        left_out.append(LeftOut(suite.name, criterion.name, check.subject.label, reason))
                    elif check.id in checks:
                        raise InvariError(_same_id(check, checks[check.id]))
                    else:
                        checks[check.id] = check
    if not checks:
        first = left_out[0]
        raise InvariError(f"suite {first.suite!r} has nothing to check: {first.criterion}: {first.reason}")
    return Expansion(tuple(checks.values()), tuple(left_out))


def select(expansion: Expansion, ids: Iterable[str]) -> Expansion:
    """Keep the checks that *ids* name.

    An id without brackets means its criterion for every subject, a suite's name all of its checks.

    What is left out is not told then: the user has said what to run.

    Raises:
        InvariError: an id names none of the checks.
    """
    chosen: set[str] = set()
    for wanted in ids:
        found = [
            check.id
            for check in expansion.items
            if wanted in (check.suite.name, check.id.partition("[")[0], check.id)
        ]
        if not found:
            raise InvariError(_no_such_check(wanted, expansion))
        chosen.update(found)
    return Expansion(
        tuple(check for check in expansion.checks if check.id in chosen),
        unselected=tuple(check for check in expansion.checks if check.id not in chosen),
        changes=tuple(change for change in expansion.changes if change.id in chosen),
    )


def specs_in_ids(ids: Iterable[str], suites: Sequence[Suite], settings: Settings) -> list[str]:
    """The rerankers named in pasted ids, for a run that gives no other.

    The bracket holds reranker, data set and length joined by "-", which either name may contain too, so
    the data sets that the suites use decide where the first ends. An id that does not fit is left to
    :func:`select` to refuse.
    """
    found: dict[str, None] = {}
    for wanted in ids:
        suite = next((suite for suite in suites if suite.name == wanted.partition("::")[0]), None)
        inside = re.search(r"\[(.+)-K\d+\]$", wanted)
        if suite is None or inside is None:
            continue
        datasets = settings.dataset or suite.profile(settings.profile).datasets
        for dataset in sorted(map(dataset_label, datasets), key=len, reverse=True):
            if inside[1].endswith(f"-{dataset}"):
                found[inside[1].removesuffix(f"-{dataset}")] = None
                break
    return list(found)


def _distinct(suites: Sequence[Suite]) -> list[Suite]:
    found: dict[str, Suite] = {}
    for suite in suites:
        other = found.setdefault(suite.name, suite)
        if other.path.resolve() != suite.path.resolve():
            raise InvariError(f"{other.path} and {suite.path} are both named {suite.name!r}; rename one")
    return list(found.values())


def _require_long_enough(k: int, suite: Suite) -> None:
    """Refuse lists shorter than a reported metric's top; a profile's own are known to be long enough."""
    for metric in suite.report:
        if (metric.top or 0) > k:
            raise InvariError(
                f"--invari-k={k}: [suite]: report ({suite.place('suite', 'report')}): metric {metric.name!r} "
                f"looks at the top {metric.top}; give at least {metric.top}"
            )


def _complete(check: Check, settings: Settings) -> Check:
    """The check with its baseline, once its metric is known to fit the lists."""
    criterion, k = check.criterion, check.plan.k
    top = max((metric.top or 0 for metric in criterion.metrics), default=0)
    if top > k:
        where = f"criterion {criterion.name!r} ({criterion.place}) looks at the top {top}"
        if settings.k:
            raise InvariError(f"--invari-k={k}: {where}; give at least {top}")
        raise InvariError(f"{where}, but profile {check.profile.name!r} has lists of {k}")
    if isinstance(criterion, MetricCriterion) and (
        why_not := why_no_bound_of(check.plan, criterion.comparison, criterion.value, criterion.metric)
    ):
        raise InvariError(f"{criterion.place}: criterion {criterion.name!r}: {why_not}")
    if not criterion.is_relative:
        return check
    name = criterion.baseline
    if name == BASELINE:
        name = settings.baseline or check.suite.baseline
    if not name:
        where = f"{criterion.place}: criterion {criterion.name!r}"
        raise InvariError(
            f"{where} needs a baseline; set baseline under [suite] or give --invari-baseline=NAME"
        )
    return replace(check, baseline_subject=Subject(RerankerSpec.parse(name), check.plan))


def _left_out_because(check: Check, criteria: Sequence[Criterion]) -> str | None:
    """Why a check is left out, "" when it is not, None when another criterion of its name takes its place."""
    criterion, profile, views = check.criterion, check.profile.name, check.plan.views
    reason = criterion.left_out_because(profile, views)
    if reason and any(
        other.name == criterion.name and not other.left_out_because(profile, views) for other in criteria
    ):
        return None
    return reason


def _same_id(one: Check, other: Check) -> str:
    mine, theirs = one.subject.reranker.label, other.subject.reranker.label
    if mine != theirs:
        pair = f"rerankers {theirs!r} and {mine!r}"
    else:
        pair = f"data sets {other.plan.dataset!r} and {one.plan.dataset!r}"
    return f"{pair} would both be shown as {one.subject.label!r} in test ids; rename one"


def _no_such_check(wanted: str, expansion: Expansion) -> str:
    known = [check.id for check in expansion.items]
    for each in expansion.left_out:
        if wanted.startswith(f"{each.suite}::{each.criterion}[{each.subject}]"):
            return f"{wanted} is left out of this run: {each.reason}"
    if AT_BASELINE in wanted and not expansion.changes:
        return f"{wanted} compares with a stored baseline: add --invari-compare=FILE"
    close = difflib.get_close_matches(wanted, [*known, *{one.partition("[")[0] for one in known}], n=1)
    guess = f" Did you mean {close[0]}?" if close else ""
    return f"no check is called {wanted}.{guess} --collect-only -q lists the {len(known)} of this run."


def plans_of(suite: Suite, profile: Profile, settings: Settings) -> list[Plan]:
    """The plans of a suite under one of its profiles: each data set at each list length.

    Raises:
        InvariError: the run chooses a number of views, or a seed, for a profile that names its views.
    """
    if profile.bank:
        _require_whole_bank(suite, profile, settings)
    own = {"queries": profile.queries, **values_of(profile, ViewSettings), **values_of(suite, CountingRules)}
    chosen = {"queries": settings.queries, "views": settings.views, "view_seed": settings.seed}
    values = own | {name: value for name, value in chosen.items() if value is not None}
    return [
        Plan(dataset=dataset, k=k, **values)
        for dataset in settings.dataset or profile.datasets
        for k in settings.k or profile.k
    ]


def _require_whole_bank(suite: Suite, profile: Profile, settings: Settings) -> None:
    """Refuse a number of views, or another seed, for a profile that names its views."""
    bank = f"profile {profile.name!r} ({suite.place('profile', profile.name, 'bank')}) names its views"
    if settings.views is not None:
        raise InvariError(
            f"--invari-views={settings.views}: {bank}, and a number does not say which of these "
            f"{len(profile.bank)} are meant; change the bank instead"
        )
    if settings.seed is not None:
        raise InvariError(
            f"--invari-seed={settings.seed}: {bank} by seeds of their own; change the bank instead"
        )
