"""A simulated rerank service: one request in flight against 64, and memory while rankings are made.

The service answers each request after a wait, as a model would, and does nothing else. The first part asks
the same requests both ways; the second ranks many views into records, in a process of its own for each size,
and tells by how much its memory grows.

Run: python -m benchmarks.served [--quick]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tabulate import tabulate

from pytest_invari.measure.runner import Runner
from pytest_invari.measure.subject import Subject
from pytest_invari.observation.plan import Plan
from pytest_invari.protocol import Candidate, Context, Request, rank_all
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import Task, TaskSet
from pytest_invari.tasks.taskfile import write_tasks

K = 10
WAIT = 0.05
PLACES = 64


class _Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    answer = ("[" + ",".join(f'{{"index":{place},"score":{-place}.5}}' for place in range(K)) + "]").encode()
    pair = b'[{"index":0,"score":1.5},{"index":1,"score":0.5}]'

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        time.sleep(WAIT)
        answer = self.pair if b"second text" in body else self.answer
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


def tasks(queries: int) -> TaskSet:
    """So many queries with K candidates each."""
    return TaskSet.of(
        "simulated",
        [
            Task(
                f"q{query}",
                Context(f"query {query}"),
                tuple(Candidate(f"q{query}i{item}", f"text {item} of query {query}") for item in range(K)),
            )
            for query in range(queries)
        ],
    )


def seconds(port: int, places: int, requests: list[Request]) -> float:
    """The wall time of the requests with so many in flight."""
    registry, lists = Registry(), tasks(1)
    spec = f"http+tei://127.0.0.1:{port}?concurrency={places}"
    reranker = registry.build(spec, Build(ModelSettings(), lists, K, registry))
    started = time.perf_counter()
    rankings = rank_all(reranker, requests)
    taken = time.perf_counter() - started
    assert all(ranking.status == "ok" for ranking in rankings)
    return taken


def measure(port: int, queries: int, views: int) -> None:
    """Rank so many views into records, and print the seconds and the growth of this process in MiB."""
    with tempfile.TemporaryDirectory() as name:
        write_tasks(Path(name) / "simulated.parquet", tasks(queries))
        runner = Runner(Registry(), records=Path(name) / "records", show_progress=False)
        spec = RerankerSpec.parse(f"http+tei://127.0.0.1:{port}?concurrency={PLACES}")
        subject = Subject(spec, Plan(str(Path(name) / "simulated.parquet"), K, None, views))
        runner.check(subject)
        runner.prepare(subject)
        before, started = _peak(), time.perf_counter()
        measured = runner.measure(subject)
        taken = time.perf_counter() - started
        assert measured.failure_count == 0
        print(f"{taken:.3f} {_peak() - before:.3f}")


def _peak() -> float:
    """The most memory that this process has held, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(quick: bool) -> None:
    """Start the service, and print both tables."""
    command = [sys.executable, "-m", "benchmarks.served"]
    service = subprocess.Popen([*command, "--serve"], stdout=subprocess.PIPE, text=True)
    assert service.stdout is not None
    try:
        port = int(service.stdout.readline())
        requests = [
            Request(task.query_id, task.context, task.candidates)
            for task in tasks(64 if quick else 512).tasks
        ]
        one, many = (seconds(port, places, requests) for places in (1, PLACES))
        print(f"In flight, {len(requests)} requests to a service that takes {1000 * WAIT:.0f} ms\n")
        rows = [(1, one, ""), (PLACES, many, f"{one / many:.1f}")]
        print(tabulate(rows, headers=["in flight", "seconds", "ratio"], floatfmt=".2f"))
        sizes = [(4, 5), (8, 5)] if quick else [(250, 20), (500, 20), (1000, 20)]
        print(f"\nMemory, {PLACES} in flight, rankings kept in records\n")
        grown = []
        for queries, views in sizes:
            done = subprocess.run(
                [*command, "--measure", str(port), str(queries), str(views)],
                check=True,
                capture_output=True,
                text=True,
            )
            taken, growth = map(float, done.stdout.split())
            grown.append((queries, views, taken, queries * views / taken, growth))
        heads = ["queries", "views", "seconds", "rankings/s", "MiB more at the most"]
        print(tabulate(grown, headers=heads, floatfmt=".1f"))
    finally:
        service.terminate()
        service.wait()
        service.stdout.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        server = _Server(("127.0.0.1", 0), _Service)
        print(server.server_address[1], flush=True)
        server.serve_forever()
    elif sys.argv[1:2] == ["--measure"]:
        measure(*map(int, sys.argv[2:]))
    else:
        main("--quick" in sys.argv[1:])
