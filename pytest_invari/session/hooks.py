"""What conftest hooks name: the mappings that all implementations of a hook return, joined into one.

PYTEST_DONT_REWRITE: there are no asserts to rewrite.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_invari.errors import InvariError, unknown_name

if TYPE_CHECKING:
    from pytest_invari.criteria.assertion import AssertionFunction
    from pytest_invari.metrics import Metric


OURS = "pytest_invari_"
"""How the names of our hooks begin."""


def named_by_hook(config: pytest.Config, hook: str, things: str) -> dict[str, object]:
    """The names that implementations of *hook* give to *things* ("rerankers"), with what they stand for.

    Raises:
        InvariError: a hook raises, gives nothing or something that is not a mapping, or a name that another
            has given.
    """
    named: dict[str, object] = {}
    caller = getattr(config.hook, hook)
    if not caller.get_hookimpls():
        return named
    # Only here: every run comes by, and few name anything.
    from pytest_invari.protocol.usercode import unawaited, user_code

    with user_code(f"hook {hook}"):
        found = caller(config=config)
    _require_answers(hook, caller.get_hookimpls(), len(found), things)
    for given in found:
        if fault := unawaited(given):
            raise InvariError(f"hook {hook} {fault}")
        if not isinstance(given, Mapping):
            raise InvariError(
                f"hook {hook} returned {type(given).__name__}; it must return a mapping of names to {things}"
            )
        for name, value in given.items():
            if name in named:
                raise InvariError(f"hook {hook}: {name!r} is given by two implementations")
            named[name] = value
    return named


def _require_answers(hook: str, implementations: Sequence[Any], answers: int, things: str) -> None:
    """Refuse a forgotten ``return``: pytest passes over None, and the names would merely be unknown."""
    if any(each.wrapper or each.hookwrapper for each in implementations):
        # What it makes of the answers is its own affair.
        return
    if answers < len(implementations):
        places = " or ".join(each.plugin_name for each in implementations)
        raise InvariError(
            f"hook {hook} in {places} returned nothing; it must return a mapping of names to {things}, "
            "or {} where there are none"
        )


def named_rerankers(config: pytest.Config) -> dict[str, object]:
    """The rerankers that conftest hooks name.

    Raises:
        InvariError: as :func:`named_by_hook`, or a hook is async or its name misspelt.
    """
    _refuse_misspelt_hooks(config)
    _refuse_async_hooks(config)
    return named_by_hook(config, "pytest_invari_rerankers", "rerankers")


def _refuse_misspelt_hooks(config: pytest.Config) -> None:
    """Refuse implementations of hooks that are none of ours and have a name like ours.

    pytest lets them be where they are marked ``optionalhook=True``, as ours should be.

    Raises:
        InvariError: where it is, and the names that are close to it.
    """
    callers = vars(config.pluginmanager.hook)
    known = [name for name, caller in callers.items() if name.startswith(OURS) and caller.has_spec()]
    for name, caller in callers.items():
        if name.startswith(OURS) and not caller.has_spec():
            for implementation in caller.get_hookimpls():
                raise unknown_name("hook", name, known, implementation.plugin_name)


def _refuse_async_hooks(config: pytest.Config) -> None:
    """Refuse implementations of our hooks that pytest would call and nobody await.

    Raises:
        InvariError: which hook, and where it is.
    """
    from pytest_invari.protocol.usercode import refuse_async

    for name, caller in vars(config.pluginmanager.hook).items():
        if name.startswith(OURS):
            for implementation in caller.get_hookimpls():
                refuse_async(implementation.function, f"hook {name} in {implementation.plugin_name}")


def use_own_metrics(config: pytest.Config) -> None:
    """Let the metrics that conftest hooks name be known in this run, and in no other.

    Where there are any, their names are held against the built-in ones, which load NumPy.

    Raises:
        pytest.UsageError: as :func:`named_by_hook`, or as :func:`pytest_invari.metrics.custom.own_metrics`.
    """
    own: dict[str, Metric] = {}
    try:
        named = named_by_hook(config, "pytest_invari_metrics", "metrics")
        if named:
            from pytest_invari.metrics.custom import own_metrics

            own = own_metrics(named)
    except InvariError as error:
        from pytest_invari.text import harmless

        raise pytest.UsageError(harmless(str(error))) from None
    # Also where there are none: those of a run that this one runs within are not meant here.
    if own or "pytest_invari.metrics" in sys.modules:
        from pytest_invari.metrics import add_metrics

        config.add_cleanup(add_metrics(own))


def named_kinds(config: pytest.Config) -> dict[str, AssertionFunction]:
    """The kinds of criteria that conftest hooks name.

    Raises:
        InvariError: as :func:`named_by_hook`, or a kind is not sound.
    """
    named = named_by_hook(config, "pytest_invari_criteria", "functions")
    if not named:
        return {}
    from pytest_invari.criteria.assertion import checked_kinds
    from pytest_invari.suitefile.keys import CRITERION_KINDS

    return checked_kinds(named, CRITERION_KINDS)
