"""Reading TOML so that every mistake can be reported with its file, line and key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_invari.errors import InvariError, unknown_name
from pytest_invari.suitefile.values import REQUIRED, SuiteKey, ValueKind, shown

KeyPath = tuple[str | int, ...]
"""Where a value is: the names of keys, and the places in arrays, that lead to it."""

_AT_LINE = re.compile(r"\s*\(at line (\d+), column \d+\)")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# What tomllib says, in the words of somebody who has never written a parser.
_IN_OTHER_WORDS = {"Cannot overwrite a value": "a key or a table is given twice"}


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
            self._lines = _locate(self.text)
        except (ValueError, RecursionError) as error:
            line, reason = _why_unreadable(self.text, error)
            raise InvariError(f"{path}:{line}: not valid TOML: {reason}") from None

    def line(self, key: KeyPath) -> int:
        """The 1-based line of *key*, or of the nearest table around it."""
        while key and key not in self._lines:
            key = key[:-1]
        return self._lines.get(key, 1)

    def error(self, key: KeyPath, message: str) -> InvariError:
        """An error that begins with the file and the line of *key*."""
        return InvariError(f"{self.path}:{self.line(key)}: {message}")

    def table(self, key: KeyPath, what: str, known: Iterable[str]) -> Mapping[str, Any]:
        """The table at *key*; *what* names it in messages.

        Raises:
            InvariError: there is something else at *key*, or the table has a key that is not *known*.
        """
        value: Any = self.data
        for part in key:
            value = value[part]
        if not isinstance(value, dict):
            raise self.error(key, f"{what} must be a table, not {shown(value)}")
        known = list(known)
        for name in value:
            if name not in known:
                raise unknown_name("key", name, known, f"{self.path}:{self.line((*key, name))}: {what}")
        return value


class TomlTable:
    """One table of a document, read by the declarations of its *keys*; *what* names it in messages.

    Raises:
        InvariError: it is no table, or has a key that is not declared.
    """

    def __init__(self, document: Document, path: KeyPath, what: str, keys: Sequence[SuiteKey]) -> None:
        self.document, self.path, self.what, self.keys = document, path, what, keys
        self._values = document.table(path, what, [key.name for key in keys])

    def __contains__(self, name: str) -> bool:
        return name in self._values

    @property
    def line(self) -> int:
        """The line of the table's header."""
        return self.document.line(self.path)

    def error(self, name: str, message: str) -> InvariError:
        """An error at the line of the key *name*, or of the table where there is no such key."""
        return self.document.error((*self.path, name), f"{self.what}: {message}")

    def read(self) -> dict[str, Any]:
        """The value of every declared key, the default of those that are left out.

        Raises:
            InvariError: a value is not of its key's kind, or a required key is missing.
        """
        return {key.name: self._value(key) for key in self.keys}

    def value(self, name: str) -> Any:
        """The value of one declared key, as :meth:`read` has it."""
        return next(self._value(key) for key in self.keys if key.name == name)

    def convert(self, kind: ValueKind, name: str, value: object) -> Any:
        """A *value* that belongs to *name* as its *kind* reads it.

        Raises:
            InvariError: it is of another kind.
        """
        try:
            return kind.read(name, value)
        except InvariError as error:
            raise self.error(name, str(error)) from None

    def _value(self, key: SuiteKey) -> Any:
        if key.name not in self._values:
            if key.default is REQUIRED:
                raise self.error(key.name, f"the key {key.name!r} is missing: {key.description}")
            return key.default
        return self.convert(key.kind, key.name, self._values[key.name])


def header(*names: str) -> str:
    """The header of a table as TOML writes it, for messages: ``[profile.quick]``."""
    return f"[{'.'.join(name if _BARE_KEY.fullmatch(name) else shown(name) for name in names)}]"


def _read(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvariError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        # Windows editors begin a file with a byte order mark; it is no part of the text.
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvariError(f"{path}:{line}: is not UTF-8 text; save the file as UTF-8") from None


def _why_unreadable(text: str, error: ValueError | RecursionError) -> tuple[int, str]:
    """The line and the reason of what tomllib raised."""
    if isinstance(error, tomllib.TOMLDecodeError):
        place = _AT_LINE.search(str(error))
        reason = _AT_LINE.sub("", str(error))
        return int(place[1]) if place else _unfinished(text), _IN_OTHER_WORDS.get(reason, reason)
    line = next((line for line, _, statement in _statements(text) if statement is None), 1)
    if isinstance(error, RecursionError):
        return line, "values are nested too deeply"
    return line, "a number has more digits than can be read"


def _unfinished(text: str) -> int:
    """The first line of the statement that lacks its end where the document ends."""
    whole = [start + source.count("\n") for start, source, _ in _statements(text)]
    return whole[-1] + 1 if whole else 1


def _locate(text: str) -> dict[KeyPath, int]:
    """Find the line of every header and key of a valid document."""
    found: dict[KeyPath, int] = {(): 1}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for line, source, statement in _statements(text):
        if not statement:
            continue
        path, value = _only_path(statement)
        if source.lstrip().startswith("["):
            table = _resolve(path, counts, new_element=value == [{}])
            _add(found, table, {}, line)
        else:
            _add(found, (*table, *path), value, line)
    return found


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any] | None]]:
    """The statements of a document: first line, text, and content (None: it cannot be read).

    tomllib gives no positions. A statement (a header, or a key with its value) is the shortest run of
    whole lines that parses by itself, so lines are gathered until they do. Only a line feed ends a line:
    texts and comments may hold the other characters at which ``str.splitlines`` splits.
    """
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        lines.append(line)
        source = "\n".join(lines)
        try:
            statement: dict[str, Any] | None = tomllib.loads(source)
        except tomllib.TOMLDecodeError:
            continue
        except (ValueError, RecursionError):
            statement = None
        yield number - len(lines) + 1, source, statement
        lines = []


def _resolve(path: tuple[str, ...], counts: dict[KeyPath, int], new_element: bool) -> KeyPath:
    """The key of a header: below an array of tables, its last element is meant."""
    key: KeyPath = ()
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


def _add(found: dict[KeyPath, int], key: KeyPath, value: Any, line: int) -> None:
    for end in range(1, len(key) + 1):
        found.setdefault(key[:end], line)
    if isinstance(value, dict):
        for name, inner in value.items():
            _add(found, (*key, name), inner, line)
