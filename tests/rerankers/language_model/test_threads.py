"""Torch's threads leave the cores to others: idle ones sleep, and workers of pytest-xdist share."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# What the environment says of idle threads when torch is first looked for, and how many threads there are.
PROGRAM = """
import os, sys

class Watch:
    waits = None
    def find_spec(self, name, path=None, target=None):
        if name == "torch" and path is None:
            import inspect
            is_import = any(frame.function == "_find_and_load" for frame in inspect.stack(0))
            if is_import and Watch.waits is None:
                Watch.waits = os.environ.get("OMP_WAIT_POLICY")

sys.meta_path.insert(0, Watch())

from pytest_invari.tasks.task import TaskSet
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.settings import ModelSettings
from pytest_invari.rerankers.zero_shot import make

reranker = make(Build(ModelSettings(), TaskSet.of("none", ()), 5, Registry(), {}))
reranker.check()
if "loaded" in sys.argv:
    reranker.prepare()

import torch

print(Watch.waits, torch.get_num_threads())
"""


def waits_and_threads(*arguments: str, **variables: str) -> list[str]:
    ours = ("OMP_WAIT_POLICY", "OMP_NUM_THREADS", "PYTEST_XDIST_WORKER_COUNT")
    environment = {name: value for name, value in os.environ.items() if name not in ours} | variables
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.model
def test_idle_threads_sleep_and_workers_share_the_cores() -> None:
    cores = os.cpu_count() or 1
    assert waits_and_threads("loaded", PYTEST_XDIST_WORKER_COUNT=str(cores)) == ["PASSIVE", "1"]


@pytest.mark.model
def test_what_the_environment_says_is_heeded() -> None:
    said = {"OMP_WAIT_POLICY": "ACTIVE", "OMP_NUM_THREADS": "1", "PYTEST_XDIST_WORKER_COUNT": "1"}
    assert waits_and_threads(**said) == ["ACTIVE", "1"]
