"""Prompt templates, and how one is read and filled in."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path

from pytest_invari.errors import InvariError, unknown_name

__all__ = ["Template", "read_template"]


@dataclass(frozen=True, slots=True)
class Template:
    """The pieces of a prompt, in the order in which a model reads them.

    The query and the history stand before the candidates, so that all views of a query begin alike
    and that beginning is computed once. A piece whose subject is missing (no query text, no history)
    is left out.
    """

    candidates: str
    candidate_line: str
    query: str = ""
    history: str = ""
    history_line: str = ""
    answer: str = ""
    answer_start: str = ""
    chat: bool = False

    @property
    def has_labels(self) -> bool:
        """Whether each candidate is shown with a label."""
        return "{label}" in self.candidate_line


def read_template(name: str) -> Template:
    """Read one of the templates that come with the package, or a TOML file of the same form by its path.

    Raises:
        InvariError: no such template, or a key is unknown, missing or of the wrong type.
    """
    folder = files("pytest_invari") / "rerankers" / "language_model" / "prompts"
    known = sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml"))
    if name in known:
        return _template(name, (folder / f"{name}.toml").read_text(encoding="utf-8"))
    path = Path(name)
    if path.suffix != ".toml":
        raise unknown_name("prompt", name, known)
    try:
        return _template(name, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvariError(f"prompt {name!r}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InvariError(f"prompt {name!r}: is not UTF-8 text") from None


def _template(name: str, text: str) -> Template:
    try:
        values: Mapping[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvariError(f"prompt {name!r}: not TOML ({error})") from None
    known = {field.name: bool if field.name == "chat" else str for field in fields(Template)}
    for key, value in values.items():
        if key not in known:
            raise unknown_name("key", key, known, where=f"prompt {name!r}")
        if not isinstance(value, known[key]):
            raise InvariError(f"prompt {name!r}: {key!r} must be of type {known[key].__name__}")
    for key in ("candidates", "candidate_line"):
        if key not in values:
            raise InvariError(f"prompt {name!r}: {key!r} is missing")
    if not values["candidates"]:
        raise InvariError(f"prompt {name!r}: 'candidates' is empty, but something must precede the first one")
    if "history" in values and "history_line" not in values:
        raise InvariError(f"prompt {name!r}: 'history' needs 'history_line'")
    for key in ("candidate_line", "history_line", "query"):
        if values.get(key) and str(values[key]).count("{text}") != 1:
            raise InvariError(f"prompt {name!r}: {key!r} must hold '{{text}}' once")
    return Template(**values)  # type: ignore[arg-type]  # the types were checked above
