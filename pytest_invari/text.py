"""Text that anyone may read: numbers at a readable precision, untrusted text made harmless, no secrets."""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Iterator

HIDDEN = "(hidden)"

SHORTEST_SECRET = 8
"""In characters; what is shorter may be a part of any word."""

# Narrow on purpose: a hidden option no longer tells two records apart, and "pad_token" should.
_SECRET = (
    r"(?:api|access|auth|bearer|github|hf|refresh|secret|session)[_-]?token"
    r"|(?:api|access|auth|private|secret|signing)[_-]?key"
    r"|secret|passwd|password|passphrase|credentials?|authorization|cookie"
)
_SECRET_NAME = re.compile(rf"(?:^|[^a-z0-9])(?:{_SECRET})$|^token$", re.IGNORECASE)
_ENVIRONMENT_NAME = re.compile(r"_(?:KEY|TOKEN|SECRET|PASS|PASSWORD|CREDENTIALS?)$")

_SCHEME = r"(?:bearer|basic|digest|token)[ \t]+"
# "passwd: No such file" goes on as a sentence does: with two plain words, the second of which is no key.
_PROSE = rf"[ \t]+(?!{_SCHEME})(?-i:[A-Za-z][a-z]{{0,14}}[ \t]+[A-Za-z][a-z]*(?![\w=:]))"
_ASSIGNMENT = re.compile(
    rf"((?<![a-z0-9])(?:{_SECRET})|(?<![\w-])token)(['\"]?\s*(?:=|:(?!{_PROSE}))\s*['\"]?)"
    rf"(?:{_SCHEME})?[^\s,;&'\"]+",
    re.IGNORECASE,
)
_PAIR = r"[^\s;,=]+=[^\s;,'\"]*"
_COOKIE = re.compile(rf"(cookie['\"]?\s*:\s*['\"]?){_PAIR}(?:;\s*{_PAIR})*", re.IGNORECASE)
# "Basic Instinct" is a film, and no credentials in base64 are one plain word.
_PLAIN_WORD = r"(?-i:[A-Za-z][a-z]*)(?![\w~+/=-])"
_BEARER = re.compile(rf"\b(bearer|basic(?!\s+{_PLAIN_WORD}))\s+[\w.~+/=-]{{8,}}", re.IGNORECASE)
# A password may hold what must not stand there unescaped: "@", and "/" too, unless a port ends there.
_USER_INFORMATION = re.compile(r"((?<!\w)\w+://)(?:[^\s/?#]+|[^\s/?#:]+:(?!\d*(?:\W|$))\S{0,1000})@")


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Tell whether a value of this name (an option, a header) must not be stored."""
    return _SECRET_NAME.search(name) is not None


def without_secrets(text: str) -> str:
    """Hide what looks like a secret in free text.

    Hidden are values given to a secret name (``api_key=…``, ``password: …``), bearer tokens, the user
    part of an address, and the values of environment variables whose name says that they are secret.
    A colon is left alone where a sentence of plain words follows.
    """
    # The longest first: one may be a part of another.
    for value in sorted(_secret_variables(), key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    text = _USER_INFORMATION.sub(rf"\1{HIDDEN}@", text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    text = _COOKIE.sub(rf"\1{HIDDEN}", text)
    return _ASSIGNMENT.sub(rf"\1\2{HIDDEN}", text)


def _secret_variables() -> Iterator[str]:
    for name, value in os.environ.items():
        is_secret = is_secret_name(name) or _ENVIRONMENT_NAME.search(name) is not None
        if is_secret and len(value.strip()) >= SHORTEST_SECRET:
            yield value.strip()


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
