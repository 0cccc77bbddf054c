"""The settings of views and of counting: each is declared here once, and read wherever one is chosen.

A field's type, its default and its :func:`setting` are what suites, their JSON Schema and reference,
the fixture, the self-check and plans go by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

# At run time, because annotations are read.
from pytest_invari.protocol import LabelBinding
from pytest_invari.settings import IntervalMethod, OnFailure, Ties

_Default = TypeVar("_Default")

Decides = Literal["orders", "requests", "repeats", "values", "figures", "verdicts"]
"""What a setting decides: the orders in which lists are shown; how a request shows one; which are shown
again; which value a metric has for given rankings; what is made of these values; or only a verdict on it."""


@dataclass(frozen=True)
class Setting:
    """A setting as declared.

    ``least`` is the lowest number it takes and ``below`` a limit that it does not reach. ``alone`` says of
    the names of views why one is not enough.
    """

    name: str
    type: Any
    default: Any
    decides: Decides
    meaning: str
    least: int = 0
    below: float = math.inf
    alone: str = ""

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it takes, where these are few."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()


def setting(default: _Default, decides: Decides, meaning: str, **more: Any) -> _Default:
    """A field that is a setting; *more* are further fields of :class:`Setting`."""
    return field(default=default, metadata={"decides": decides, "meaning": meaning, **more})


@cache
def settings_of(declared: type) -> Mapping[str, Setting]:
    """The settings that a dataclass declares, by name."""
    types = get_type_hints(declared)
    return {
        each.name: Setting(each.name, types[each.name], each.default, **each.metadata)
        for each in fields(declared)
        if each.metadata
    }


def values_of(made: object, declared: type) -> dict[str, Any]:
    """What *made*, of the class *declared* or of one below it, has for each setting of this class."""
    return {name: getattr(made, name) for name in settings_of(declared)}


def names_deciding(declared: type, *what: Decides) -> list[str]:
    """The settings of a dataclass that decide one of these things."""
    return [name for name, each in settings_of(declared).items() if each.decides in what]


@dataclass(frozen=True)
class ViewSettings:
    """In which orders each list is shown, and how.

    ``bank`` names the views in their order, as in ``("canonical", "13", "17")``, and their number is then
    ``views``; without it so many are drawn by ``view_seed``. Without ``include_canonical`` the data set's own
    order is not among these. ``probe`` and ``target`` are those of P2.
    """

    views: int = setting(
        0, "orders", "orders in which each list is shown; or give a bank, which names them", least=2
    )
    view_seed: int = setting(0, "orders", "another seed draws other orders")
    include_canonical: bool = setting(False, "orders", "the data set's own order is the first view")
    labels: LabelBinding = setting(
        "item",
        "requests",
        "how the labels that a reranker shows are bound, unless its options say so: to the item, to the "
        "position, or redrawn for each view",
    )
    blind_ids: bool = setting(
        False, "requests", "candidates get fresh opaque ids in each view; controls keep theirs"
    )
    repeats: int = setting(
        0,
        "repeats",
        "of so many queries one view is asked again, alone and in a batch, to tell noise from order",
    )
    bank: tuple[str, ...] = setting(
        (),
        "orders",
        'the views by name, in place of their number: "canonical", the data set\'s own order, and seeds',
        alone="a single order shows no instability",
    )
    probe: tuple[str, ...] = setting(
        (),
        "figures",
        "the views of the bank from which instability is estimated",
        alone="its variance is 0 for every query, so that its correlation with anything is undefined",
    )
    target: tuple[str, ...] = setting(
        (),
        "figures",
        "the views of the bank whose instability the probe is to predict",
        alone="a single order has no instability that a probe could predict",
    )


@dataclass(frozen=True)
class CountingRules:
    """How failures and ties count, and how intervals are made.

    ``on_failure``: under ``strict`` a query with a view without a valid ranking has no value. Under ``drop``
    it is measured on its other views, of which two must be left. Under ``random`` a seeded random order
    stands in, never the input order, which would look like position bias.

    ``ties``: ``broken``: equal scores are in the order that the ranking gave them, which a hash of the ids
    decides, so that a reranker that scores all alike is consistent. ``half``: between equal scores there is
    no preference, half a win for each.

    ``interval``: ``bca``: bias-corrected, accelerated, widened for few queries and guarded against rare
    events. ``percentile``: the plain quantiles, with the seeds of P2.
    """

    on_failure: OnFailure = setting(
        "strict",
        "values",
        "a view without a valid ranking: strict fails the criteria, drop leaves the view out, random "
        "puts a seeded random order in its place",
    )
    ties: Ties = setting(
        "broken", "values", "equal scores: broken by a hash of the ids, or half a win for each"
    )
    interval: IntervalMethod = setting(
        "bca",
        "figures",
        "how 95% intervals are made: bca, guarded against rare events, or the plain percentiles",
    )
