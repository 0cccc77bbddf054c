"""What PPI, LOC and GPI cost: against naive loops, and as queries, views and items grow.

Run: python -m benchmarks.metrics [--quick]

One thread, fixed seeds; every figure of a kernel is of a process of its own. Naive loops run on a few
queries, as the table says, and are scaled to all in proportion; they must give the kernel's values.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from tabulate import tabulate

from benchmarks.kernels import COIN_FLIP, NAIVE, TYPICAL, Case, Measured, in_process, measure, measure_naive

MIB = 1 << 20
CONSISTENCY = ("PPI", "LOC", "GPI")
# Seconds for PPI, LOC and GPI of 1,000 queries with 20 views, by items.
GOALS = {25: 0.15, 50: 1.0}


@dataclass(frozen=True)
class Plan:
    """What to measure; naive loops on so many queries, by metric, way and items."""

    compared: tuple[Case, ...]
    samples: dict[tuple[str, str], tuple[int, ...]]
    growth: tuple[Case, ...]
    exact: tuple[Case, ...]


BASE = Case(1000, 20, 25)
FULL = Plan(
    compared=(BASE, replace(BASE, items=50)),
    samples={
        ("LOC", "scipy.stats.kendalltau loops"): (20, 20),
        ("PPI", "plain loops"): (50, 20),
        ("PPI", "tests' exact loops"): (10, 4),
        ("GPI", "plain loops"): (20, 2),
        ("GPI", "tests' exact loops"): (3, 1),
    },
    growth=(
        *(Case(queries, 20, 10) for queries in (1_000, 10_000, 100_000)),
        *(replace(BASE, views=views) for views in (10, 20, 64, 100)),
        *(replace(BASE, items=items) for items in (10, 25, 50, 100)),
    ),
    exact=(
        Case(1000, 20, 10), Case(1000, 20, 10, COIN_FLIP),
        Case(1000, 20, 25), Case(200, 20, 25, COIN_FLIP),
        Case(500, 20, 50), Case(50, 20, 50, COIN_FLIP),
        Case(50, 20, 100), Case(5, 20, 100, COIN_FLIP),
    ),
)  # fmt: skip
QUICK = Plan(
    compared=(Case(1000, 20, 10),),
    samples=dict.fromkeys(FULL.samples, (2,)),
    growth=(Case(1_000, 20, 10), Case(2_000, 20, 10)),
    exact=(Case(1_000, 20, 10),),
)


def main() -> None:
    """Measure and print one table after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, a few seconds")
    plan = QUICK if parser.parse_args().quick else FULL
    show("Against naive loops, M = 20, one thread", against_naive(plan))
    show("PPI, LOC and GPI together, M = 20", together(plan))
    show("Growth: milliseconds, and MiB in use beyond inputs and results", growth(plan))
    show("Exact GPI, M = 20", exact(plan))


def show(title: str, rows: Iterator[dict[str, Any]]) -> None:
    """Print a titled table."""
    table = tabulate(list(rows), headers="keys", floatfmt=",.4g", intfmt=",", missingval="")
    print(f"{title}\n\n{table}\n", flush=True)


def against_naive(plan: Plan) -> Iterator[dict[str, Any]]:
    """How many times longer naive loops take."""
    for place, case in enumerate(plan.compared):
        kernels = {name: measured(name, case) for name in NAIVE}
        for (name, way), samples in plan.samples.items():
            seconds, values = in_process(measure_naive, name, way, case, samples[place])
            kernel = kernels[name]
            np.testing.assert_allclose(kernel.found.values[: len(values)], values, rtol=0, atol=1e-12)
            scaled = seconds * case.queries / len(values)
            yield {
                "metric": name, "queries": case.queries, "K": case.items,
                "kernel (ms)": 1000 * kernel.seconds, "against": way, "on queries": len(values),
                "scaled to all (s)": scaled, "ratio": round(scaled / kernel.seconds),
            }  # fmt: skip


def together(plan: Plan) -> Iterator[dict[str, Any]]:
    """The three metrics of one set of rankings, and the goal for it."""
    for case in (replace(each, noise=noise) for each in plan.compared for noise in (TYPICAL, COIN_FLIP)):
        taken = {name: measured(name, case) for name in CONSISTENCY}
        seconds = sum(each.seconds for each in taken.values())
        yield {
            "queries": case.queries, "K": case.items, "their LOC": their_loc(case),
            **{f"{name} (ms)": 1000 * each.seconds for name, each in taken.items()},
            "together (s)": seconds, "goal (s)": GOALS.get(case.items),
        }  # fmt: skip


def growth(plan: Plan) -> Iterator[dict[str, Any]]:
    """Time and memory of each metric as one size grows."""
    for case in plan.growth:
        taken = {name: measured(name, case) for name in CONSISTENCY}
        yield {
            "queries": case.queries, "M": case.views, "K": case.items,
            **{f"{name} (ms)": 1000 * each.seconds for name, each in taken.items()},
            **{f"{name} (MiB)": each.working / MIB for name, each in taken.items()},
            "inputs (MiB)": 2 * 2 * case.queries * case.views * case.items / MIB,
            "results (MiB)": max(each.results for each in taken.values()) / MIB,
        }  # fmt: skip


def exact(plan: Plan) -> Iterator[dict[str, Any]]:
    """What the best ranking costs to prove, and how far the swap search is from it."""
    for case in plan.exact:
        best, swap = (measured(name, case) for name in ("exact GPI", "GPI"))
        proven = best.found.defined
        excess = (swap.found.values - best.found.values)[proven]
        yield {
            "queries": case.queries, "K": case.items, "their LOC": their_loc(case),
            "ms a query": 1000 * best.seconds / case.queries, "proven": f"{proven.mean():.0%}",
            "swap search finds the best": f"{(excess == 0).mean():.0%}" if proven.any() else None,
            "its mean excess": excess.mean() if proven.any() else None, "MiB": best.working / MIB,
        }  # fmt: skip


def their_loc(case: Case) -> float:
    """The LOC of the rankings, without a minus before 0."""
    return round(measured("LOC", case).found.mean, 3) + 0.0


@cache
def measured(name: str, case: Case) -> Measured:
    """A kernel measured in a process of its own, once for all tables."""
    return in_process(measure, name, case)


if __name__ == "__main__":
    main()
