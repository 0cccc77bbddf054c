"""The optional members of a reranker: one way to use each, so that a fault in it is told in one line."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

from pytest_invari.errors import InvariError
from pytest_invari.protocol.usercode import refuse_async, shortened, unawaited, user_code

if TYPE_CHECKING:
    from pytest_invari.protocol.reranker import Reranker


_ABSENT = object()
_FUNCTIONS = ("rank", "rank_many", "check", "prepare", "expected_calls", "fingerprint")


def refuse_async_members(reranker: Reranker, who: str) -> None:
    """Refuse a reranker whose answers would have to be awaited.

    Raises:
        InvariError: a member is async; *who* opens the message.
    """
    for name in _FUNCTIONS:
        # Static, because a property or __getattr__ is the user's code.
        member = inspect.getattr_static(reranker, name, None)
        refuse_async(member, f"{who}: {type(reranker).__qualname__}.{name}")


def check_reranker(reranker: Reranker, who: str = "") -> None:
    """Let a reranker refuse bad settings before a model is loaded; *who* names it to the user.

    Raises:
        InvariError: it refuses, or ``check()`` is broken.
    """
    _call(reranker, "check", who=who)


def prepare_reranker(reranker: Reranker, who: str = "") -> None:
    """Let a reranker load what it needs.

    Raises:
        InvariError: it cannot, or ``prepare()`` is broken.
    """
    _call(reranker, "prepare", who=who)


def calls_of(reranker: Reranker, k: int, default: int = 1) -> int:
    """The calls that a reranker expects to make for a list of *k*; *default* when it does not say.

    Raises:
        InvariError: ``expected_calls()`` is broken.
    """
    calls = _call(reranker, "expected_calls", k, read=_whole)
    return default if calls is _ABSENT else int(calls)


def batch_size_of(reranker: Reranker, default: int) -> int:
    """How many requests a reranker wants at once; *default* when it does not say.

    Raises:
        InvariError: ``batch_requests`` is no whole number.
    """
    what = f"{type(reranker).__qualname__}.batch_requests"
    with user_code(what):
        return max(1, _whole(what, getattr(reranker, "batch_requests", default)))


def fingerprint_of(reranker: Reranker, label: str = "") -> Mapping[str, object]:
    """Everything known that can change a reranker's answers.

    One without a ``fingerprint`` of its own is known by its class, the source file of it, and *label*,
    the text that names it and its options.

    Raises:
        InvariError: ``fingerprint()`` is broken.
    """
    who = f"reranker {label!r}" if label else ""
    found = _call(reranker, "fingerprint", read=_mapping, who=who)
    return {**source_of(type(reranker)), "label": label} if found is _ABSENT else found


def has_early_fingerprint(reranker: Reranker) -> bool:
    """Whether :func:`fingerprint_of` says of a reranker before it is prepared what it says afterwards.

    A fingerprint of its own may rest on what is loaded, unless it says otherwise by ``early_fingerprint``.

    Raises:
        InvariError: that member is broken.
    """
    with user_code(f"{type(reranker).__qualname__}.early_fingerprint"):
        may_change = hasattr(reranker, "prepare") and hasattr(reranker, "fingerprint")
        return not may_change or getattr(reranker, "early_fingerprint", False) is True


def source_of(thing: Any) -> dict[str, object]:
    """The name of a class or function, and a hash of the file that it stands in, where there is one."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    source: dict[str, object] = {"code": f"{named.__module__}.{named.__qualname__}"}
    try:
        file = inspect.getsourcefile(named)
        if file is not None:
            with open(file, "rb") as stream:
                source["sha256"] = hashlib.sha256(stream.read()).hexdigest()
    except (OSError, TypeError):
        pass
    return source


def _call(
    reranker: Reranker,
    name: str,
    *arguments: object,
    read: Callable[[str, Any], Any] = lambda what, value: value,
    who: str = "",
) -> Any:
    """What the member returns, checked by *read*; or ``_ABSENT``."""
    what = f"{type(reranker).__qualname__}.{name}({', '.join(map(str, arguments))})"
    with user_code(what, who):
        member: Any = getattr(reranker, name, _ABSENT)
        if member is _ABSENT:
            return _ABSENT
        answer = member(*arguments)
        if fault := unawaited(answer):
            raise InvariError(f"{what} {fault}")
        return read(what, answer)


def _mapping(what: str, value: object) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    raise InvariError(
        f"{what} returned {shortened(value)}; it must return a mapping of all that can change the answers"
    )


def _whole(what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvariError(f"{what} must be a whole number, not {shortened(value)}")
    return int(value)
