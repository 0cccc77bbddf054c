"""A small server of rerank protocols, run as a process of its own.

A text's score is the number in it. The last part of the address before the protocol's own path says how the
server behaves: ``/ok/v2/rerank``, ``/shuffled/rerank``.

Run: rerank_server.py [PORT QUERY], with the query at which the process is killed
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

Results = list[dict[str, Any]]


def spellings(key: str) -> list[str]:
    """What a careless service may write of a key."""
    encoded = [base64.b64encode(each.encode()).decode() for each in (key, f"Bearer {key}")]
    return [key, f"Bearer {key}", quote(key, safe=""), *encoded]


def changed(results: Results, mode: str, score: str) -> Any:
    """The results as a service with this fault gives them."""
    faults: dict[str, Callable[[], Any]] = {
        "truncated": lambda: results[:-1],
        "shuffled": lambda: results[::-1],
        "duplicated": lambda: [*results[:-1], results[0]],
        "twice": lambda: [*results, results[0]],
        "negative": lambda: [{**results[0], "index": -1}, *results[1:]],
        "beyond": lambda: [{**results[0], "index": len(results)}, *results[1:]],
        "unnamed": lambda: [{score: results[0][score]}, *results[1:]],
        "text": lambda: [{**results[0], "index": str(results[0]["index"])}, *results[1:]],
        "truth": lambda: [{**results[0], "index": True}, *results[1:]],
        "nan": lambda: [{**results[0], score: float("nan")}, *results[1:]],
        "infinite": lambda: [{**results[0], score: float("inf")}, *results[1:]],
        "vast": lambda: [{**results[0], score: 10**400}, *results[1:]],
        "worded": lambda: [{**results[0], score: "high"}, *results[1:]],
        "unscored": lambda: [{"index": results[0]["index"]}, *results[1:]],
        "none": lambda: None,
        "nothing": lambda: [],
        "words": lambda: ["a", "b"],
    }
    return faults[mode]() if mode in faults else results


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: Server

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self._send(self.server.seen)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        _, mode, path = self.path.split("/", 2)
        with self.server.lock:
            self.server.seen.append(
                {"path": self.path, "body": body, "authorization": self.headers.get("authorization")}
            )
            if body["query"] == self.server.last:
                os.kill(os.getpid(), signal.SIGKILL)
        texts = body.get("texts", body.get("documents"))
        score = "score" if path == "rerank" else "relevance_score"
        values = [float((re.findall(r"-?\d+", text) or ["0"])[-1]) for text in texts]
        results: Results = [{"index": index, score: value} for index, value in enumerate(values)]
        results.sort(key=lambda each: -each[score])
        key = self.headers.get("authorization", "").removeprefix("Bearer ")
        if mode == "hostile" and body["query"] != "probe":
            self._send({"error": f"not with these: {' '.join(spellings(key))}"}, status=400)
            return
        if mode == "echoing":
            results = [{**each, "document": {"text": key}, key: spellings(key)} for each in results]
            body["model"] = f"m {' '.join(spellings(key))} "
        top = body.get("top_n", body.get("top_k"))
        self._send(self._content(path, changed(results[:top], mode, score), body, mode), path)

    def _content(self, path: str, results: Any, body: dict[str, Any], mode: str) -> Any:
        if path == "rerank":
            return results
        if path == "v2/rerank":
            return {"id": "1", "results": results, "meta": {"tokens": {"input_tokens": 77}}}
        place = "data" if mode.startswith("voyage") else "results"
        return {place: results, "model": f"{body['model']}-0417", "usage": {"total_tokens": 55}}

    def _send(self, content: Any, path: str = "", status: int = 200) -> None:
        # Some programs write a slash so.
        data = json.dumps(content).replace("/", "\\/").encode()
        self.send_response(status)
        self.send_header("x-echo", self.headers.get("authorization", ""))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if path == "rerank":
            self.send_header("x-compute-tokens", "33")
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int = 0, last: str = "") -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.lock = threading.Lock()
        self.last = last
        self.seen: list[dict[str, Any]] = []


if __name__ == "__main__":
    port, last = sys.argv[1:] or ("0", "")
    running = Server(int(port), last)
    print(running.server_address[1], flush=True)
    running.serve_forever()
