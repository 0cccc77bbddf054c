"""A page in place of a terminal: keeps the lines that are written to it, as HTML."""

from __future__ import annotations

import html
from types import SimpleNamespace

WIDTH = 120


class PytestHtmlSection:
    """What writes to pytest's terminal reporter can write here, too."""

    def __init__(self) -> None:
        self._tw = SimpleNamespace(fullwidth=WIDTH)
        self._title = ""
        self._lines: list[str] = []

    def write_sep(self, sep: str, title: str) -> None:
        """Begin the section."""
        self._title = title

    def write_line(self, line: str, **markup: bool) -> None:
        """Add a line."""
        colour = next((name for name in markup if markup[name]), "")
        text = html.escape(line)
        self._lines.append(f'<span style="color: {_COLOURS[colour]}">{text}</span>' if colour else text)

    def html(self) -> list[str]:
        """A heading and the lines in their form; nothing when nothing was written."""
        if not self._lines:
            return []
        return [f"<h2>{html.escape(self._title)}</h2>", "<pre>" + "\n".join(self._lines) + "</pre>"]


# Darker than their names, to be read on white.
_COLOURS = {"green": "#116611", "red": "#aa0000", "yellow": "#885500"}
