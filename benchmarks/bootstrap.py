"""What intervals cost: ours against loops over SciPy in the same run, the correlations of P2, and memory.

Run: python benchmarks/bootstrap.py [--quick]
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import scipy.stats
from tabulate import tabulate

from pytest_invari.statistics import bootstrap_mean, paper_resamples, seeded_resamples
from pytest_invari.statistics.correlation import bootstrap_spearman

# The queries of P2's MovieLens blocks, and the metrics that one subject's table has.
QUERIES, METRICS, CORRELATIONS = 1113, 12, 12
GOAL_SECONDS = 1.0

Row = tuple[str, float, float | None, float]


def seconds(work: Callable[[], object]) -> float:
    """Processor time of one run, which other processes do not disturb."""
    started = time.process_time()
    work()
    return time.process_time() - started


def peak_mebibytes(work: Callable[[], object]) -> float:
    """The most memory that one run holds beyond what was there."""
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / (1 << 20)


def intervals_of_means(replicates: int) -> Row:
    """BCa intervals of several metrics of the same queries."""
    values = np.random.default_rng(0).beta(2, 3, (METRICS, QUERIES))

    def ours() -> None:
        seeded_resamples.cache_clear()
        resamples = seeded_resamples(QUERIES, "benchmark", replicates)
        for each in values:
            bootstrap_mean(each, resamples, bounds=(0, 1))

    def theirs() -> None:
        for each in values:
            scipy.stats.bootstrap((each,), np.mean, n_resamples=replicates, method="BCa", batch=1000, rng=0)

    ours()
    name = f"BCa intervals of {METRICS} means, B={replicates:,}"
    return name, seconds(ours), seconds(theirs), peak_mebibytes(ours)


def one_correlation(loops: int) -> Row:
    """One bootstrapped Spearman correlation; of SciPy's 1,000 calls *loops* are run."""
    random = np.random.default_rng(1)
    x, y = random.gamma(2, size=QUERIES), random.integers(0, 30, QUERIES).astype(np.float64)

    def ours() -> None:
        bootstrap_spearman({"x": x, "y": y}, {"rho": ("x", "y")}, paper_resamples(QUERIES))

    def theirs() -> None:
        for seed in range(2401, 2401 + loops):
            chosen = np.random.default_rng(seed).integers(0, QUERIES, QUERIES)
            scipy.stats.spearmanr(x[chosen], y[chosen])

    ours()
    name = "one Spearman correlation, 1,000 replicates"
    return name, seconds(ours), seconds(theirs) * 1000 / loops, peak_mebibytes(ours)


def paper_block() -> Row:
    """All correlations of one block of P2 by the same 1,000 resamples."""
    random = np.random.default_rng(2)
    vectors = {f"T_{each}": random.gamma(2, size=QUERIES) for each in range(CORRELATIONS)}
    vectors["V_2"] = random.gamma(2, size=QUERIES)
    pairs = {name: ("V_2", name) for name in vectors if name != "V_2"}

    def ours() -> None:
        bootstrap_spearman(vectors, pairs, paper_resamples(QUERIES))

    ours()
    name = f"{CORRELATIONS} Spearman correlations, 1,000 paired replicates"
    return name, seconds(ours), None, peak_mebibytes(ours)


def many_queries(replicates: int) -> Row:
    """One metric of 100,000 queries, whose draws are too many to keep."""
    values = np.random.default_rng(3).beta(2, 3, 100_000)

    def ours() -> None:
        bootstrap_mean(values, seeded_resamples(100_000, "benchmark", replicates), bounds=(0, 1))

    name = f"BCa interval of 100,000 queries, B={replicates:,}"
    return name, seconds(ours), None, peak_mebibytes(ours)


def main() -> None:
    """Print times, ratios and peaks, and whether the goal for P2's block is met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer replicates; the ratios stay about the same"
    )
    quick = parser.parse_args().quick
    rows = [
        intervals_of_means(999 if quick else 9999),
        one_correlation(100 if quick else 1000),
        paper_block(),
        # Above what is kept, so that the draws are made again.
        many_queries(1400 if quick else 9999),
    ]
    shown = [
        (
            name,
            f"{ours:.3f}",
            f"{theirs:.3f}" if theirs else "",
            f"{theirs / ours:.1f}" if theirs else "",
            f"{peak:.0f}",
        )
        for name, ours, theirs, peak in rows
    ]
    print(f"{QUERIES:,} queries unless told; processor time, to be run with OMP_NUM_THREADS=1\n")
    print(tabulate(shown, headers=["", "ours (s)", "SciPy (s)", "ratio", "peak (MiB)"], tablefmt="github"))
    block = rows[2][1]
    print(
        f"\nP2's block within {GOAL_SECONDS:g} s: {'yes' if block <= GOAL_SECONDS else 'no'} ({block:.3f} s)"
    )


if __name__ == "__main__":
    main()
