"""The keys of a suite file: each with its kind of value, its meaning and its default.

A key that is added here is read, described in errors and known to editors at once. Those that are settings of
views and rules are declared as such (:mod:`pytest_invari.observation.view_settings`). Any other that is to
have an effect is also a field, of the same name, of :class:`pytest_invari.suitefile.suite.Suite`, ``Profile``
or :class:`pytest_invari.criteria.criterion.Criterion`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from pytest_invari.criteria.criterion import BASELINE, Comparison
from pytest_invari.criteria.evidence import DecisionRules
from pytest_invari.errors import InvariError
from pytest_invari.metrics import Metric, built_in_metrics, parse_metric
from pytest_invari.metrics.metric import OWN_NAME, Analysis
from pytest_invari.observation.view_settings import (
    CountingRules,
    Setting,
    ViewSettings,
    names_deciding,
    settings_of,
)
from pytest_invari.observation.views import CANONICAL
from pytest_invari.suitefile.values import (
    BoundValue,
    Choice,
    Flag,
    Number,
    Options,
    Schema,
    Several,
    SuiteKey,
    Text,
    ValueKind,
    WholeNumber,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


NAME = Text("[a-z][a-z0-9_]*", "lower-case letters, digits and _, a letter first (it stands in test ids)")


@dataclass(frozen=True, slots=True)
class MetricWord:
    """The name of a metric, with the length of the top where it has one: ``loc``, ``ndcg@5``.

    The schema takes any name that may be one of the user's own: only a run knows which there are.
    """

    def read(self, name: str, value: object) -> Metric:
        """See :class:`pytest_invari.suitefile.values.ValueKind`."""
        return parse_metric(Text().read(name, value))

    def schema(self) -> Schema:
        """See :class:`pytest_invari.suitefile.values.ValueKind`."""
        known = built_in_metrics()
        plain = sorted(metric.family for metric in known.values() if not metric.has_cutoff)
        tops = sorted(metric.family for metric in known.values() if metric.has_cutoff)
        cutoff = "@[1-9][0-9]{0,4}"
        top = {"pattern": f"^({'|'.join(tops)}){cutoff}$", "examples": [f"{each}@5" for each in tops]}
        own = {
            "description": "a metric of your own, which a hook pytest_invari_metrics names",
            "pattern": f"^{OWN_NAME}({cutoff})?$",
            "not": {"pattern": f"^({'|'.join(known)})(@|$)"},
        }
        return {"type": "string", "anyOf": [{"enum": plain}, top, own]}


@dataclass(frozen=True, slots=True)
class RerankerWord:
    """A reranker as on the command line: a name or MODULE:ATTRIBUTE, with or without options."""

    def read(self, name: str, value: object) -> str:
        """See :class:`pytest_invari.suitefile.values.ValueKind`."""
        from pytest_invari.registry.spec import RerankerSpec

        return RerankerSpec.parse(Text().read(name, value)).label

    def schema(self) -> Schema:
        """See :class:`pytest_invari.suitefile.values.ValueKind`; options are left to the reader."""
        return {"type": "string", "pattern": r"^\s*[^\s:,=]+(:|\s*$)"}


@dataclass(frozen=True, slots=True)
class ViewWord:
    """A view of a bank: ``"canonical"``, the data set's own order, or the seed of another."""

    def read(self, name: str, value: object) -> str:
        """See :class:`pytest_invari.suitefile.values.ValueKind`; the view's name in the records."""
        if value == CANONICAL:
            return CANONICAL
        try:
            return str(WholeNumber(0).read(name, value))
        except InvariError:
            raise InvariError(
                f'{name} must hold "{CANONICAL}" and seeds, which are whole numbers such as 13, not '
                f"{shown(value)}"
            ) from None

    def schema(self) -> Schema:
        """See :class:`pytest_invari.suitefile.values.ValueKind`."""
        return {"anyOf": [{"const": CANONICAL}, WholeNumber(0).schema()]}


@dataclass(frozen=True, slots=True)
class ViewWords:
    """Two or more views, all different; *alone* says why one is not enough."""

    alone: str

    def read(self, name: str, value: object) -> tuple[str, ...]:
        """See :class:`pytest_invari.suitefile.values.ValueKind`."""
        names: tuple[str, ...] = Several(ViewWord()).read(name, value)
        if len(names) < 2:
            raise InvariError(f"{name} has one view, {names[0]}: {self.alone}; give at least two")
        return names

    def schema(self) -> Schema:
        """See :class:`pytest_invari.suitefile.values.ValueKind`."""
        return {"type": "array", "items": ViewWord().schema(), "minItems": 2, "uniqueItems": True}


SECTIONS: Mapping[str, tuple[str, str]] = {
    "suite": ("[suite]", "what holds for the whole suite"),
    "profile": ("[profile.NAME]", "how much is measured on which data, under a name of its own"),
    "criterion": ("[[criterion]]", "what is demanded: as a rule a metric and one bound"),
}
"""The parts of a suite file, each with its form in TOML and its meaning."""


def _keys_of(declared: type) -> dict[str, SuiteKey]:
    """The keys that a dataclass declares as settings, by name."""
    return {
        name: SuiteKey(name, _kind_of(each), each.meaning, each.default)
        for name, each in settings_of(declared).items()
    }


def _kind_of(declared: Setting) -> ValueKind:
    if declared.choices:
        return Choice(declared.choices)
    if declared.type is bool:
        return Flag()
    if declared.type is int:
        return WholeNumber(declared.least)
    if declared.type is float:
        return Number(declared.least, declared.below)
    return ViewWords(declared.alone)


SUITE = (
    SuiteKey("name", NAME, "what the suite is called in test ids"),
    SuiteKey("title", Text(), "what the suite is about, for people", ""),
    SuiteKey("baseline", RerankerWord(), 'the reranker that criteria call "baseline"', ""),
    SuiteKey(
        "profile", NAME, "the profile that is used unless another is asked for; the first without it", ""
    ),
    *_keys_of(DecisionRules).values(),
    *_keys_of(CountingRules).values(),
    SuiteKey(
        "analyses",
        Several(Choice(get_args(Analysis))),
        "analyses of the profile's bank of views that are reported whole",
        (),
    ),
    SuiteKey(
        "report", Several(MetricWord()), "metrics that are shown besides the usual and the criteria's", ()
    ),
)

_VIEWS = _keys_of(ViewSettings)

PROFILE = (
    SuiteKey(
        "datasets", Several(Text()), "names of data sets, or paths of task files, also beside the suite"
    ),
    SuiteKey("k", Several(WholeNumber(2)), "candidates in each list; each length is measured by itself"),
    replace(_VIEWS.pop("views"), default=None),
    SuiteKey("queries", WholeNumber(), "the first so many queries; all of the data set's without it", None),
    SuiteKey("title", Text(), "what the profile is for, for people", ""),
    *_VIEWS.values(),
    SuiteKey(
        "allow_overlap",
        Flag(),
        "criteria may be on targets that reuse views of the probe: rho_1, rho_2",
        False,
    ),
)

PROFILE_NEEDS: Mapping[str, tuple[str, ...]] = {
    "probe": ("bank", "target"),
    "target": ("bank", "probe"),
    "allow_overlap": ("probe",),
}
"""Keys of a profile that say nothing without others."""

PROFILE_EXCLUDES: Mapping[str, str] = {
    name: "bank" for name in names_deciding(ViewSettings, "orders") if name != "bank"
}
"""Keys of a profile that another, which names its views, leaves nothing to say."""

_BOUND = BoundValue("k", "the list length")
_BASELINE = f'; "{BASELINE}" is that of [suite]'

_HEAD = (
    SuiteKey("name", NAME, "what the criterion is called in test ids"),
    SuiteKey(
        "kind",
        Text(r"[A-Za-z_][\w.-]*", "the name of a kind"),
        "what kind of demand it is: metric (a metric and one bound), witness (no ranking depends on the "
        "order), or one that a hook pytest_invari_criteria names",
        "metric",
    ),
)

_METRIC = (
    SuiteKey("metric", MetricWord(), "what is measured; @ is followed by the length of the top"),
    SuiteKey("at_least", _BOUND, 'the metric must be at least this; "k" is the list length', None),
    SuiteKey("at_most", _BOUND, 'the metric must be at most this; "k" is the list length', None),
    SuiteKey(
        "not_worse_than", RerankerWord(), f"the reranker to compare with, less a margin{_BASELINE}", None
    ),
    SuiteKey("margin", Number(0), "how much worse than that reranker is still good enough", None),
    SuiteKey("better_than", RerankerWord(), f"the reranker to surpass{_BASELINE}", None),
    SuiteKey("by", Number(0), "how much better than that reranker it must at least be", 0.0),
    SuiteKey(
        "regression_margin",
        Number(0),
        "how much worse than a stored baseline is still no regression, for --invari-compare",
        0.0,
    ),
)

_WITNESS = (
    SuiteKey(
        "max_calls",
        WholeNumber(0),
        "the most further rankings that make a witness smaller; 0 shows two of the measured ones",
        50,
    ),
)

_OWN = (
    SuiteKey("options", Options(), "what the function of the kind is called with, by its parameters", {}),
)

_TAIL = (
    SuiteKey("why", Text(), "where the bound comes from; shown when the criterion fails", ""),
    SuiteKey("profiles", Several(NAME), "the only profiles that it belongs to; all without it", ()),
    SuiteKey("needs_views", WholeNumber(0), "left out of a run with fewer views than this", 0),
    SuiteKey("only_at_views", WholeNumber(0), "left out of a run with another number of views than this", 0),
)

CRITERION = (*_HEAD, *_METRIC, *_WITNESS, *_OWN, *_TAIL)
"""The keys of criteria of all kinds."""

CRITERION_KINDS: Mapping[str, tuple[SuiteKey, ...]] = {
    "metric": (*_HEAD, *_METRIC, *_TAIL),
    "witness": (*_HEAD, *_WITNESS, *_TAIL),
}
"""The kinds of criteria that need no hook, and their keys."""

KIND_TITLES = {
    "metric": "a metric and one bound (the kind of a criterion that names none)",
    "witness": "no ranking may depend on the order; two orders show it where one does",
}
"""The same, each in a line."""

OWN_KIND = (*_HEAD, *_OWN, *_TAIL)
"""The keys of a kind that a hook names."""

COMPARISONS: tuple[Comparison, ...] = get_args(Comparison)
"""The keys of a criterion of which it has exactly one."""

GOES_WITH = {"margin": "not_worse_than", "by": "better_than"}
"""Keys of a criterion that belong to one comparison."""

DISTANCES = (*GOES_WITH, "regression_margin")
"""Keys of a criterion whose value is a difference between two values of its metric."""

NEEDS = {"not_worse_than": "margin"}
"""Comparisons that are not complete without another key."""

EXCLUDES = {"only_at_views": "needs_views"}
"""Keys of a criterion that leave another nothing to say."""
