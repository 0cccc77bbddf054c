"""A reranker as the user names it: a name, MODULE:ATTRIBUTE or a service's address, with options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from pytest_invari.errors import InvariError
from pytest_invari.registry.parameters import FIRST_OPTION, OptionValue
from pytest_invari.text import is_secret_name, without_secrets

NO_VARIABLE = "option 'key_env' must be the name of an environment variable that holds the key, not the key"

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://")
# Of an address that is the whole meaning of these; an option of a reranker may be called so.
_KEYS = frozenset({"key", "auth", "bearer", "pass", "pwd"})
_FORMS = "http+SHAPE://HOST, https+SHAPE://HOST or chat://HOST?model=NAME"


def is_address(text: str) -> bool:
    """Whether a reranker is named by an address."""
    return _ADDRESS.match(text) is not None


def is_variable(name: str) -> bool:
    """Whether an environment variable may be called so."""
    return re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None


def read_address(text: str) -> tuple[str, Mapping[str, OptionValue]]:
    """The reranker that an address stands for, and its options.

    ``http+SHAPE`` and ``https+SHAPE`` are the reranker ``http`` with this shape, but for the shape ``chat``,
    which is a reranker of its own; ``chat`` is short for ``http+chat``. Options stand behind "?", as in any
    address.

    Raises:
        InvariError: it is no address of this kind, or gives an option twice.
    """
    scheme, _, rest = text.partition("://")
    place, _, query = rest.partition("?")
    transport, _, shape = ("http+chat" if scheme == "chat" else scheme).partition("+")
    if transport not in ("http", "https") or not shape:
        raise InvariError(f"reranker {text!r} is not of the form {_FORMS}")
    pairs = parse_qsl(query, keep_blank_values=True)
    options: dict[str, OptionValue] = {"url": f"{transport}://{place}"}
    if shape != "chat":
        options["shape"] = shape
    for name, value in pairs:
        if is_secret_name(name) or name.casefold() in _KEYS:
            raise InvariError(
                f"reranker {without_secrets(f'{scheme}://{place}')!r}: a key must not stand in an address, "
                "which ids and reports show; give it by key_env=NAME, an environment variable, or by "
                "key_file=PATH"
            )
        if name == "key_env" and not is_variable(value):
            # Whoever mistakes it for the key's own place has one there.
            raise InvariError(f"reranker {without_secrets(f'{scheme}://{place}')}: {NO_VARIABLE}")
        if name in options:
            raise InvariError(f"reranker {text!r} gives option {name!r} twice")
        options[name] = value
    return ("chat" if shape == "chat" else "http"), options


RERANKER_NAME = re.compile(r"[A-Za-z_][\w.-]*(:[A-Za-z_][\w.]*)?")


_ATTRIBUTE = re.compile(r"[A-Za-z_][\w.]*")


_OPTION = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class RerankerSpec:
    """A reranker as the user names it.

    Option values that come from text stay text: only the reranker's own signature says whether ``2``
    is a number or a name. ``label`` is exactly what the user wrote and stands in the ids.
    """

    name: str
    options: Mapping[str, OptionValue] = field(default_factory=dict, hash=False)
    label: str = ""

    def __post_init__(self) -> None:
        if not self.label:
            shown = ",".join(f"{key}={_option_text(value)}" for key, value in self.options.items())
            object.__setattr__(self, "label", f"{self.name}:{shown}" if shown else self.name)

    @classmethod
    def parse(cls, text: str) -> RerankerSpec:
        """Read ``name`` or ``module:attribute``, each with ``:option=value,…`` behind it where wanted.

        A value may itself name a reranker, with its options, as in ``sgs:base=zero_shot:scorer=x``; a
        value that holds a comma stands in round brackets. ``name:value`` gives a reranker its first option,
        and a service's address stands for the reranker that asks it: see
        :mod:`pytest_invari.registry.spec`.

        Raises:
            InvariError: the text is none of these.
        """
        label = text.strip()
        if is_address(label):
            name, options = read_address(label)
            return cls(name, options, label)
        name, colon, rest = label.partition(":")
        head, more, tail = rest.partition(":")
        first: dict[str, OptionValue] = {}
        if colon and "=" not in head:
            if head and not _ATTRIBUTE.fullmatch(head):
                first, colon, rest = {FIRST_OPTION: head}, more, tail
            else:
                name, colon, rest = f"{name}:{head}", more, tail
        if not RERANKER_NAME.fullmatch(name) or (colon and not rest):
            raise InvariError(
                f"reranker {label!r} is not of the form NAME, NAME:OPTION=VALUE,… or MODULE:ATTRIBUTE"
            )
        options = first
        for part in _split_options(rest):
            key, equals, value = part.partition("=")
            key = key.strip()
            if not equals or not _OPTION.fullmatch(key):
                raise InvariError(f"reranker {label!r}: {part!r} is not of the form OPTION=VALUE")
            if key in options:
                raise InvariError(f"reranker {label!r} gives option {key!r} twice")
            options[key] = _without_brackets(value.strip())
        return cls(name, options, label)


def _split_options(text: str) -> list[str]:
    """Split at the commas outside of round brackets."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]] if text else []


def _without_brackets(value: str) -> str:
    return value[1:-1] if value.startswith("(") and value.endswith(")") else value


def _option_text(value: OptionValue) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"({text})" if "," in text else text
