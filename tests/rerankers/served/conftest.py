"""A running chat server, and rerankers that ask it."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# pytester forgets what a run in this process imported; a second copy would not know the errors of the first.
import httpcore2
import httpx2
import pytest

LOADED = (httpcore2, httpx2)
HERE = Path(__file__).parent
# There are wheels of llama.cpp's server for the usual machines, and no others.
collect_ignore = [] if find_spec("xllamacpp") else ["test_llama_cpp.py"]


class ChatServer:
    """The server's address, and what it has seen."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.origin = f"http://127.0.0.1:{port}"
        self._numbers = itertools.count()

    def url(self, mode: str = "ok") -> str:
        """An address that behaves in this way, with counts of its own."""
        return f"{self.origin}/{mode}/{next(self._numbers)}"

    def seen(self, url: str = "") -> list[dict[str, Any]]:
        """The requests to this address, in the order in which they came."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.origin}/seen", timeout=10) as answer:
            found = json.load(answer)
        path = url.removeprefix(self.origin)
        return [request for request in found if request["path"].startswith(f"{path}/")]


@pytest.fixture(scope="session")
def chat_server() -> Iterator[ChatServer]:
    process = subprocess.Popen(
        [sys.executable, str(HERE / "chat_server.py")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield ChatServer(int(process.stdout.readline()))
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()
