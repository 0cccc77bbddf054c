"""Seeded rankings, and what a kernel takes for them: seconds and memory, each measured in a fresh process."""

from __future__ import annotations

import multiprocessing
import os
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import numpy as np

from benchmarks import naive
from pytest_invari.metrics.arrays import Integers, PerQuery
from pytest_invari.metrics.gpi import gpi, gpi_exact
from pytest_invari.metrics.loc import loc
from pytest_invari.metrics.ppi import ppi

Given = ParamSpec("Given")
Found = TypeVar("Found")

KERNELS: dict[str, Callable[[Integers, Integers], PerQuery]] = {
    "PPI": ppi,
    "LOC": lambda positions, ranks: loc(ranks),
    "GPI": lambda positions, ranks: gpi(ranks),
    "exact GPI": lambda positions, ranks: gpi_exact(ranks),
}
NAIVE: dict[str, dict[str, naive.NaiveMetric]] = {
    "LOC": {"scipy.stats.kendalltau loops": naive.loc_by_scipy},
    "PPI": {"plain loops": naive.ppi_by_loops, "tests' exact loops": naive.ppi_by_oracle},
    "GPI": {"plain loops": naive.gpi_by_loops, "tests' exact loops": naive.gpi_by_oracle},
}

# Noise on the items' common utility, of one standard deviation, by the LOC that it gives.
TYPICAL, COIN_FLIP = 0.47, 1000.0

_AT_ONCE = 1000
_SECONDS = 0.6


@dataclass(frozen=True)
class Case:
    """N queries, M views, K items, and how noisy the reranker is."""

    queries: int
    views: int
    items: int
    noise: float = TYPICAL

    def rankings(self, first: int | None = None) -> tuple[Integers, Integers]:
        """Positions and ranks, int16 (N, M, K); or those of the *first* queries alone.

        They are made a thousand queries at a time, so that they take little more memory than they fill.
        """
        queries = self.queries if first is None else min(first, self.queries)
        positions, ranks = np.empty((2, queries, self.views, self.items), np.int16)
        for start in range(0, queries, _AT_ONCE):
            random = np.random.default_rng([self.views, self.items, start])
            shape = (_AT_ONCE, self.views, self.items)
            scores = random.normal(size=(_AT_ONCE, 1, self.items)) + self.noise * random.normal(size=shape)
            shown = random.random(shape)
            chunk = slice(start, start + _AT_ONCE)
            fill = len(ranks[chunk])
            ranks[chunk] = (-scores[:fill]).argsort(axis=-1).argsort(axis=-1)
            positions[chunk] = shown[:fill].argsort(axis=-1)
        return positions, ranks


@dataclass(frozen=True)
class Measured:
    """What a kernel took: the best time, the memory beyond its inputs, and what it found.

    ``results`` bytes are left when it is done; ``working`` bytes more were in use at the worst moment.
    """

    seconds: float
    working: int
    results: int
    found: PerQuery


def in_process(function: Callable[Given, Found], *args: Given.args, **kwargs: Given.kwargs) -> Found:
    """Call *function* in a process of its own that has one thread."""
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


def measure(name: str, case: Case) -> Measured:
    """Run a kernel for over half a second, at least once after a first run that does not count."""
    kernel = KERNELS[name]
    inputs = case.rankings()
    tracemalloc.start()
    found = kernel(*inputs)
    results, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    times: list[float] = []
    while sum(times) < _SECONDS:
        started = time.perf_counter()
        kernel(*inputs)
        times.append(time.perf_counter() - started)
    return Measured(min(times), peak - results, results, found)


def measure_naive(name: str, way: str, case: Case, sample: int) -> tuple[float, list[float]]:
    """Seconds and values of naive loops on the first *sample* queries of a case."""
    positions, ranks = (each.tolist() for each in case.rankings(sample))
    function = NAIVE[name][way]
    function(positions[0][:2], ranks[0][:2])  # Imports what it needs.
    started = time.perf_counter()
    values = [function(shown, views) for shown, views in zip(positions, ranks, strict=True)]
    return time.perf_counter() - started, values
