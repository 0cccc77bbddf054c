"""The benchmarks run and print what they promise; how fast is for who runs them to judge."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_metric_benchmarks_print_their_tables() -> None:
    command = [sys.executable, "-m", "benchmarks.metrics", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    blocks = done.stdout.strip().split("\n\n")
    titles, tables = blocks[::2], [block.splitlines() for block in blocks[1::2]]
    assert [re.split("[,:]", title)[0] for title in titles] == [
        "Against naive loops", "PPI", "Growth", "Exact GPI",
    ]  # fmt: skip
    # Two lines of each table are its head.
    rows = [[line.split() for line in table[2:]] for table in tables]
    assert [len(each) for each in rows] == [5, 2, 2, 1]
    assert [row[0] for row in rows[0]] == ["LOC", "PPI", "PPI", "GPI", "GPI"]
    # The last column is how many times longer the naive loops took.
    assert all(int(row[-1].replace(",", "")) > 1 for row in rows[0])


def test_the_benchmark_of_services_prints_its_tables() -> None:
    command = [sys.executable, "-m", "benchmarks.served", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    (many,) = (line for line in lines if line[:1] == ["64"] and len(line) == 3)
    # One after another, 64 requests of 50 ms take 3.2 s; that much at once must show.
    assert float(many[-1]) > 2
    assert [line[:2] for line in lines if len(line) == 5 and line[0].isdecimal()] == [["4", "5"], ["8", "5"]]
