"""Calls of a service: many in flight, bounded for each host, tried again where that can help."""

from __future__ import annotations

import email.utils
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_invari.errors import InvariError, ServiceDownError
from pytest_invari.protocol import RankingError
from pytest_invari.redaction import HIDDEN, without_secrets
from pytest_invari.rerankers.served.address import Address, Key
from pytest_invari.usercode import one_line

if TYPE_CHECKING:
    import httpx2

__all__ = ["Client", "Limits", "Reply", "ServiceError", "TransientServiceError"]

# Statuses after which the same request may succeed a moment later.
TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
LARGEST_REPLY = 16 * 1024 * 1024
FIRST_WAIT = 0.5
# A service that asks for a longer pause is away, and says so in its status.
LONGEST_WAIT = 60.0
# That many requests in a row, each tried to the end, and nobody is there.
OUTAGE = 8
# How much of an error's text is told.
SHOWN = 200

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


class ServiceError(RankingError):
    """A call without a usable answer; the message names the service and what it said, without secrets."""


class TransientServiceError(ServiceError):
    """One that says nothing about the request: the network, a limit, a service that is away for a while."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Limits:
    """How a service is treated.

    ``concurrency`` is the most requests in flight to one host, whichever rerankers ask it; ``timeout`` the
    most seconds of one attempt from its start to the last byte; ``attempts`` how often one request is tried.
    """

    concurrency: int = 8
    timeout: float = 60.0
    attempts: int = 5

    def __post_init__(self) -> None:
        for name in ("concurrency", "attempts"):
            if not 1 <= getattr(self, name) <= 1024:
                raise InvariError(f"option {name!r} must be from 1 to 1024, not {getattr(self, name)}")
        if not 0 < self.timeout < float("inf"):
            raise InvariError(f"option 'timeout' must be a number of seconds above 0, not {self.timeout:g}")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a service answered: parsed JSON, headers by lower-case name, and the attempts it took."""

    content: Any
    headers: Mapping[str, str]
    attempts: int = 1


class _Host:
    """What all clients of one host share in a process: places in flight, a pause, and whether it answers."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._taken = 0
        self._resume = 0.0
        self._failed_in_a_row = 0
        self._changed = threading.Condition()
        self.outage = ""

    def narrow(self, places: int) -> None:
        """Of several limits for one host the strictest holds."""
        self._places = min(self._places, places)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Wait for a place in flight, and for the end of a pause."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken < self._places)
            self._taken += 1
        try:
            yield
        finally:
            with self._changed:
                self._taken -= 1
                self._changed.notify()

    @property
    def pause(self) -> float:
        """The seconds for which the host has asked to be left alone."""
        return max(0.0, self._resume - time.monotonic())

    def pause_for(self, seconds: float) -> None:
        self._resume = max(self._resume, time.monotonic() + seconds)

    def note(self, error: str) -> None:
        """Count a request that was given up; the empty text means that the host has answered."""
        with self._changed:
            self._failed_in_a_row = self._failed_in_a_row + 1 if error else 0
            if self._failed_in_a_row >= OUTAGE:
                self.outage = error


class Client:
    """Calls one service.

    Args:
        address: where it is.
        key: sent as a bearer token, read when the first call is made.
        limits: as the user has set them.
        shared: the session's, so that all rerankers of one host keep to its limit together.
        plain_http_key: let the key go to another machine by plain HTTP.
    """

    def __init__(
        self,
        address: Address,
        key: Key,
        limits: Limits,
        shared: MutableMapping[object, Any],
        *,
        plain_http_key: bool = False,
    ) -> None:
        self.address, self.limits = address, limits
        self._key, self._plain_http_key = key, plain_http_key
        self._host: _Host = shared.setdefault(("service", address.origin), _Host(limits.concurrency))
        self._host.narrow(limits.concurrency)
        self._stopped = threading.Event()

    def check(self) -> None:
        """Refuse, before anything is sent, what cannot be sent.

        Raises:
            InvariError: the package is missing, the key is missing, or it would go by plain HTTP.
        """
        try:
            import httpx2  # noqa: F401  # only whether it is there
        except ImportError:
            raise InvariError(
                'a service is called with httpx2, which is not installed: pip install "pytest-invari[http]"'
            ) from None
        if self._secret and self.address.is_plain and not self._plain_http_key:
            raise InvariError(
                f"{self.address} is plain HTTP to another machine, where the key could be read on the way; "
                "use https, or say plain_http_key=true"
            )

    def get(self, path: str) -> Reply:
        """Ask for a path of the service.

        Raises:
            ServiceError: as :meth:`post`.
        """
        return self._tried("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Reply:
        """Send JSON to a path of the service, again where that can help.

        Raises:
            ServiceError: there is no answer, or none in JSON; :class:`TransientServiceError` where that says
                nothing about the request.
        """
        return self._tried("POST", path, json.dumps(body, ensure_ascii=False, allow_nan=False).encode())

    def each(
        self, work: Callable[[_Given], _Made], given: Sequence[_Given], done: Callable[[], None]
    ) -> list[_Made]:
        """Do *work* on each, as many at a time as the host allows; results keep their order.

        *done* is called in this thread after each, for the progress. An interruption closes the connections.

        Raises:
            ServiceDownError: the host was found away by an earlier call; nothing is asked.
        """
        if self._host.outage:
            raise ServiceDownError(f"{self.address} is away: {self._host.outage}")
        if len(given) == 1:
            results = [work(given[0])]
            done()
            return results
        _ = self._http  # made once, before there are threads that would each make one
        pool = ThreadPoolExecutor(min(self.limits.concurrency, len(given) or 1), "pytest-invari-service")
        try:
            futures = [pool.submit(work, each) for each in given]
            for future in as_completed(futures):
                future.result()
                done()
            return [future.result() for future in futures]
        except BaseException:
            self._stopped.set()
            self._http.close()
            pool.shutdown(cancel_futures=True)
            self._stopped = threading.Event()
            del self._http
            raise
        finally:
            pool.shutdown()

    @cached_property
    def _secret(self) -> str:
        return self._key.read()

    @cached_property
    def _http(self) -> httpx2.Client:
        import httpx2

        headers = {"content-type": "application/json", "accept": "application/json"}
        if self._secret:
            headers["authorization"] = f"Bearer {self._secret}"
        return httpx2.Client(
            headers=headers,
            timeout=self.limits.timeout,
            follow_redirects=False,
            limits=httpx2.Limits(
                max_connections=self.limits.concurrency, max_keepalive_connections=self.limits.concurrency
            ),
        )

    def _tried(self, method: str, path: str, content: bytes | None) -> Reply:
        attempt = 0
        while True:
            attempt += 1
            if self._host.outage or self._stopped.is_set():
                raise TransientServiceError(f"not asked: {self.address} is away")
            try:
                with self._host.place():
                    self._stopped.wait(self._host.pause)
                    reply, headers = self._call(method, path, content)
            except TransientServiceError as error:
                if attempt >= self.limits.attempts or (error.wait or 0.0) > LONGEST_WAIT:
                    self._host.note(str(error))
                    tries = f" ({attempt} attempts)" if attempt > 1 else ""
                    raise TransientServiceError(f"{error}{tries}") from None
                if error.wait is not None:
                    self._host.pause_for(error.wait)
                # Waits that double, and are drawn, so that many requests do not come back at once.
                wait = 0.0 if error.wait else min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1))
                self._stopped.wait(wait * random.uniform(0.5, 1.0))
            except ServiceError:
                self._host.note("")
                raise
            else:
                self._host.note("")
                return Reply(reply, headers, attempt)

    def _call(self, method: str, path: str, content: bytes | None) -> tuple[Any, Mapping[str, str]]:
        import httpx2

        url = self.address.of(path)
        deadline = time.monotonic() + self.limits.timeout
        try:
            with self._http.stream(method, url, content=content) as response:
                body = self._read(response, deadline)
        except httpx2.TimeoutException:
            raise TransientServiceError(
                f"{url}: no whole answer within {self.limits.timeout:g} seconds"
            ) from None
        except (httpx2.TransportError, httpx2.StreamError, RuntimeError) as error:
            # A client that an interruption has closed raises a RuntimeError.
            raise TransientServiceError(f"{url}: {self._safe(one_line(error))}") from None
        except httpx2.HTTPError as error:
            raise ServiceError(f"{url}: {self._safe(one_line(error))}") from None
        headers = {name.lower(): value for name, value in response.headers.items()}
        self._require_success(response.status_code, headers, body, url)
        try:
            return json.loads(body), headers
        except ValueError:
            said = self._told(body)
            raise ServiceError(f"{url}: the answer is no JSON: {said or 'it is empty'}") from None

    def _read(self, response: httpx2.Response, deadline: float) -> bytes:
        import httpx2

        parts, size = [], 0
        for part in response.iter_bytes():
            size += len(part)
            if size > LARGEST_REPLY:
                raise ServiceError(f"{response.url}: the answer is larger than {LARGEST_REPLY >> 20} MiB")
            if time.monotonic() > deadline:
                # The library's own limit is for each read: a service may drip for ever.
                raise httpx2.ReadTimeout("deadline", request=response.request)
            parts.append(part)
        return b"".join(parts)

    def _require_success(self, status: int, headers: Mapping[str, str], body: bytes, url: str) -> None:
        if 200 <= status < 300:
            return
        if 300 <= status < 400:
            target = self._safe(headers.get("location", "nowhere"))
            raise ServiceError(
                f"{url}: answers {status}, a redirect to {target}, which is not followed; name the address "
                "that is meant"
            )
        message = f"{url}: answers {status}: {self._told(body) or 'without a text'}"
        if status in TRANSIENT:
            raise TransientServiceError(message, _retry_after(headers.get("retry-after", "")))
        raise ServiceError(message)

    def _told(self, body: bytes) -> str:
        text = " ".join(body[: 4 * SHOWN].decode("utf-8", "replace").split())
        text = self._safe(text)
        return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"

    def _safe(self, text: str) -> str:
        """What a service says may repeat what it was sent."""
        if self._secret:
            text = text.replace(self._secret, HIDDEN)
        return without_secrets(text)


def _retry_after(value: str) -> float | None:
    """Seconds from a header ``Retry-After``, which is a number or a date; None where it is neither."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if seconds < float("inf") else None
