"""Text for terminals and logs: numbers at a readable precision, and untrusted text made harmless."""

from __future__ import annotations

import math

from pytest_invari.redaction import without_secrets


def printable(text: str) -> str:
    """Replace control, formatting and other invisible characters by their escapes.

    Titles, ids and error messages come from files and rerankers; a terminal must not obey them.
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def harmless(text: str) -> str:
    """Text for a message that anyone may read: printable, and without what looks like a secret."""
    return printable(without_secrets(text))


def number(value: float, digits: int = 4, counted: bool = False) -> str:
    """Show a number with *digits* decimals, fewer when large.

    A *counted* one (calls, tokens, seconds) has no decimals when whole, and is never rounded to 0.
    """
    if math.isnan(value):
        return "undefined"
    if abs(value) >= 1000 or (counted and value == round(value)):
        return f"{value:z,.0f}"
    if counted and abs(value) < 10.0**-digits:
        return f"{value:.0e}"
    # z: what rounds to 0 has no sign.
    if abs(value) >= 10:
        return f"{value:z.{min(digits, 1)}f}"
    return f"{value:z.{digits}f}"


def figure(estimate: float, low: float, high: float, n: int, digits: int = 4, counted: bool = False) -> str:
    """Show an estimate with its interval and number of queries: ``0.8120 [0.7800, 0.8410] n=30``."""
    if math.isnan(estimate):
        return "undefined"
    ends = [number(end, digits, counted) for end in (low, high)]
    interval = "" if math.isnan(low) else f" [{', '.join(ends)}]"
    return f"{number(estimate, digits, counted)}{interval} n={n}"
