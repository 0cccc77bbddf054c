"""A small server of the OpenAI chat protocol, run as a process of its own.

Its model reads candidates as ``A. film 7`` and likes larger numbers. The first part of a path says how it
behaves, as in ``/no_logprobs/v1/chat/completions``; the second may tell one test's counts from another's.
"""

from __future__ import annotations

import json
import math
import re
import socket
import struct
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = frozenset({"Yes", "No", "first", "second"})
# What the model says where it says no label, the most probable first.
OTHERS = ("I", "The", "Sure", "1", "\n", "None", "It", "We", "My", "So", "As", "To", "On", "At", "In")
SPACED = 0.1
LONGEST = 4096


class Model:
    """Deterministic: softmax of the numbers in the texts, with a share for labels after a space."""

    @staticmethod
    def tokens(text: str) -> list[str]:
        """Single characters and a few words, each also with a space before it."""
        return re.findall(rf" ?(?:{'|'.join(sorted(WORDS))})| ?\S|\s", text)

    def first_tokens(self, prompt: str, likes: str) -> dict[str, float]:
        """The log-probabilities of what may come first, by token."""
        if told := re.search(r"nothing else: (\S+)", prompt):
            label = self.tokens(told[1])[0]
            return {label: -0.1, **{other: -3.0 - place for place, other in enumerate(OTHERS)}}
        found = re.findall(r"^(\S+)\. (.*)$", prompt, re.MULTILINE)
        liked = {label: float((re.findall(r"\d+", text) or ["0"])[-1]) / 4 for label, text in found}
        if likes == "place":
            liked = {label: -place / 2 for place, (label, _) in enumerate(found)}
        total = math.log(sum(map(math.exp, liked.values())) / 0.9) if liked else 0.0
        scores = {}
        for label, value in liked.items():
            scores[self.tokens(label)[0]] = value - total + math.log(1 - SPACED)
            scores[self.tokens(f" {label}")[0]] = value - total + math.log(SPACED)
        floor = min(scores.values(), default=-1.0)
        return scores | {other: floor - 1 - place for place, other in enumerate(OTHERS)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: Server

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/seen":
            self._send(200, self.server.seen)
        else:
            self._act({})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        self._act(json.loads(raw or b"{}"))

    def _act(self, body: dict[str, Any]) -> None:
        mode = self.path.split("/")[1]
        with self.server.lock:
            self.server.counts[self.path] += 1
            count = self.server.counts[self.path]
            self.server.seen.append(
                {
                    "path": self.path,
                    "headers": {name.lower(): value for name, value in self.headers.items()},
                    "body": body,
                    "time": time.monotonic(),
                }
            )
        fault = getattr(self, f"_{mode}", None)
        if not (fault and fault(body, count)):
            self._answer(mode, body)

    # Faults of the connection and of HTTP: true where the request is dealt with.

    def _empty(self, body: Any, count: int) -> bool:
        return self._raw(200, b"")

    def _truncated(self, body: Any, count: int) -> bool:
        return self._raw(200, b'{"choices": [{"index": 0, "mess')

    def _cut_off(self, body: Any, count: int) -> bool:
        self._head(200, 1000)
        self.wfile.write(b'{"choices": ')
        self.close_connection = True
        return True

    def _deep(self, body: Any, count: int) -> bool:
        return self._raw(200, b"[" * 200_000)

    def _slow(self, body: Any, count: int) -> bool:
        time.sleep(30)
        return True

    def _brisk(self, body: Any, count: int) -> bool:
        """Answer how many were asked at the same time."""
        with self.server.lock:
            self.server.in_flight[self.path] += 1
            body["in_flight"] = self.server.in_flight[self.path]
        time.sleep(0.02)
        with self.server.lock:
            self.server.in_flight[self.path] -= 1
        return False

    def _drip(self, body: Any, count: int) -> bool:
        self._head(200, 10_000)
        for _ in range(10_000):
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(0.05)
        return True

    def _huge(self, body: Any, count: int) -> bool:
        self._head(200, 64 << 20)
        for _ in range(64):
            self.wfile.write(b" " * (1 << 20))
        return True

    def _bomb(self, body: Any, count: int) -> bool:
        import gzip

        return self._raw(200, gzip.compress(b" " * (64 << 20), 9), {"content-encoding": "gzip"})

    def _encoded(self, body: Any, count: int) -> bool:
        """Named after the key."""
        return self._raw(200, b"{}", {"content-encoding": self.headers.get("authorization", "")[7:]})

    def _limited(self, body: Any, count: int) -> bool:
        return count == 1 and self._fail(429, "slow down", {"retry-after": "1"})

    def _gateway(self, body: Any, count: int) -> bool:
        import gzip

        return count == 1 and self._raw(502, gzip.compress(b"bad gateway"), {"content-encoding": "gzip"})

    def _fitful(self, body: Any, count: int) -> bool:
        """Ask for a short pause at every fifth request."""
        body["refused"] = count % 5 == 0
        return body["refused"] and self._hurried(body, count)

    def _hurried(self, body: Any, count: int) -> bool:
        return self._fail(429, "a moment", {"retry-after": "0.01"})

    def _away(self, body: Any, count: int) -> bool:
        return self._fail(429, "come back tomorrow", {"retry-after": "86400"})

    def _overloaded(self, body: Any, count: int) -> bool:
        """With a status that is in no standard."""
        return count == 1 and self._fail(529, "overloaded")

    def _twice(self, body: Any, count: int) -> bool:
        return count <= 2 and self._fail(500, "try again")

    def _broken(self, body: Any, count: int) -> bool:
        return self._fail(503, "no model is loaded")

    def _odd(self, body: Any, count: int) -> bool:
        """Refuse every other list: those whose first candidate has an odd number."""
        first = re.search(r"^\S+\. .*?(\d+)$", _text_of(body), re.MULTILINE)
        return bool(first and int(first[1]) % 2) and self._fail(500, "odd")

    def _reset(self, body: Any, count: int) -> bool:
        if count > 1:
            return False
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.rfile.close()
        self.connection.close()
        return True

    def _unknown_model(self, body: Any, count: int) -> bool:
        return self._fail(404, f"The model `{body.get('model')}` does not exist.")

    def _hostile(self, body: Any, count: int) -> bool:
        key = self.headers.get("authorization", "")
        return self._fail(400, f"\x1b[31m<script>alert(1)</script>\u202e you sent {key} | " + "x" * 5000)

    def _redirect(self, body: Any, count: int) -> bool:
        return self._raw(307, b"", {"location": f"http://{self.headers['host']}/ok{self.path[9:]}"})

    def _long_redirect(self, body: Any, count: int) -> bool:
        return self._raw(307, b"", {"location": "http://" + "x" * 20_000})

    def _long_header(self, body: Any, count: int) -> bool:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nno header " + b"x" * 20_000 + b"\r\n\r\n")
        self.close_connection = True
        return True

    # Answers.

    def _answer(self, mode: str, body: dict[str, Any]) -> None:
        if self.path.endswith("/tokenize"):
            self._tokenize(mode, body)
        elif self.path.endswith("/v1/chat/completions"):
            self._send(200, self._completion(mode, body))
        elif self.path.endswith("/echo"):
            self._send(200, {"echo": body})
        else:
            self._fail(404, "Not Found")

    def _tokenize(self, mode: str, body: dict[str, Any]) -> None:
        text = body.get("content" if mode == "llamacpp" else "prompt")
        if mode not in ("llamacpp", "vllm") or not isinstance(text, str):
            self._fail(404, "Not Found")
            return
        numbers = [self.server.number(token) for token in Model.tokens(text)]
        self._send(200, {"tokens": numbers})

    def _completion(self, mode: str, body: dict[str, Any]) -> dict[str, Any]:
        text = _text_of(body)
        cached = self.server.cached(text)
        tokens = Model().first_tokens(text, "place" if mode == "biased" else "number")
        listed = sorted(tokens.items(), key=lambda pair: -pair[1])[: body["top_logprobs"]]
        if mode == "few":
            listed = listed[:5]
        if mode == "thinking":
            listed = [("<think>", -0.01), ("\n", -5.0)]
        if mode == "no_b":
            listed = [pair for pair in listed if pair[0].strip() != "B"]
        rows: list[dict[str, Any]] = [
            {"token": token, "logprob": value, "bytes": None} for token, value in listed
        ]
        if mode == "twice_listed":
            rows += rows[:3]
        if mode == "same_text":
            rows = [row | {"token": row["token"].strip() or "_"} for row in rows]
        if mode == "nan":
            rows[1]["logprob"] = math.nan
        if mode == "vast":
            rows[1]["logprob"] = -(10**400)
        choice: dict[str, Any] = {
            "index": 0,
            "message": {"role": "assistant", "content": listed[0][0], "refusal": None},
            "logprobs": {"content": [{**rows[0], "top_logprobs": rows}]},
            "finish_reason": "length",
        }
        if mode == "odd_text":
            rows[0]["token"], choice["logprobs"]["content"][0]["token"] = "\ud83d", "\ud83d\x00\x1b[2J"
        if mode == "no_logprobs":
            choice["logprobs"] = None
        if mode == "no_alternatives":
            choice["logprobs"]["content"][0]["top_logprobs"] = []
        if mode == "refusal":
            choice["message"]["refusal"] = "I cannot help with that."
        if mode == "filtered":
            choice["finish_reason"] = "content_filter"
        key = self.headers.get("authorization", "")
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": f"served-{body['model']} {key}" if mode == "echoing" else f"served-{body['model']}",
            "system_fingerprint": f"fp_1{key if mode == 'echoing' else ''}",
            "choices": [] if mode in ("no_choices", "error_in_200") else [choice],
            "error": {"message": "out of memory"} if mode == "error_in_200" else None,
            "usage": {
                "prompt_tokens": 10**30 if mode == "odd_text" else len(text) // 4,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": cached // 4},
            },
        }

    def _fail(self, status: int, message: str, headers: dict[str, str] | None = None) -> bool:
        body = {"error": {"message": message, "type": "invalid_request_error", "code": status}}
        return self._raw(status, json.dumps(body, ensure_ascii=False).encode(), headers)

    def _send(self, status: int, body: Any) -> bool:
        return self._raw(status, json.dumps(body).encode())

    def _raw(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> bool:
        self._head(status, len(body), headers)
        self.wfile.write(body)
        self.wfile.flush()
        return True

    def _head(self, status: int, length: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"content-type": "application/json"} | (headers or {})).items():
            self.send_header(name, value)
        self.send_header("content-length", str(length))
        self.end_headers()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.seen: list[dict[str, Any]] = []
        self.in_flight: Counter[str] = Counter()
        self._prompts: list[str] = []
        self._numbers: dict[str, int] = {}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no fault of the server."""

    def number(self, token: str) -> int:
        with self.lock:
            return self._numbers.setdefault(token, len(self._numbers))

    def cached(self, prompt: str) -> int:
        """How many characters of the prompt begin one of the last prompts."""
        with self.lock:
            best = max((_common(prompt, other) for other in self._prompts), default=0)
            self._prompts = [*self._prompts, prompt][-LONGEST:]
        return best


def _common(one: str, other: str) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _text_of(body: dict[str, Any]) -> str:
    return "".join(message["content"] for message in body.get("messages", []))


def main() -> None:
    server = Server()
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
