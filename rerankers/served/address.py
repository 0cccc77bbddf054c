"""The address of a service, and the key that it is called with; a key is never part of an address."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pytest_invari.errors import InvariError
from pytest_invari.registry.spec import NO_VARIABLE, is_variable

_NO_ADDRESS = "option 'url' must be an address such as http://localhost:8000"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a service is: ``http`` or ``https``, host and port, and the path that its own paths go behind."""

    origin: str
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read ``https://api.example.com/prefix``.

        Raises:
            InvariError: it is no such address, or holds a user, a password, a query or a fragment.
        """
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            # Its message repeats what stands before the host, or in the port's place.
            raise InvariError(_NO_ADDRESS) from None
        if parts.scheme not in ("http", "https") or not host:
            raise InvariError(_NO_ADDRESS)
        if parts.username is not None or parts.password is not None:
            raise InvariError(
                "option 'url' holds a user or a password, which would stand in ids and reports; give the key "
                "by key_env=NAME, the name of an environment variable, or by key_file=PATH"
            )
        if parts.query or parts.fragment or any(not each.isprintable() or each.isspace() for each in text):
            raise InvariError("option 'url' must be an address without '?', '#' and spaces")
        shown = f"[{host}]" if ":" in host else host
        origin = f"{parts.scheme}://{shown}" + (f":{port}" if port is not None else "")
        return cls(origin, parts.path.rstrip("/"))

    @property
    def is_plain(self) -> bool:
        """Whether what is sent there can be read on the way: plain HTTP to another machine."""
        return self.origin.startswith("http:") and not self.is_loopback

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine."""
        host = urlsplit(self.origin).hostname or ""
        try:
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def of(self, path: str) -> str:
        """The whole address of one of the service's paths, which begins with a slash."""
        return f"{self.origin}{self.path}{path}"

    def __str__(self) -> str:
        return self.origin + self.path


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Where a key is read from, when it is needed: an environment variable, or a file that holds it alone.

    The key itself is in no field, so that it cannot be shown by accident. ``is_wanted`` says that the user
    named the place; one that is only usual may be empty.
    """

    env: str = ""
    file: str = ""
    is_wanted: bool = True

    @classmethod
    def of(cls, env: str, file: str, usual: str) -> ApiKey:
        """From the options ``key_env`` and ``key_file``, or else from the variable that is *usual*.

        Raises:
            InvariError: both are given, or the first is no name.
        """
        if env and file:
            raise InvariError("options 'key_env' and 'key_file' are both given; give one of them")
        if env and not is_variable(env):
            raise InvariError(NO_VARIABLE)
        return cls(env or ("" if file else usual), file, is_wanted=bool(env or file))

    def read(self) -> str:
        """The key; empty where there is none and none is wanted.

        Raises:
            InvariError: the variable is not set, the file cannot be read, or the key is no single line.
        """
        if self.file:
            try:
                key = Path(self.file).expanduser().read_text(encoding="ascii").strip()
            except OSError as error:
                raise InvariError(f"option 'key_file': {self.file}: {error.strerror or error}") from None
            except UnicodeDecodeError:
                raise InvariError(f"option 'key_file': {self.file}: holds no key") from None
            place = f"the file {self.file}"
        else:
            key = os.environ.get(self.env, "").strip() if self.env else ""
            place = f"the environment variable {self.env}"
        if not key and self.is_wanted:
            raise InvariError(f"the service's key is missing: {place} is empty or not set")
        if key and not (key.isascii() and key.isprintable() and " " not in key):
            raise InvariError(f"the service's key, from {place}, must be one word")
        return key
