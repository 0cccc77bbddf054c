"""The tables ``[tool.invari.rerankers.NAME]`` of a project's pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_invari.errors import InvariError
from pytest_invari.registry.parameters import OptionValue

_NAME = re.compile(r"[A-Za-z_][\w.-]*")


@dataclass(frozen=True, slots=True)
class RerankerTable:
    """One table: either a ``factory`` (``module:attribute``) or another ``reranker``, and its options."""

    place: str
    factory: str
    reranker: str
    options: Mapping[str, OptionValue]

    @property
    def target(self) -> str:
        """What the table configures."""
        return self.factory or self.reranker


def read_reranker_tables(path: Path) -> dict[str, RerankerTable]:
    """Read the tables of one file; no file means no tables.

    Raises:
        InvariError: the file is no TOML, or a table is not of the documented form.
    """
    if not path.is_file():
        return {}
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvariError(f"{path}: not valid TOML: {error}") from None
    tables: Any = content
    for key in ("tool", "invari", "rerankers"):
        tables = tables.get(key, {})
        if not isinstance(tables, dict):
            raise InvariError(f"{path}: {key!r} of [tool.invari.rerankers] must be a table")
    return {name: _read_table(path, name, table) for name, table in tables.items()}


def _read_table(path: Path, name: str, table: object) -> RerankerTable:
    place = f"{path} [tool.invari.rerankers.{name}]"
    if not _NAME.fullmatch(name):
        raise InvariError(f"{place}: a name is made of letters, digits, '_', '-' and '.'")
    if not isinstance(table, dict):
        raise InvariError(f"{place} must be a table, not {table!r}")
    options = dict(table)
    factory, reranker = options.pop("factory", ""), options.pop("reranker", "")
    if not isinstance(factory, str) or not isinstance(reranker, str) or bool(factory) == bool(reranker):
        raise InvariError(f'{place} needs either factory = "MODULE:ATTRIBUTE" or reranker = "NAME"')
    for key, value in options.items():
        if not isinstance(value, bool | int | float | str):
            raise InvariError(f"{place}: option {key!r} must be text, a number or a boolean, not {value!r}")
    return RerankerTable(place, factory, reranker, options)
