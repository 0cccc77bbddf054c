"""A key in what a service says: it may repeat what it was sent, as it is or in another spelling."""

from __future__ import annotations

import base64
import html
import logging
import re
from collections.abc import Callable
from functools import cached_property
from urllib.parse import quote

from pytest_invari.redaction import HIDDEN

__all__ = ["Hiding", "hide_in_logs"]

# Of httpx2, which writes down the headers that come back, where a user asks for so much.
LOGGERS = ("httpx2", *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))

# "\/" and "\u002b" in JSON, of which only some programs write "/" and "+" so.
_ESCAPED = re.compile(r"\\(?:/|u00([2-7][0-9a-fA-F]))")


class Hiding:
    """Replaces a key, where there is one, in any spelling that gives it away."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, text: str) -> str:
        """The same text without the key."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        return text

    def in_json(self, text: str) -> str:
        """The same for a text that may be JSON, whose escapes of plain characters are undone first."""
        if not self._key:
            return text
        return self(_ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "/", text))

    @cached_property
    def _forms(self) -> tuple[str, ...]:
        """The spellings, the longest first: one may be a part of another."""
        if not self._key:
            return ()
        encoded = quote(self._key, safe="")
        forms = {self._key, html.escape(self._key), encoded, re.sub("%..", lambda h: h[0].lower(), encoded)}
        for sent in (self._key, f"Bearer {self._key}"):
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                forms.add(encode(sent.encode()).decode().rstrip("="))
        return tuple(sorted(forms, key=len, reverse=True))


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
