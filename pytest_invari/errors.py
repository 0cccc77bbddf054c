"""The one error a user may cause, and the words that its messages share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InvariError(Exception):
    """A mistake in what the user asked for or supplied.

    The message is one line that says what is wrong, where, and what to do.
    The plugin shows it as pytest's usage error: exit status 4, no traceback.
    """


class InvariRecordsWarning(UserWarning):
    """Records hold what runs that wrote at once did not agree on."""


class ServiceDownError(InvariError):
    """What a reranker asks is away. It is no fault of one list: going on would only make all of them fail."""


class UnknownNameError(InvariError):
    """A name that stands for nothing. Whoever knows where it is written says so in front of the message."""


def unknown_name(kind: str, name: str, known: Iterable[str], where: str = "") -> UnknownNameError:
    """Describe an unknown *name* of a *kind* ("suite", "reranker", …) with the closest known names."""
    names = sorted(known)
    folded = {each.casefold(): each for each in names}
    close = [folded[match] for match in difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)]
    guess = f" Did you mean {' or '.join(repr(match) for match in close)}?" if close else ""
    listing = ", ".join(names) if names else "none"
    prefix = f"{where}: " if where else ""
    return UnknownNameError(f"{prefix}unknown {kind} {name!r}.{guess} Known: {listing}.")


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 query`` is written ``counted(1, "query")``, two are ``2 queries``."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
