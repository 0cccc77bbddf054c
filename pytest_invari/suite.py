"""Suites: the TOML files that say what is measured on which data and what is demanded of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

from pytest_invari.criteria import BASELINE, Criterion, Place
from pytest_invari.errors import InvariError, unknown_name
from pytest_invari.metrics import Metric, parse_metric
from pytest_invari.plan import OnFailure, Ties
from pytest_invari.tomltext import Document, Table

__all__ = ["SUFFIX", "Profile", "Suite", "find_suite", "packaged_suites", "read_suite"]

SUFFIX = ".invari.toml"
"""The end of a file name that marks a user's own suite on the command line."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_COMPARISONS = ("at_least", "at_most", "not_worse_than", "better_than")
_SUITE_KEYS = ("name", "title", "baseline", "profile", "min_queries", "max_undefined", "on_failure", "ties")
_PROFILE_KEYS = ("title", "datasets", "k", "views", "queries", "view_seed", "include_canonical")
_CRITERION_KEYS = (
    *("name", "metric", *_COMPARISONS, "margin", "by", "why"),
    *("profiles", "needs_views", "only_at_views"),
)


@dataclass(frozen=True, slots=True)
class Profile:
    """How much a suite measures. ``queries`` is None for all of the data set's."""

    name: str
    datasets: tuple[str, ...]
    k: tuple[int, ...]
    views: int
    queries: int | None
    title: str = ""
    view_seed: int = 0
    include_canonical: bool = False


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite as read.

    ``default_profile`` is used unless another is asked for. ``baseline`` is the reranker that criteria
    call "baseline" (empty: none). ``min_queries`` and ``max_undefined`` are what a verdict needs.
    ``on_failure`` and ``ties`` are those of :class:`pytest_invari.plan.Plan`; under ``strict`` a single
    failed ranking fails every criterion of its subject.
    """

    name: str
    title: str
    path: Path
    sha256: str
    profiles: Mapping[str, Profile]
    default_profile: str
    criteria: tuple[Criterion, ...]
    baseline: str = ""
    min_queries: int = 30
    max_undefined: float = 0.05
    on_failure: OnFailure = "strict"
    ties: Ties = "broken"

    def profile(self, name: str = "") -> Profile:
        """The profile called *name*, or the default one.

        Raises:
            InvariError: there is none of that name.
        """
        chosen = name or self.default_profile
        if chosen not in self.profiles:
            raise unknown_name("profile", chosen, self.profiles, f"suite {self.name!r}")
        return self.profiles[chosen]


def packaged_suites() -> dict[str, Path]:
    """The suites that come with the package: name to file, sorted."""
    folder = Path(str(files("pytest_invari") / "suites"))
    return {path.name.removesuffix(".toml"): path for path in sorted(folder.glob("*.toml"))}


def find_suite(name: str) -> Suite:
    """Read the packaged suite called *name*, or the suite in the file *name*.

    Raises:
        InvariError: there is no such suite or file, or it has a mistake in it.
    """
    packaged = packaged_suites()
    if name in packaged:
        return read_suite(packaged[name])
    if name.endswith(".toml") or "/" in name or "\\" in name:
        path = Path(name).expanduser()
        if not path.is_file():
            raise InvariError(f"suite {name!r}: there is no such file")
        return read_suite(path)
    raise unknown_name("suite", name, packaged)


def read_suite(path: Path) -> Suite:
    """Read and check a suite file.

    Raises:
        InvariError: file, line and key of the mistake, what was found and what was meant.
    """
    document = Document(path)
    top = document.table((), "the suite file", ("suite", "profile", "criterion"))
    for key, form in (("suite", "[suite]"), ("profile", "[profile.NAME]"), ("criterion", "[[criterion]]")):
        if key not in top:
            raise InvariError(f"{path}:1: the suite file has no {form}")
    head = document.table(("suite",), "[suite]", _SUITE_KEYS)
    profiles = _read_profiles(document)
    default = head.choice("profile", profiles, next(iter(profiles)))
    min_queries = head.integer("min_queries", 30)
    max_undefined = head.number("max_undefined", 0.05)
    if not 0 <= max_undefined < 1:
        raise head.error(
            "max_undefined", f"max_undefined is a share, from 0 to below 1, not {max_undefined:g}"
        )
    on_failure = head.choice("on_failure", get_args(OnFailure), "strict")
    ties = head.choice("ties", get_args(Ties), "broken")
    return Suite(
        name=_read_name(head, "name"),
        title=head.text("title", ""),
        path=path,
        sha256=hashlib.sha256(document.text.encode()).hexdigest(),
        profiles=profiles,
        default_profile=default,
        criteria=_read_criteria(document, profiles),
        baseline=_read_reranker(head, "baseline") if "baseline" in head else "",
        min_queries=min_queries,
        max_undefined=max_undefined,
        on_failure=on_failure,  # type: ignore[arg-type]  # one of the choices
        ties=ties,  # type: ignore[arg-type]  # one of the choices
    )


def _read_profiles(document: Document) -> dict[str, Profile]:
    names = document.data["profile"]
    if not isinstance(names, dict) or not names:
        raise document.error(("profile",), "profiles are written [profile.NAME]")
    profiles = {}
    for name in names:
        table = document.table(("profile", name), f"[profile.{name}]", _PROFILE_KEYS)
        if not _NAME.fullmatch(name):
            raise InvariError(f"{table.where()}: {_bad_name('profile', name)}")
        profiles[name] = Profile(
            name=name,
            datasets=tuple(_beside(document.path, dataset) for dataset in table.texts("datasets")),
            k=table.integers("k"),
            views=table.integer("views", least=2),
            queries=table.integer("queries") if "queries" in table else None,
            title=table.text("title", ""),
            view_seed=table.integer("view_seed", 0, least=0),
            include_canonical=table.flag("include_canonical", False),
        )
    return profiles


def _read_criteria(document: Document, profiles: Mapping[str, Profile]) -> tuple[Criterion, ...]:
    tables = document.data["criterion"]
    if not isinstance(tables, list) or not tables:
        raise document.error(("criterion",), "criteria are written [[criterion]], with two brackets")
    criteria: list[Criterion] = []
    for index, values in enumerate(tables):
        name = values.get("name") if isinstance(values, dict) else None
        what = f"criterion {name!r}" if isinstance(name, str) else f"criterion {index + 1}"
        criterion = _read_criterion(document.table(("criterion", index), what, _CRITERION_KEYS), profiles)
        for other in criteria:
            if other.name == criterion.name and _share_a_profile(other, criterion):
                message = f"{what} is there already, at line {other.place.line}; criteria of one profile "
                raise document.error(("criterion", index, "name"), message + "need names of their own")
        criteria.append(criterion)
    return tuple(criteria)


def _read_criterion(table: Table, profiles: Mapping[str, Profile]) -> Criterion:
    name = _read_name(table, "name")
    metric = parse_metric(
        table.text("metric"),
        table.where("metric"),
    )
    given = [key for key in _COMPARISONS if key in table]
    if len(given) > 1:
        raise table.error(given[1], f"{' and '.join(given)} are both given; a criterion has one bound")
    if not given:
        raise InvariError(f"{table.where()} has no bound; give one of {', '.join(_COMPARISONS)}")
    comparison = given[0]
    for key, owner in (("margin", "not_worse_than"), ("by", "better_than")):
        if key in table and comparison != owner:
            raise table.error(key, f"{key} goes with {owner}, not with {comparison}")
    for profile in (named := table.texts("profiles", []) if "profiles" in table else ()):
        if profile not in profiles:
            raise unknown_name(
                "profile",
                profile,
                profiles,
                table.where("profiles"),
            )
    if "needs_views" in table and "only_at_views" in table:
        raise table.error(
            "only_at_views", "only_at_views leaves nothing for needs_views to say; give one of them"
        )
    return Criterion(
        name=name,
        metric=metric,
        comparison=comparison,  # type: ignore[arg-type]  # one of the four
        value=_read_value(table, comparison, metric),
        place=Place(table.document.path, table.line),
        baseline=_read_reranker(table, comparison) if comparison in ("not_worse_than", "better_than") else "",
        why=table.text("why", ""),
        profiles=named,
        needs_views=table.integer("needs_views", 0, least=0),
        only_at_views=table.integer("only_at_views", 0, least=0),
    )


def _read_value(table: Table, comparison: str, metric: Metric) -> float | Literal["k"]:
    if comparison == "not_worse_than":
        return _read_distance(table, "margin", None, metric)
    if comparison == "better_than":
        return _read_distance(table, "by", 0.0, metric)
    if table[comparison] == "k":
        return "k"
    if isinstance(table[comparison], str):
        raise table.error(
            comparison, f'{comparison} must be a number or "k" (the list length), not {table[comparison]!r}'
        )
    value = table.number(comparison)
    reaches = f"{metric.name} lies between {metric.low:g} and {metric.high:g}"
    if not metric.low <= value <= metric.high:
        raise table.error(comparison, f"{comparison} = {value:g} cannot be meant: {reaches}")
    if value == (metric.low if comparison == "at_least" else metric.high):
        raise table.error(comparison, f"{comparison} = {value:g} demands nothing: {reaches}")
    return value


def _read_distance(table: Table, key: str, default: float | None, metric: Metric) -> float:
    value = table.number(key, default)
    if value < 0:
        raise table.error(
            key, f"{key} = {value:g} is negative; it is a distance in the metric's better direction"
        )
    if value >= metric.high - metric.low:
        reaches = f"{metric.name} lies between {metric.low:g} and {metric.high:g}"
        raise table.error(key, f"{key} = {value:g} cannot be meant: {reaches}")
    return value


def _read_name(table: Table, key: str) -> str:
    name = table.text(key)
    if not _NAME.fullmatch(name):
        raise table.error(key, _bad_name(key, name))
    return name


def _bad_name(key: str, name: str) -> str:
    return f"{key} {name!r} stands in test ids; use lower-case letters, digits and _, a letter first"


def _read_reranker(table: Table, key: str) -> str:
    from pytest_invari.registry import RerankerSpec

    text = table.text(key)
    if text == BASELINE and table.key != ("suite",):
        return text
    try:
        return RerankerSpec.parse(text).label
    except InvariError as error:
        raise table.error(key, str(error)) from None


def _beside(suite: Path, dataset: str) -> str:
    """A path is meant relative to the suite's file; a name that is no file there stays a name."""
    path = suite.parent / Path(dataset).expanduser()
    is_path = "/" in dataset or path.suffix in (".parquet", ".jsonl", ".zip")
    return str(path) if is_path and path.exists() else dataset


def _share_a_profile(one: Criterion, other: Criterion) -> bool:
    return not one.profiles or not other.profiles or bool(set(one.profiles) & set(other.profiles))
