"""Suites: the TOML files that say what is measured on which data and what is demanded of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_invari.criteria.criterion import Comparison, Criterion, Place
from pytest_invari.criteria.metric import MetricCriterion, why_no_bound, why_no_distance
from pytest_invari.errors import InvariError, unknown_name
from pytest_invari.suitefile.document import Document, TomlTable, header
from pytest_invari.suitefile.keys import (
    COMPARISONS,
    CRITERION,
    CRITERION_KINDS,
    EXCLUDES,
    GOES_WITH,
    NAME,
    NEEDS,
    OWN_KIND,
    PROFILE,
    PROFILE_EXCLUDES,
    PROFILE_NEEDS,
    SECTIONS,
    SUITE,
)
from pytest_invari.suitefile.suite import Profile, Suite
from pytest_invari.suitefile.values import shown

if TYPE_CHECKING:
    from pytest_invari.criteria.assertion import CustomCriterion, CustomKinds
    from pytest_invari.metrics import Metric


_NO_KINDS: CustomKinds = {}


def packaged_suites() -> dict[str, Path]:
    """The suites that come with the package: name to file, sorted."""
    folder = Path(str(files("pytest_invari") / "suites"))
    return {path.name.removesuffix(".toml"): path for path in sorted(folder.glob("*.toml"))}


def find_suite(name: str, own_kinds: CustomKinds = _NO_KINDS) -> Suite:
    """Read the packaged suite called *name*, or the suite in the file *name*, as :func:`read_suite` does.

    Raises:
        InvariError: there is no such suite or file, or it has a mistake in it.
    """
    packaged = packaged_suites()
    if name in packaged:
        return read_suite(packaged[name], own_kinds)
    if name.endswith(".toml") or "/" in name or "\\" in name:
        path = Path(os.path.expanduser(name))
        if not os.path.isfile(path):
            what = "that is a folder" if os.path.isdir(path) else "there is no such file"
            raise InvariError(f"suite {name!r}: {what}")
        return read_suite(path, own_kinds)
    raise unknown_name("suite", name, packaged)


def read_suite(path: Path, own_kinds: CustomKinds = _NO_KINDS) -> Suite:
    """Read and check a suite file; *own_kinds* are those of criteria that hooks name.

    Raises:
        InvariError: file, line and key of the mistake, what was found and what was meant.
    """
    document = Document(path)
    given = document.table((), "the suite file", SECTIONS)
    for section, (form, _) in SECTIONS.items():
        if section not in given:
            raise InvariError(f"{path}:1: the suite file has no {form}")
    head = TomlTable(document, ("suite",), "[suite]", SUITE)
    values = head.read()
    profiles = _read_profiles(document)
    default = values.pop("profile") or next(iter(profiles))
    if default not in profiles:
        raise head.error("profile", str(unknown_name("profile", default, profiles)))
    suite = Suite(
        path=path,
        sha256=hashlib.sha256(document.text.encode()).hexdigest(),
        profiles=profiles,
        default_profile=default,
        criteria=_read_criteria(document, profiles, own_kinds),
        document=document,
        **values,
    )
    _require_reportable(suite)
    if suite.analyses or any(metric.kind == "analysis" for each in suite.criteria for metric in each.metrics):
        from pytest_invari.suitefile.analysis_rules import require_analysable

        require_analysable(suite)
    return suite


def _read_profiles(document: Document) -> dict[str, Profile]:
    names = document.data["profile"]
    if not isinstance(names, dict) or not names:
        raise document.error(("profile",), "profiles are written [profile.NAME]")
    profiles = {}
    for name, content in names.items():
        if not isinstance(content, dict):
            raise document.error(("profile", name), "profiles are written [profile.NAME]")
        table = TomlTable(document, ("profile", name), header("profile", name), PROFILE)
        values = table.read()
        _require_views(table, values)
        values["views"] = values["views"] or len(values["bank"])
        values["datasets"] = tuple(_beside(document.path, dataset) for dataset in values["datasets"])
        profiles[name] = Profile(name=table.convert(NAME, "the name", name), **values)
    return profiles


def _require_views(table: TomlTable, values: Mapping[str, Any]) -> None:
    """Refuse a profile that does not say in which orders lists are shown, or says it twice."""
    if "views" not in table and "bank" not in table:
        (views,) = (key for key in table.keys if key.name == "views")
        raise table.error("views", f"the key 'views' is missing: {views.description}")
    for key, other in PROFILE_EXCLUDES.items():
        if key in table and other in table:
            raise table.error(
                key, f"{key} and {other} are both given; the {other} says it all, so leave {key} out"
            )
    for key, others in PROFILE_NEEDS.items():
        for other in others:
            if key in table and other not in table:
                raise table.error(key, f"{key} needs {other} beside it")
    for role in ("probe", "target"):
        for view in values[role]:
            if view not in values["bank"]:
                known = ", ".join(values["bank"])
                raise table.error(role, f"{role} names {view}, which is not in the bank: {known}")
    shared = [view for view in values["target"] if view in values["probe"]]
    if shared:
        raise table.error(
            "target",
            f"target and probe share {', '.join(shared)}: they correlate by what they share, whatever is "
            "ranked; give the target views of its own",
        )


def _read_criteria(
    document: Document, profiles: Mapping[str, Profile], own_kinds: CustomKinds
) -> tuple[Criterion, ...]:
    tables = document.data["criterion"]
    if not isinstance(tables, list) or not tables:
        raise document.error(("criterion",), "criteria are written [[criterion]], with two brackets")
    criteria: list[Criterion] = []
    for index, values in enumerate(tables):
        name = values.get("name") if isinstance(values, dict) else None
        what = f"criterion {shown(name) if isinstance(name, str) else index + 1}"
        table = TomlTable(document, ("criterion", index), what, CRITERION)
        criterion = read_criterion(table, own_kinds)
        _require_fit(criterion, table, profiles)
        for other in criteria:
            if other.name == criterion.name and _share_a_profile(other, criterion):
                message = f"the name is there already, at line {other.place.line}; criteria of one profile "
                raise table.error("name", message + "need names of their own")
        criteria.append(criterion)
    return tuple(criteria)


def _require_fit(criterion: Criterion, table: TomlTable, profiles: Mapping[str, Profile]) -> None:
    """Refuse a criterion of an unknown profile, or of one whose lists are shorter than its metric's top."""
    for name in criterion.profiles:
        if name not in profiles:
            raise table.error("profiles", str(unknown_name("profile", name, profiles)))
    for profile in profiles.values():
        if criterion.left_out_because(profile.name, profile.views):
            continue
        shortest = min(profile.k)
        for metric in criterion.metrics:
            if (metric.top or 0) > shortest:
                what = f"metric {metric.name!r} looks at the top {metric.top}"
                raise table.error("metric", f"{what}, but profile {profile.name!r} has lists of {shortest}")


def _require_reportable(suite: Suite) -> None:
    """Refuse a reported metric whose top is longer than the lists of a profile."""
    for profile in suite.profiles.values():
        shortest = min(profile.k)
        for metric in suite.report:
            if (metric.top or 0) > shortest:
                raise InvariError(
                    f"{suite.place('suite', 'report')}: [suite]: report: metric {metric.name!r} looks at the "
                    f"top {metric.top}, but profile {profile.name!r} has lists of {shortest}"
                )


def _beside(suite: Path, dataset: str) -> str:
    """A path is meant relative to the suite's file; a name that is no file there stays a name."""
    path = os.path.join(suite.parent, os.path.expanduser(dataset))
    is_path = "/" in dataset or os.path.splitext(dataset)[1]
    return path if is_path and os.path.exists(path) else dataset


def _share_a_profile(one: Criterion, other: Criterion) -> bool:
    return not one.profiles or not other.profiles or bool(set(one.profiles) & set(other.profiles))


def read_criterion(table: TomlTable, own_kinds: CustomKinds) -> Criterion:
    """The criterion in a *table* of the keys of all kinds; *own_kinds* are those that hooks name.

    Raises:
        InvariError: file, line and key: the kind is unknown, a key is of another kind, or a value is wrong.
    """
    kind = table.value("kind")
    if kind not in CRITERION_KINDS and kind not in own_kinds:
        raise table.error("kind", str(unknown_name("kind", kind, [*CRITERION_KINDS, *own_kinds])))
    keys = CRITERION_KINDS.get(kind, OWN_KIND)
    for key in table.keys:
        if key.name in table and key not in keys:
            others = " and ".join(repr(other) for other, theirs in CRITERION_KINDS.items() if key in theirs)
            whose = f"kind {others}" if others else "a kind of your own"
            raise table.error(key.name, f"{key.name} goes with {whose}, not with {kind!r}")
    for one, other in EXCLUDES.items():
        if one in table and other in table:
            raise table.error(one, f"{one} leaves nothing for {other} to say; give one of them")
    table = TomlTable(table.document, table.path, table.what, keys)
    values = {**table.read(), "place": Place(table.document.path, table.line)}
    del values["kind"]
    if kind == "metric":
        return _read_metric(table, values)
    if kind == "witness":
        from pytest_invari.criteria.witness import WitnessCriterion

        return WitnessCriterion(**values)
    return _read_custom(table, values, kind, own_kinds)


def _read_custom(
    table: TomlTable, values: dict[str, Any], kind: str, own_kinds: CustomKinds
) -> CustomCriterion:
    from pytest_invari.criteria.assertion import CustomCriterion, bound_options

    check = own_kinds[kind]
    try:
        options = bound_options(check, values.pop("options"))
    except InvariError as error:
        raise table.error("options", f"kind {kind!r}: {error}") from None
    return CustomCriterion(named=kind, check=check, options=options, **values)


def _read_metric(table: TomlTable, values: dict[str, Any]) -> MetricCriterion:
    comparison = _read_comparison(table)
    bound = {key: values.pop(key) for key in (*COMPARISONS, *GOES_WITH)}
    metric: Metric = values["metric"]
    value: Any
    if comparison == "not_worse_than" or comparison == "better_than":
        key = "margin" if comparison == "not_worse_than" else "by"
        baseline, value = bound[comparison], bound[key]
        _require(table, key, why_no_distance(key, value, metric))
    else:
        baseline, value = "", bound[comparison]
        _require(table, comparison, why_no_bound(comparison, value, metric))
    if "regression_margin" in table:
        allowed = values["regression_margin"]
        why_not = why_no_distance("regression_margin", allowed, metric)
        _require(table, "regression_margin", why_not)
    return MetricCriterion(comparison=comparison, value=value, baseline=baseline, **values)


def _read_comparison(table: TomlTable) -> Comparison:
    """The one comparison of a criterion, with the keys that go with it and no others."""
    given = [key for key in COMPARISONS if key in table]
    if len(given) > 1:
        raise table.error(given[1], f"{' and '.join(given)} are both given; a criterion has one bound")
    if not given:
        raise table.error("", f"it has no bound; give one of {', '.join(COMPARISONS)}")
    for key, comparison in GOES_WITH.items():
        if key in table and comparison not in table:
            raise table.error(key, f"{key} goes with {comparison}, not with {given[0]}")
    for comparison, key in NEEDS.items():
        if comparison in table and key not in table:
            raise table.error(comparison, f"{comparison} needs {key} beside it")
    return given[0]


def _require(table: TomlTable, key: str, why_not: str) -> None:
    if why_not:
        raise table.error(key, why_not)
