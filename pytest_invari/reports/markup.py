"""Untrusted text within Markdown: it is shown as it is, and never becomes a tag, a link or a mention."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pytest_invari.text import printable

# Brackets make a link only before a parenthesis, as nothing that they could refer to is ever defined; an
# underscore within a word is one.
_MARKUP = r"[&<>|`*~\\$]|\](?=\()|(?<![^\W_])_|_(?![^\W_])"
# What hosts turn into links by themselves, also where it is written as an entity: mentions and addresses of
# mail, issues, addresses of pages. The cutoff of a metric (hr@5) is none of them.
_LINKED = r"@(?!(?<=[\w.]@)\d+(?![\w.-]))|[#!](?=\d)|:(?=//)|\bwww(?=\.)"
_UNSAFE = re.compile(f"({_MARKUP})|({_LINKED})", re.IGNORECASE)
# A word joiner behind the mark is not seen, and ends what would be a link.
_JOINER = "&#8288;"


def plain(text: str) -> str:
    """Text within a line or a cell of a table; not for the beginning of a line, where it may be a list."""
    return _UNSAFE.sub(
        lambda match: f"&#{ord(match[1])};" if match[1] else match[2] + _JOINER, printable(text)
    )


def code(text: str) -> str:
    """A name that can be copied: code where it has none of the marks that cells and code must not hold."""
    shown = printable(text)
    return f"`{shown}`" if shown.strip() and not set(shown) & set("`|\\") else plain(text)


def fenced(lines: Iterable[str]) -> str:
    """Lines as they are, between fences that are longer than whatever they hold."""
    shown = [printable(line) for text in lines for line in text.split("\n")]
    longest = max((len(run) for line in shown for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}text", *shown, fence])


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
