"""A key in what a service says: it may repeat what it was sent, as it is or in another spelling."""

from __future__ import annotations

import base64
import html
import logging
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from urllib.parse import quote

from pytest_invari.text import HIDDEN, SHORTEST_SECRET

# Of httpx2, which writes down the headers that come back, where a user asks for so much.
LOGGERS = ("httpx2", *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))

# "\/" and "\u002b" in JSON, of which only some programs write "/" and "+" so.
_ESCAPED = re.compile(r"\\(?:/|u00([2-7][0-9a-fA-F]))")


class Hiding:
    """Replaces a key, where there is one, in any spelling that gives it away.

    A short key is a word that stands for none ("x", "token"): it is hidden where it stands by itself, since a
    part of other words it gives nothing away and its loss would spoil them.
    """

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, text: str) -> str:
        """The same text without the key."""
        return self._spellings.sub(HIDDEN, text) if self._key else text

    def in_json(self, text: str) -> str:
        """The same for a text that may be JSON, whose escapes of plain characters are undone."""
        if not self._key:
            return text
        return self(_ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "/", self(text)))

    def in_answer(self, text: str) -> str:
        """The same for a name or a value of an answer, which may be a short key and yet a word of its own."""
        return text if self._is_short and text.strip() == self._key else self(text)

    @property
    def _is_short(self) -> bool:
        return len(self._key) < SHORTEST_SECRET

    @cached_property
    def _spellings(self) -> re.Pattern[str]:
        """The spellings, the longest first: one may be a part of another."""
        listed = "|".join(map(re.escape, sorted(set(_spellings(self._key)), key=len, reverse=True)))
        return re.compile(rf"(?<!\w)(?:{listed})(?!\w)" if self._is_short else listed)


def _spellings(key: str) -> Iterator[str]:
    yield key
    # In JSON, and as Python writes texts and bytes.
    escaped = key.replace("\\", "\\\\")
    yield from (escaped, escaped.replace('"', '\\"'), escaped.replace("'", "\\'"))
    in_page = html.escape(key)
    yield from (in_page, in_page.replace("&#x27;", "&#39;").replace("&quot;", "&#34;"))
    in_address = quote(key, safe="")
    yield from (in_address, re.sub("%..", lambda found: found[0].lower(), in_address))
    for sent in (key, f"Bearer {key}"):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(sent.encode()).decode().rstrip("=")


class _InLogs(logging.Filter):
    def __init__(self, hiding: Hiding) -> None:
        super().__init__()
        self._hiding = hiding

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self._hiding(record.getMessage()), ()
        return True


def hide_in_logs(hiding: Hiding) -> Callable[[], None]:
    """Keep a key out of what the HTTP library logs, until what is returned is called."""
    hides = _InLogs(hiding)
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addFilter(hides)

    def end() -> None:
        for logger in loggers:
            logger.removeFilter(hides)

    return end
