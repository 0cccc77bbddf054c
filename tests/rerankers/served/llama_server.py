"""The embedded model's GGUF file behind llama.cpp's own server, run as a process of its own."""

from __future__ import annotations

import threading

import xllamacpp

from pytest_invari.rerankers.language_model.source import find_model


def main() -> None:
    settings = xllamacpp.CommonParams()
    settings.model.path = str(find_model("").path)
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    settings.n_ctx, settings.n_parallel = 8192, 4
    settings.cpuparams.n_threads = 1
    settings.warmup = False
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
