"""A service's address as the name of a reranker: ``http+tei://localhost:8080``, ``chat://host:8000?model=m``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

from pytest_invari.errors import InvariError
from pytest_invari.registry.parameters import OptionValue
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
