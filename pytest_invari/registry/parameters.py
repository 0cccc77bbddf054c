"""Options of a reranker: given values checked against the signature that takes them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pytest_invari.errors import InvariError, unknown_name
from pytest_invari.protocol.usercode import shortened

FIRST_OPTION = ""
"""In place of an option's name: the first one, which a reranker needs, as in ``cross-encoder:PATH``."""

OptionValue = bool | int | float | str

_ANY_NAME = inspect.Parameter.VAR_KEYWORD
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def bind_options(
    function: Callable[..., object], skip: int | str, options: Mapping[str, OptionValue], who: str
) -> dict[str, Any]:
    """Return the keyword arguments for *function* that *options* stand for.

    *skip* says which parameters are no options: the first so many, or the one of that name. A value is
    converted to the parameter's annotation (bool, int, float, str, Path, None, Literal and unions of
    them); text given to a parameter without one becomes a bool, a number or stays text.

    Raises:
        InvariError: an option is unknown, missing or of the wrong type; *who* opens the message.
    """
    parameters = list(inspect.signature(function).parameters.values())
    parameters = parameters[skip:] if isinstance(skip, int) else [p for p in parameters if p.name != skip]
    known = {parameter.name: parameter for parameter in parameters if parameter.kind in _NAMED}
    takes_any = any(parameter.kind is _ANY_NAME for parameter in parameters)
    bound: dict[str, Any] = {}
    for name, value in options.items():
        if name == FIRST_OPTION:
            name = _first_needed(known, value, options, who)
        if name in known:
            bound[name] = _converted(function, known[name], value, who)
        elif takes_any:
            bound[name] = _guessed(value)
        else:
            raise unknown_name("option", name, known, who)
    missing = [name for name, p in known.items() if p.default is p.empty and name not in bound]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise InvariError(f"{who}: needs a value for option{plural} {', '.join(map(repr, missing))}")
    return bound


def _first_needed(
    known: Mapping[str, inspect.Parameter], value: OptionValue, options: Mapping[str, OptionValue], who: str
) -> str:
    """The name of the option that a value without a name is meant for."""
    first = next(iter(known.values()), None)
    if first is None or first.default is not first.empty:
        raise InvariError(f"{who}: options are written OPTION=VALUE, and {shortened(value)} is none")
    if first.name in options:
        raise InvariError(f"{who}: option {first.name!r} is given twice")
    return first.name


def _converted(
    function: Callable[..., object], parameter: inspect.Parameter, value: OptionValue, who: str
) -> Any:
    annotation = _annotation(function, parameter)
    try:
        return _convert(value, annotation)
    except ValueError:
        expected = _expectation(annotation)
        raise InvariError(
            f"{who}: option {parameter.name!r} must be {expected}, not {shortened(value)}"
        ) from None


def _annotation(function: Callable[..., object], parameter: inspect.Parameter) -> Any:
    """Return the annotation, evaluated where it is text; one that cannot be evaluated checks nothing.

    Without one, a default of 1.0 says that "3" means 3.0, so that what is computed with it is a float too.
    """
    annotation = parameter.annotation
    if annotation is parameter.empty and isinstance(parameter.default, float):
        return float | bool | str
    if isinstance(annotation, str):
        module = sys.modules.get(getattr(function, "__module__", None) or "")
        try:
            annotation = eval(annotation, dict(vars(module)) if module else {})
        except Exception:
            return Any
    return Any if annotation is parameter.empty else annotation


def _convert(value: OptionValue, annotation: Any) -> Any:
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return _convert_first(value, get_args(annotation))
    if origin is Literal:
        return _choose(value, get_args(annotation))
    if annotation in (None, NoneType):
        return _named(value, {"none": None})
    if annotation is bool:
        return value if isinstance(value, bool) else _named(value, {"true": True, "false": False})
    if annotation is int:
        return _number(value, int)
    if annotation is float:
        return _number(value, float)
    if annotation in (str, Path):
        if not isinstance(value, str):
            raise ValueError
        return annotation(value)
    return _guessed(value)


def _convert_first(value: OptionValue, members: tuple[Any, ...]) -> Any:
    # Text fits everything, so it is tried last.
    for member in sorted(members, key=lambda member: member in (str, Path)):
        try:
            return _convert(value, member)
        except ValueError:
            continue
    raise ValueError


def _choose(value: OptionValue, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if value == choice and type(value) is type(choice):
            return choice
    return _named(value, {str(choice): choice for choice in choices})


def _named(value: OptionValue, names: Mapping[str, Any]) -> Any:
    if not isinstance(value, str) or value not in names:
        raise ValueError
    return names[value]


def _number(value: OptionValue, kind: type[int] | type[float]) -> int | float:
    if isinstance(value, bool) or (kind is int and isinstance(value, float)):
        raise ValueError
    try:
        return kind(value)
    except OverflowError:
        raise ValueError from None


def _guessed(value: OptionValue) -> OptionValue:
    if not isinstance(value, str):
        return value
    for annotation in (bool, int, float):
        try:
            guessed: OptionValue = _convert(value, annotation)
        except ValueError:
            continue
        return guessed
    return value


def _expectation(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return " or ".join(_expectation(member) for member in get_args(annotation))
    if origin is Literal:
        return "one of " + ", ".join(str(choice) for choice in get_args(annotation))
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path"}
    return words.get(annotation, "none")
