"""How torch's threads get along with other processes that want the same cores."""

from __future__ import annotations

import os


def let_idle_threads_sleep() -> None:
    """Have torch's idle threads sleep, unless the environment says how they wait.

    Idle threads that spin make a run of two threads ten times slower as soon as another process needs a core.
    OpenMP reads how to wait when it is loaded, so this must come before anything imports torch.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def share_cores() -> None:
    """Have each worker of pytest-xdist take its share of the cores, unless the environment gives a number."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1 and "OMP_NUM_THREADS" not in os.environ:
        import torch

        torch.set_num_threads(max(1, (os.cpu_count() or 1) // workers))
