"""What the plugin costs a pytest run that does not use it: wall time with it against ``-p no:invari``.

Run: python benchmarks/plugin_load.py [pairs]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tabulate import tabulate


def seconds(folder: Path, *arguments: str) -> float:
    """Wall time of one pytest process on a folder with one test."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main(pairs: int) -> None:
    """Run the pairs in turn and print both medians, their difference and their ratio."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        seconds(folder)  # Fills the caches of bytecode.
        runs = [(seconds(folder), seconds(folder, "-p", "no:invari")) for _ in range(pairs)]
    loaded, without = (statistics.median(column) for column in zip(*runs, strict=True))
    ratio = statistics.median(ours / theirs for ours, theirs in runs)
    rows = [("with invari", 1000 * loaded), ("-p no:invari", 1000 * without), ("ratio of pairs", ratio)]
    print(tabulate(rows, headers=["pytest on one test", f"median of {pairs} (ms)"], floatfmt=".2f"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
