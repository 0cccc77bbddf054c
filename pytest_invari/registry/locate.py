"""Finding what a reference (``module:attribute``) or an entry point stands for, with one-line errors."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from importlib.resources import files
from pathlib import Path

from pytest_invari.errors import InvariError, unknown_name
from pytest_invari.protocol.usercode import user_code

OWN_PACKAGE = "pytest_invari"


def load_object(reference: str, roots: Sequence[Path], who: str) -> object:
    """Import *reference* (``module:attribute``), looking in the folders *roots* after ``sys.path``.

    Raises:
        InvariError: it is not of that form, cannot be imported or has no such attribute; *who* opens
            the message.
    """
    module_name, colon, attribute = reference.partition(":")
    if not colon or not module_name or not attribute:
        raise InvariError(f"{who}: {reference!r} is not of the form MODULE:ATTRIBUTE")
    with user_code(f"importing {module_name!r}", who):
        try:
            _make_importable(module_name.partition(".")[0], roots)
            found: object = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is None or not _is_parent(error.name, module_name):
                raise
            places = ", ".join(dict.fromkeys(str(root) for root in roots))
            raise InvariError(f"there is no module {error.name!r} on sys.path or in {places}") from None
        for part in attribute.split("."):
            if not hasattr(found, part):
                public = [name for name in dir(found) if not name.startswith("_")]
                raise unknown_name(f"attribute of {module_name}", part, public)
            found = getattr(found, part)
    return found


def load_entry_point(point: EntryPoint, kind: str) -> object:
    """Load what a distribution registered.

    Raises:
        InvariError: it cannot be loaded; the message names the distribution.
    """
    with user_code(f"{kind} {point.name!r} of {provider(point)}: loading it"):
        return point.load()


def provider(point: EntryPoint) -> str:
    """Name the distribution of an entry point and what it points to."""
    dist = point.dist
    return f"{dist.name} {dist.version} ({point.value})" if dist else point.value


def first_sentence(point: EntryPoint) -> str:
    """Return the first line of the docstring of one of our own functions, read without importing it."""
    package, _, path = point.module.partition(".")
    if package != OWN_PACKAGE:
        return ""
    source = files(OWN_PACKAGE).joinpath(*path.split(".")).with_suffix(".py")  # type: ignore[attr-defined]
    if not source.is_file():
        return ""
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == point.attr:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""


def _make_importable(top_level: str, roots: Sequence[Path]) -> None:
    """Append the roots to ``sys.path``, only for a module that is nowhere else.

    They come last, so that a folder of the project never answers for an installed package. They stay
    there, because a reranker may import its neighbours when it first ranks.
    """
    if top_level in sys.modules or importlib.util.find_spec(top_level) is not None:
        return
    for root in roots:
        if str(root) not in sys.path:
            sys.path.append(str(root))
    importlib.invalidate_caches()


def _is_parent(missing: str, module_name: str) -> bool:
    return module_name == missing or module_name.startswith(missing + ".")
