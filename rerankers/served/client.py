"""Calls of a service: many in flight, bounded in time and size, tried again where that can help."""

from __future__ import annotations

import email.utils
import json
import queue
import random
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_invari.errors import InvariError, ServiceDownError
from pytest_invari.protocol import RankingError
from pytest_invari.protocol.usercode import one_line
from pytest_invari.rerankers.served.address import Address, ApiKey
from pytest_invari.rerankers.served.hiding import Hiding, hide_in_logs
from pytest_invari.rerankers.served.host import Host, Limits
from pytest_invari.text import without_secrets

if TYPE_CHECKING:
    import httpx2


# Statuses below 500 after which the same request may succeed a moment later, and those above after which it
# will not. Others above are a service's own trouble, also where no standard has them (529, Cloudflare's 52x).
TRANSIENT = frozenset({408, 409, 425, 429})
LASTING = frozenset({501, 505})
LARGEST_REPLY = 16 * 1024 * 1024
FIRST_WAIT = 0.5
# A service that asks for a longer pause is away, and says so in its status.
LONGEST_WAIT = 60.0
# How much of an error's text is told.
SHOWN = 200

_Given = TypeVar("_Given")
_Output = TypeVar("_Output")


class ServiceError(RankingError):
    """A call without a usable answer; the message names the service and what it said, without secrets.

    ``attempts`` is how often it was tried.
    """

    attempts = 1


class TransientServiceError(ServiceError):
    """One that says nothing about the request: the network, a limit, a service that is away for a while."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Reply:
    """What a service answered: parsed JSON, headers by lower-case name, and the attempts it took."""

    content: Any
    headers: Mapping[str, str]
    attempts: int = 1


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
        key: ApiKey,
        limits: Limits,
        shared: MutableMapping[object, Any],
        *,
        plain_http_key: bool = False,
    ) -> None:
        self.address, self.limits = address, limits
        self._key, self._plain_http_key = key, plain_http_key
        self._host: Host = shared.setdefault(("service", address.origin), Host(limits.concurrency))
        self._host.narrow(limits.concurrency)
        self._stopped = threading.Event()

    @classmethod
    def to(
        cls,
        url: str,
        shared: MutableMapping[object, Any],
        *,
        key_env: str = "",
        key_file: str = "",
        plain_http_key: bool = False,
        concurrency: int = 8,
        timeout: float = 60.0,
        attempts: int = 5,
    ) -> Client:
        """A client by the options that every reranker of a service takes.

        Raises:
            InvariError: one of them cannot be; the message names it.
        """
        address, key = Address.parse(url), ApiKey.of(key_env, key_file, "")
        return cls(
            address, key, Limits(concurrency, timeout, attempts), shared, plain_http_key=plain_http_key
        )

    def check(self) -> None:
        """Refuse, before anything is sent, what cannot be sent.

        Raises:
            InvariError: the package is missing, the key is missing, or it would go by plain HTTP.
        """
        try:
            import httpx2
        except ImportError:
            raise InvariError(
                'a service is called with httpx2, which is not installed: pip install "pytest-invari[http]"'
            ) from None
        try:
            _ = self._http
        except (ImportError, ValueError, OSError, httpx2.InvalidURL) as error:
            raise InvariError(
                f"{self.address}: cannot be called with the proxies and certificates that the environment "
                f"names: {self._safe(one_line(error))}"
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
        return self._tried("POST", path, json.dumps(body, allow_nan=False).encode())

    def each(
        self, work: Callable[[_Given], _Output], given: Sequence[_Given], done: Callable[[], None]
    ) -> list[_Output]:
        """Do *work* on each, as many at a time as the host allows; results keep their order.

        *done* is called in this thread after each, for the progress. What is in flight when it is interrupted
        is left to itself: nobody waits for it, and nothing more is asked.

        Raises:
            ServiceDownError: the host was found away by an earlier call; nothing is asked.
        """
        if self._host.outage:
            raise ServiceDownError(
                f"the service is away: {self._host.outage}; once it is back, the same command goes on from "
                "what --invari-records kept"
            )
        stopped = self._stopped
        waiting: queue.SimpleQueue[tuple[int, _Given]] = queue.SimpleQueue()
        ready: queue.SimpleQueue[tuple[int, _Output | None, BaseException | None]] = queue.SimpleQueue()
        for numbered in enumerate(given):
            waiting.put(numbered)

        def work_on() -> None:
            with suppress(queue.Empty):
                while not stopped.is_set():
                    place, each = waiting.get_nowait()
                    try:
                        ready.put((place, work(each), None))
                    except BaseException as error:
                        ready.put((place, None, error))

        _ = self._http  # made once, before there are threads that would each make one
        made: dict[int, _Output] = {}
        try:
            for _ in range(min(self.limits.concurrency, len(given))):
                # Daemons: an interrupted run must not wait for a service that is slow.
                threading.Thread(target=work_on, name="pytest-invari-service", daemon=True).start()
            while len(made) < len(given):
                place, result, error = ready.get()
                if error is not None:
                    raise error
                made[place] = result  # type: ignore[assignment]  # there is one where there is no error
                done()
        except BaseException:
            stopped.set()
            self._stopped = threading.Event()
            raise
        return [made[place] for place in range(len(given))]

    @cached_property
    def _secret(self) -> str:
        return self._key.read()

    @cached_property
    def _hidden(self) -> Hiding:
        return Hiding(self._secret)

    @cached_property
    def _http(self) -> httpx2.Client:
        import httpx2

        limits = httpx2.Limits(
            max_connections=self.limits.concurrency, max_keepalive_connections=self.limits.concurrency
        )
        http = httpx2.Client(
            headers=self._headers(),
            timeout=self.limits.timeout,
            follow_redirects=False,
            limits=limits,
            # A proxy would look for this machine's services on its own.
            transport=httpx2.HTTPTransport(limits=limits) if self.address.is_loopback else None,
        )
        # Connections are kept for the next call, and closed when nobody can make one.
        weakref.finalize(self, http.close)
        if self._secret:
            weakref.finalize(self, hide_in_logs(self._hidden))
        return http

    def _headers(self) -> dict[str, str]:
        key = {"authorization": f"Bearer {self._secret}"} if self._secret else {}
        # Not compressed: a small answer may grow without bounds when it is unpacked.
        json_only = {"content-type": "application/json", "accept": "application/json"}
        return {**json_only, "accept-encoding": "identity", **key}

    def _tried(self, method: str, path: str, content: bytes | None) -> Reply:
        attempt, stopped = 0, self._stopped
        while True:
            attempt += 1
            try:
                with self._host.place():
                    while (pause := self._host.pause) and not stopped.wait(pause):
                        pass
                    # Only now: much may have happened while this waited.
                    if self._host.outage or stopped.is_set():
                        break
                    reply, headers = self._call(method, path, content)
            except TransientServiceError as error:
                if attempt >= self.limits.attempts or (error.wait or 0.0) > LONGEST_WAIT:
                    told = f"{error} ({attempt} attempts)" if attempt > 1 else str(error)
                    self._host.note(told)
                    given_up = TransientServiceError(told)
                    given_up.attempts = attempt
                    raise given_up from None
                if error.wait is not None:
                    self._host.pause_for(error.wait)
                # Waits that double, and are drawn, so that many requests do not come back at once.
                wait = 0.0 if error.wait else min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1))
                stopped.wait(wait * random.uniform(0.5, 1.0))
            except ServiceError as error:
                self._host.note("")
                error.attempts = attempt
                raise
            else:
                self._host.note("")
                return Reply(reply, headers, attempt)
        raise TransientServiceError(f"not asked: {self.address} is away")

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
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            is_transient = isinstance(error, httpx2.TransportError) and not _is_distrusted(error)
            kind = TransientServiceError if is_transient else ServiceError
            raise kind(f"{url}: {self._short(one_line(error))}") from None
        headers = {name.lower(): self._hidden(value) for name, value in response.headers.items()}
        self._require_success(response.status_code, headers, body, url)
        try:
            return self._clean(json.loads(body)), headers
        except (ValueError, RecursionError):
            said = self._error_text(body)
            raise ServiceError(f"{url}: the answer is no JSON: {said or 'it is empty'}") from None

    def _read(self, response: httpx2.Response, deadline: float) -> bytes:
        import httpx2

        encoding = response.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            if not response.is_success:
                return b""
            shown = self._short(encoding)
            raise ServiceError(
                f"{response.url}: the answer is compressed ({shown}), though it was asked not to be"
            )
        parts, size = [], 0
        for part in response.iter_raw():
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
            target = self._short(headers.get("location", "nowhere"))
            raise ServiceError(
                f"{url}: answers {status}, a redirect to {target}, which is not followed; name the address "
                "that is meant"
            )
        message = f"{url}: answers {status}: {self._error_text(body) or 'without a text'}"
        if status in TRANSIENT or (status >= 500 and status not in LASTING):
            raise TransientServiceError(message, _retry_after(headers.get("retry-after", "")))
        raise ServiceError(message)

    def _error_text(self, body: bytes) -> str:
        # Before anything is cut, or a part of the key could remain.
        whole = self._hidden.in_json(body.decode("utf-8", "replace"))
        return self._short(" ".join(whole[: 4 * SHOWN].split()))

    def _short(self, text: str) -> str:
        safe = self._safe(text)
        return safe if len(safe) <= SHOWN else f"{safe[:SHOWN]}…"

    def _safe(self, text: str) -> str:
        """What a service says may repeat what it was sent."""
        return without_secrets(self._hidden(text))

    def _clean(self, content: Any) -> Any:
        """The same JSON as records may hold it: no text has the key in it, or half a character."""
        if isinstance(content, str):
            return self._hidden.in_answer(content).encode("utf-8", "replace").decode()
        if isinstance(content, list):
            return [self._clean(each) for each in content]
        if isinstance(content, dict):
            return {self._clean(name): self._clean(value) for name, value in content.items()}
        return content


def _is_distrusted(error: BaseException | None) -> bool:
    """Whether a connection failed because the other side did not prove who it is."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def _retry_after(value: str) -> float | None:
    """Seconds from a header ``Retry-After``, which is a number or a date; None where it is neither."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError, OSError):
            return None
    return max(0.0, seconds) if seconds < float("inf") else None
