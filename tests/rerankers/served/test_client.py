"""Calls of a service: what is bounded, tried again, shared between clients, refused and left behind."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.errors import InvariError, ServiceDownError
from pytest_invari.observation.observe import observe
from pytest_invari.observation.views import sample_views
from pytest_invari.protocol import Candidate, Context, Cost, Ranking, Request
from pytest_invari.rerankers.served import client as client_module
from pytest_invari.rerankers.served.address import Address, ApiKey
from pytest_invari.rerankers.served.client import Client, ServiceError, TransientServiceError, _retry_after
from pytest_invari.rerankers.served.host import OUTAGE, Limits
from pytest_invari.rerankers.served.service import Served
from pytest_invari.tasks.task import Task, TaskSet

from .conftest import ChatServer


def client(url: str, shared: dict[object, Any] | None = None, **limits: Any) -> Client:
    key = ApiKey.of("", str(limits.pop("key_file", "")), "")
    return Client(Address.parse(url), key, Limits(**limits), {} if shared is None else shared)


def echo(asked: Client, number: int = 0) -> Any:
    return asked.post("/echo", {"number": number}).content


def nothing() -> None:
    pass


# Bounds.


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("huge", "the answer is larger than 16 MiB"),
        ("bomb", "the answer is compressed (gzip), though it was asked not to be"),
        ("deep", "the answer is no JSON: [[["),
        ("empty", "the answer is no JSON: it is empty"),
        ("truncated", "the answer is no JSON: {"),
        ("redirect", "which is not followed; name the address that is meant"),
        ("long_redirect", "a redirect to http://xxx"),
        ("unknown_model", "answers 404:"),
    ],
)
def test_what_will_not_be_better_is_asked_once(chat_server: ChatServer, mode: str, message: str) -> None:
    url = chat_server.url(mode)
    with pytest.raises(ServiceError) as raised:
        echo(client(url))
    assert message in str(raised.value)
    assert str(raised.value).startswith(url)
    assert not isinstance(raised.value, TransientServiceError)
    assert len(chat_server.seen(url)) == 1
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize("mode", ["slow", "drip"])
def test_an_attempt_ends_in_time_though_bytes_drip(chat_server: ChatServer, mode: str) -> None:
    started = time.monotonic()
    with pytest.raises(TransientServiceError, match=r"no whole answer within 0.3 seconds"):
        echo(client(chat_server.url(mode), timeout=0.3, attempts=1))
    assert time.monotonic() - started < 2


def test_an_answer_that_is_cut_off_is_asked_for_again(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.01)
    url = chat_server.url("cut_off")
    with pytest.raises(TransientServiceError, match=r"incomplete.*\(3 attempts\)|closed.*\(3 attempts\)"):
        echo(client(url, attempts=3))
    assert len(chat_server.seen(url)) == 3


def test_nobody_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.01)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(TransientServiceError, match=r"Connection refused \(2 attempts\)"):
            echo(client(url, attempts=2))


def test_what_is_told_of_a_broken_answer_is_short(chat_server: ChatServer) -> None:
    with pytest.raises(TransientServiceError, match="illegal header line") as raised:
        echo(client(chat_server.url("long_header"), attempts=1))
    assert len(str(raised.value)) < 400


# Retries.


def test_waits_double_and_differ(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.1)
    url = chat_server.url("twice")
    assert client(url).post("/echo", {}).attempts == 3
    times = [request["time"] for request in chat_server.seen(url)]
    first, second = times[1] - times[0], times[2] - times[1]
    assert 0.05 <= first < 0.15
    assert 0.1 <= second < 0.25


def test_a_pause_that_the_host_asks_for_holds_for_all_of_its_clients(chat_server: ChatServer) -> None:
    shared: dict[object, Any] = {}
    limited, other = client(chat_server.url("limited"), shared), client(chat_server.url(), shared)
    first = threading.Thread(target=echo, args=(limited,))
    started = time.monotonic()
    first.start()
    while not chat_server.seen(str(limited.address).rstrip()):
        time.sleep(0.01)
    time.sleep(0.05)
    echo(other)
    assert 0.9 <= time.monotonic() - started < 2
    first.join()


def test_a_host_that_asks_to_be_left_for_a_day_is_not_waited_for(chat_server: ChatServer) -> None:
    url = chat_server.url("away")
    with pytest.raises(TransientServiceError, match=r"answers 429: .*come back tomorrow"):
        echo(client(url))
    assert len(chat_server.seen(url)) == 1


def test_retry_after_is_a_number_or_a_date() -> None:
    assert _retry_after("3") == 3
    assert _retry_after("-3") == 0
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 28 < (_retry_after(soon) or 0) <= 30
    assert [_retry_after(value) for value in ("", "soon", "nan", "inf", "1e999")] == [None] * 5
    assert _retry_after(f"Mon, 30 Nov {10**20} 10:00:00 GMT") is None
    assert _retry_after(f"Mon, 30 Nov 2026 10:00:00 +{10**12}") is None


def test_a_status_beyond_the_standard_is_asked_again(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.01)
    assert client(chat_server.url("overloaded")).post("/echo", {}).attempts == 2


# Many in flight.


def test_results_keep_their_order_and_progress_counts_each(chat_server: ChatServer) -> None:
    asked, done = client(chat_server.url("brisk"), concurrency=5), []
    found = asked.each(lambda n: echo(asked, n)["echo"]["number"], range(40), lambda: done.append(1))
    assert found == list(range(40))
    assert len(done) == 40


def test_the_limit_of_a_host_holds_for_all_of_its_clients_together(chat_server: ChatServer) -> None:
    shared: dict[object, Any] = {}
    url = chat_server.url("brisk")
    many, few = client(url, shared, concurrency=16), client(url, shared, concurrency=3)
    threads = [
        threading.Thread(target=each.each, args=(lambda n, each=each: echo(each, n), range(20), nothing))
        for each in (many, few)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = chat_server.seen(url)
    assert len(seen) == 40
    assert max(request["body"]["in_flight"] for request in seen) == 3


def test_requests_run_at_the_same_time(chat_server: ChatServer) -> None:
    url = chat_server.url("brisk")
    asked = client(url, concurrency=8)
    asked.each(lambda n: echo(asked, n), range(64), nothing)
    assert max(request["body"]["in_flight"] for request in chat_server.seen(url)) >= 6


def test_an_error_that_is_no_answer_ends_the_batch(chat_server: ChatServer) -> None:
    url = chat_server.url("brisk")
    asked = client(url, concurrency=2)

    def broken(number: int) -> Any:
        if number == 3:
            raise ZeroDivisionError("broken")
        return echo(asked, number)

    with pytest.raises(ZeroDivisionError, match="broken"):
        asked.each(broken, range(100), nothing)
    assert len(chat_server.seen(url)) < 20
    assert asked.each(lambda n: echo(asked, n)["echo"]["number"], [7, 8], nothing) == [7, 8]


def test_what_waits_for_the_end_of_a_pause_is_not_asked_after_an_interruption(
    chat_server: ChatServer,
) -> None:
    url = chat_server.url()
    asked = client(url, concurrency=2)
    asked._host.pause_for(60)

    def broken(number: int) -> Any:
        if number == 1:
            raise ZeroDivisionError("broken")
        return echo(asked, number)

    with pytest.raises(ZeroDivisionError):
        asked.each(broken, range(2), nothing)
    for thread in threading.enumerate():
        if thread.name == "pytest-invari-service":
            thread.join(10)
    assert not chat_server.seen(url)


INTERRUPTED = """
import sys, time
from pytest_invari.rerankers.served.address import Address, ApiKey
from pytest_invari.rerankers.served.client import Client
from pytest_invari.rerankers.served.host import Limits

asked = Client(Address.parse(sys.argv[1]), ApiKey(is_wanted=False), Limits(concurrency=4), {})
try:
    print("asking", flush=True)
    asked.each(lambda n: asked.post("/echo", {"n": n}), range(int(sys.argv[2])), lambda: None)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("count", [1, 20])
def test_an_interruption_waits_for_nobody(chat_server: ChatServer, count: int) -> None:
    url = chat_server.url("slow")
    command = [sys.executable, "-W", "error", "-c", INTERRUPTED, url, str(count)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "asking\n"
    while len(chat_server.seen(url)) < min(count, 4):
        time.sleep(0.02)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (out, err, process.returncode) == ("interrupted\n", "", 0)
    assert time.monotonic() - started < 5
    assert len(chat_server.seen(url)) == min(count, 4)


# Outages.


class Echoed(Served):
    """Ranks by the given order once the service has answered."""

    def ask(self, request: Request) -> Ranking:
        message = {"content": f"X. {request.query_id}"}
        self.client.post("/v1/chat/completions", {"messages": [message], "top_logprobs": 5, "model": "m"})
        return Ranking.from_order(request, request.ids, cost=Cost(calls=1, depth=1))

    def fingerprint(self) -> dict[str, object]:
        return {"reranker": "echoed"}


class Kept:
    """A store that forgets nothing."""

    def __init__(self) -> None:
        self.seen: dict[Any, Any] = {}

    def read(self) -> dict[Any, Any]:
        return dict(self.seen)

    def append(self, observations: Any) -> None:
        self.seen |= {each.key: each for each in observations}

    def compact(self) -> None:
        pass


def tasks(count: int) -> TaskSet:
    three = tuple(Candidate(each, each) for each in "abc")
    return TaskSet.of("lists", (Task(f"q{n}", Context("x"), three, {"a": 1.0}, 1) for n in range(count)))


def test_a_service_that_goes_away_ends_the_run_and_what_failed_is_ranked_by_the_next(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.01)
    lists = tasks(80)
    views = {task.query_id: sample_views(task.query_id, task.ids, 2) for task in lists.tasks}
    store, shared = Kept(), dict[object, Any]()
    first = Echoed(client(chat_server.url(), shared, concurrency=2))
    observe(first, tasks(10), views, store)
    assert len(store.seen) == 20
    url = chat_server.url("broken")
    away = Echoed(client(url, shared, concurrency=2, attempts=2))
    with pytest.raises(ServiceDownError, match=r"is away: .* 503: .*no model is loaded.*\(2 attempts\)"):
        observe(away, lists, views, store)
    asked = len(chat_server.seen(url))
    assert 2 * OUTAGE <= asked <= 2 * OUTAGE + 4
    # Nothing more is asked of this host, whoever asks.
    with pytest.raises(ServiceDownError):
        first.rank_many([Request("q", Context("x"), lists.tasks[0].candidates)])
    assert len(chat_server.seen(url)) == asked
    failed = [each for each in store.seen.values() if each.ranking.status == "failed"]
    assert len(store.seen) - len(failed) == 20
    assert len(failed) >= OUTAGE
    assert all(each.ranking.is_transient for each in failed)
    back = Echoed(client(chat_server.url(), {}, concurrency=2))
    seen = observe(back, lists, views, store)
    assert [each.ranking.status for each in seen] == ["ok"] * 160


def test_an_answer_in_between_is_no_outage(chat_server: ChatServer) -> None:
    asked = Echoed(client(chat_server.url("odd"), concurrency=1, attempts=1))
    pair = (Candidate("a", "a"), Candidate("b", "b"))
    requests = [Request(f"q{n}", Context("x"), pair) for n in range(40)]
    rankings = asked.rank_many(requests)
    assert [each.status for each in rankings] == ["ok", "failed"] * 20
    assert asked.rank_many(requests[:1])[0].status == "ok"


# Who is asked.


class _Hello(BaseHTTPRequestHandler):
    """Answers every request, and notes it."""

    def do_POST(self) -> None:
        self.server.seen.append((self.path, dict(self.headers.items())))  # type: ignore[attr-defined]
        body = b'{"from": "proxy"}'
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def hello() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hello)
    server.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for localhost that nobody has signed."""
    path = tmp_path / "server.pem"
    signed = tmp_path / "signed.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    more = ["-addext", names, "-keyout", str(path), "-out", str(signed)]
    subprocess.run([*command.split(), *more], check=True, capture_output=True)
    path.write_text(path.read_text() + signed.read_text())
    return path


def test_a_certificate_that_nobody_has_signed_is_refused_at_once(
    hello: ThreadingHTTPServer, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    hello.socket = context.wrap_socket(hello.socket, server_side=True)
    url = f"https://localhost:{hello.server_address[1]}"
    started = time.monotonic()
    with pytest.raises(ServiceError, match="CERTIFICATE_VERIFY_FAILED") as raised:
        echo(client(url))
    assert not isinstance(raised.value, TransientServiceError)
    assert time.monotonic() - started < 2
    assert not hello.seen  # type: ignore[attr-defined]
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert echo(client(url)) == {"from": "proxy"}


def test_a_proxy_is_used_for_other_machines_alone(
    hello: ThreadingHTTPServer, chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{hello.server_address[1]}")
    assert echo(client("http://service.example.org:8000/base")) == {"from": "proxy"}
    assert [path for path, _ in hello.seen] == ["http://service.example.org:8000/base/echo"]  # type: ignore[attr-defined]
    assert echo(client(chat_server.url()))["echo"] == {"number": 0}
    assert echo(client(chat_server.url().replace("127.0.0.1", "localhost")))["echo"] == {"number": 0}
    assert len(hello.seen) == 1  # type: ignore[attr-defined]


def test_a_proxy_that_cannot_be_used_is_told_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "socks9://user:hunter22@proxy.example.org:1")
    with pytest.raises(InvariError, match="cannot be called with the proxies and certificates") as raised:
        client("https://service.example.org").check()
    assert "hunter22" not in str(raised.value)
    client("http://localhost:8000").check()


def test_a_key_is_not_sent_by_plain_http_to_another_machine(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("planted-Key.0123456789")
    for url in ("http://service.example.org", "http://10.0.0.1:8000"):
        with pytest.raises(InvariError, match="is plain HTTP to another machine"):
            client(url, key_file=tmp_path / "key").check()
    for url in (
        "http://localhost:8000",
        "http://127.0.0.2",
        "http://[::1]:80",
        "https://service.example.org",
    ):
        client(url, key_file=tmp_path / "key").check()


def test_a_key_that_an_error_repeats_is_hidden_also_where_the_text_is_cut(
    chat_server: ChatServer, tmp_path: Path
) -> None:
    key = "planted-Key.0123456789"
    (tmp_path / "key").write_text(key)
    asked = client("http://localhost", key_file=tmp_path / "key")
    asked.check()
    for spaces in range(760, 810):
        told = asked._error_text(b"{" + b" " * spaces + f"{key} is wrong".encode())
        assert key[:8] not in told
    with pytest.raises(ServiceError, match=r"is compressed \(\(hidden\)\)"):
        echo(client(chat_server.url("encoded"), key_file=tmp_path / "key"))
    with pytest.raises(ServiceError) as raised:
        echo(client(chat_server.url("hostile"), key_file=tmp_path / "key"))
    assert key not in str(raised.value)
    assert "you sent Bearer (hidden)" in str(raised.value)
