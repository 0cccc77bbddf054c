"""From a table ``[[criterion]]`` of a suite to a criterion of its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_invari.criteria.bounds import why_no_bound, why_no_distance
from pytest_invari.criteria.criterion import Comparison, Criterion, Place
from pytest_invari.criteria.metric import MetricCriterion
from pytest_invari.errors import InvariError, unknown_name
from pytest_invari.suitefile.document import TomlTable
from pytest_invari.suitefile.keys import COMPARISONS, CRITERION_KINDS, EXCLUDES, GOES_WITH, NEEDS, OWN_KIND

if TYPE_CHECKING:
    from pytest_invari.criteria.assertion import CustomCriterion, CustomKinds
    from pytest_invari.metrics import Metric


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
