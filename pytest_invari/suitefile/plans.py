"""Plans of a suite: what its profile and rules say, and what the run has in their place."""

from __future__ import annotations

from pytest_invari.errors import InvariError
from pytest_invari.observation.plan import Plan
from pytest_invari.observation.view_settings import CountingRules, ViewSettings, values_of
from pytest_invari.settings import Settings
from pytest_invari.suitefile.suite import Profile, Suite


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
