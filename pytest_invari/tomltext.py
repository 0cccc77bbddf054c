"""Reading TOML so that every mistake can be reported with its file, line and key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pytest_invari.errors import InvariError, unknown_name

__all__ = ["Document", "Key", "Table"]

_T = TypeVar("_T")
Key = tuple[str | int, ...]

_AT_LINE = re.compile(r"\s*\(at line (\d+), column \d+\)")


class Document:
    """A parsed TOML file that knows the line of each of its keys.

    Raises:
        InvariError: the file cannot be read or is not TOML.
    """

    def __init__(self, path: Path, text: str | None = None) -> None:
        self.path = path
        self.text = _read(path) if text is None else text
        try:
            self.data: dict[str, Any] = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            place = _AT_LINE.search(str(error))
            line = int(place[1]) if place else self.text.count("\n") + 1
            raise InvariError(f"{path}:{line}: not valid TOML: {_AT_LINE.sub('', str(error))}") from None
        self._lines = _locate(self.text)

    def line(self, key: Key) -> int:
        """The 1-based line of *key*, or of the nearest table around it."""
        while key and key not in self._lines:
            key = key[:-1]
        return self._lines.get(key, 1)

    def error(self, key: Key, message: str) -> InvariError:
        """An error that begins with the file and the line of *key*."""
        return InvariError(f"{self.path}:{self.line(key)}: {message}")

    def table(self, key: Key, what: str, known: Iterable[str]) -> Table:
        """The table at *key*, refused when it is no table or holds a key that is not *known*."""
        value: Any = self.data
        for part in key:
            value = value[part]
        if not isinstance(value, dict):
            raise self.error(key, f"{what} must be a table, not {_kind(value)}")
        return Table(self, key, what, value, known)


class Table:
    """One table of a document, read key by key; *what* names it in messages."""

    def __init__(
        self, document: Document, key: Key, what: str, values: Mapping[str, Any], known: Iterable[str]
    ) -> None:
        self.document, self.key, self.what, self._values = document, key, what, values
        known = list(known)
        for name in values:
            if name not in known:
                raise unknown_name("key", name, known, self.where(name))

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    @property
    def line(self) -> int:
        """The line of the table's header."""
        return self.document.line(self.key)

    def where(self, name: str = "") -> str:
        """The start of a message about the key *name*, or about the whole table: file, line and table."""
        line = self.document.line((*self.key, name)) if name else self.line
        return f"{self.document.path}:{line}: {self.what}"

    def error(self, name: str, message: str) -> InvariError:
        """An error at the line of the key *name*."""
        return InvariError(f"{self.where(name)}: {message}")

    def text(self, name: str, default: str | None = None) -> str:
        """A non-empty text; without a *default* the key is required."""
        value = self._get(name, default)
        if not isinstance(value, str) or (not value.strip() and value != default):
            raise self._wrong(name, value, "a text in quotes")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """``true`` or ``false``."""
        value = self._get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
            raise self._wrong(name, value, "a finite number")
        return float(value)

    def integer(self, name: str, default: int | None = None, least: int = 1) -> int:
        """A whole number that is at least *least*."""
        return self._whole(name, self._get(name, default), least)

    def integers(self, name: str, default: list[int] | None = None) -> tuple[int, ...]:
        """One or more positive whole numbers, without repetitions; a single one may stand alone."""
        value = self._get(name, default)
        values = value if isinstance(value, list) else [value]
        return self._distinct(name, [self._whole(name, one, 1) for one in values])

    def texts(self, name: str, default: list[str] | None = None) -> tuple[str, ...]:
        """One or more texts, without repetitions; a single one may stand alone."""
        value = self._get(name, default)
        values = value if isinstance(value, list) else [value]
        for one in values:
            if not isinstance(one, str) or not one.strip():
                raise self._wrong(name, one, "a list of texts in quotes")
        return self._distinct(name, values)

    def choice(self, name: str, choices: Iterable[str], default: str) -> str:
        """One of the texts *choices*."""
        value = self.text(name, default)
        if value not in (known := list(choices)):
            raise unknown_name(f"value of {name}", value, known, self.where(name))
        return value

    def _get(self, name: str, default: object) -> object:
        if name in self._values:
            return self._values[name]
        if default is None:
            raise InvariError(f"{self.where()}: the key {name!r} is missing")
        return default

    def _wrong(self, name: str, value: object, meant: str) -> InvariError:
        return self.error(name, f"{name} must be {meant}, not {_kind(value)}")

    def _whole(self, name: str, value: object, least: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self._wrong(name, value, f"a whole number of at least {least}")
        return value

    def _distinct(self, name: str, values: list[_T]) -> tuple[_T, ...]:
        if not values:
            raise self.error(name, f"{name} is empty; give at least one value")
        for index, value in enumerate(values):
            if value in values[:index]:
                raise self.error(name, f"{name} names {value!r} twice")
        return tuple(values)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvariError(f"{path}: not a text in UTF-8: {error}") from None
    except OSError as error:
        raise InvariError(f"{path}: cannot be read: {error.strerror or error}") from None


def _locate(text: str) -> dict[Key, int]:
    """Find the line of every header and key.

    tomllib gives no positions. A statement (a header, or a key with its value) is the shortest run of
    whole lines that parses by itself, so lines are gathered until they do.
    """
    found: dict[Key, int] = {(): 1}
    counts: dict[Key, int] = {}
    header: Key = ()
    lines: list[str] = []
    start = 1
    for number, line in enumerate(text.splitlines(), 1):
        if not lines:
            start = number
        lines.append(line)
        try:
            statement = tomllib.loads("\n".join(lines))
        except tomllib.TOMLDecodeError:
            continue
        lines = []
        path, value = _only_path(statement)
        if not path:
            continue
        if value in ({}, [{}]) and line.lstrip().startswith("["):
            header = _resolve(path, counts, new_element=value == [{}])
            _add(found, header, {}, start)
        else:
            _add(found, (*header, *path), value, start)
    return found


def _resolve(path: tuple[str, ...], counts: dict[Key, int], new_element: bool) -> Key:
    """The key of a header: below an array of tables, its last element is meant."""
    key: Key = ()
    for depth, name in enumerate(path, 1):
        key = (*key, name)
        if depth == len(path) and new_element:
            counts[key] = counts.get(key, 0) + 1
        if key in counts:
            key = (*key, counts[key] - 1)
    return key


def _only_path(statement: dict[str, Any]) -> tuple[tuple[str, ...], Any]:
    """Follow the one key of each nested table down to the statement's own value."""
    path: tuple[str, ...] = ()
    value: Any = statement
    while isinstance(value, dict) and len(value) == 1:
        ((name, value),) = value.items()
        path = (*path, name)
    return path, value


def _add(found: dict[Key, int], key: Key, value: Any, line: int) -> None:
    for end in range(1, len(key) + 1):
        found.setdefault(key[:end], line)
    if isinstance(value, dict):
        for name, inner in value.items():
            _add(found, (*key, name), inner, line)


def _kind(value: object) -> str:
    names = {bool: "true or false", dict: "a table", list: "a list"}
    return names.get(type(value)) or repr(value)
