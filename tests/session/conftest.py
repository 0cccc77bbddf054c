"""A project that a user might have: a task file, a small suite, and pytest run in it."""

from __future__ import annotations

import json
import random
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# pytester forgets the modules that a run in this process imported, and NumPy may be loaded only once.
import numpy
import pyarrow.parquet
import pytest
import scipy.special
import tabulate
import tqdm

import pytest_invari.metrics.custom
import pytest_invari.session.plugin

# A package that stays keeps its modules, and what is imported anew would not know their classes.
from pytest_invari.reports.html import sections

LOADED = (
    numpy,
    pyarrow.parquet,
    scipy.special,
    tabulate,
    tqdm,
    pytest_invari.metrics.custom,
    pytest_invari.session.plugin,
    sections,
)

STRICT = ("-W", "error", "--strict-markers", "--strict-config")
# These two import themselves anew in every run, which takes longer than the run.
QUIET = ("-p", "no:hypothesispytest", "-p", "no:anyio")

SUITE = """
[suite]
name = "small"
title = "A small suite"
baseline = "random"

[profile.quick]
datasets = ["tasks.jsonl"]
k = [6]
views = 5
queries = 32

[profile.wide]
datasets = ["tasks.jsonl"]
k = [4, 6]
views = 5
queries = 32

[[criterion]]
name = "loc"
metric = "loc"
at_least = 0.75
why = "users notice when a page is reordered"

[[criterion]]
name = "gpi"
metric = "gpi"
at_most = 0.2

[[criterion]]
name = "loc_vs_baseline"
metric = "loc"
better_than = "baseline"

[[criterion]]
name = "calls"
metric = "calls"
at_most = "k"
"""


class Project:
    """A folder with ``tasks.jsonl`` and ``small.invari.toml``, and ways to run pytest there."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        # Most tests count calls, or have rerankers that fail in one of them, and ask no further questions.
        self.audits = False

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def write_suite(self, name: str, file: str = "", **bounds: str) -> Path:
        """Write a suite with a criterion for each metric: ``write_suite("open", loc="at_least = 0.9")``."""
        text = f'[suite]\nname = "{name}"\n[profile.quick]\ndatasets = ["tasks.jsonl"]\nk = 6\nviews = 5\n'
        for metric, bound in bounds.items():
            text += f'[[criterion]]\nname = "{metric}"\nmetric = "{metric}"\n{bound}\n'
        return self.write(file or f"{name}.invari.toml", text)

    def run(self, *arguments: str | Path, reranker: str | None = "first_stage") -> pytest.RunResult:
        """Run the small suite for *reranker* in this process."""
        given = [] if reranker is None else [f"--reranker={reranker}"]
        return self.pytest("--invari-suite=small.invari.toml", *given, *arguments)

    def pytest(self, *arguments: str | Path) -> pytest.RunResult:
        """Run pytest in this process, with every warning an error."""
        return self.pytester.runpytest_inprocess(*QUIET, *STRICT, *self._asked(arguments))

    def stopped(self, *arguments: str | Path) -> Any:
        """Run pytest in this process where somebody presses Ctrl-C; what it shows is left to ``capsys``."""
        given = (*QUIET, *STRICT, *self._asked(arguments))
        return self.pytester.inline_run(*given, no_reraise_ctrlc=True).ret

    def _asked(self, arguments: Sequence[str | Path]) -> Sequence[str | Path]:
        """The arguments, without an audit where there may be one."""
        words = [str(argument) for argument in arguments]
        has_suite = any(word.startswith("--invari-suite") or ".invari.toml" in word for word in words)
        if self.audits or not has_suite or "--invari-selfcheck" in words:
            return arguments
        return (*arguments, "--invari-no-audit")

    def ids(self, *arguments: str | Path) -> list[str]:
        """The ids that a run would have, as the user would see them."""
        result = self.pytest("--collect-only", "-q", *arguments)
        return [line for line in result.outlines if "::" in line]


def write_tasks(path: Path, queries: int = 32, k: int = 6) -> None:
    """Write tasks with two relevant candidates each, in an order of the candidates' own."""
    generator = random.Random(7)
    lines = []
    for query in range(queries):
        candidates = [
            {"id": f"q{query}i{item}", "text": f"Film {item}", "relevance": 1.0 if item < 2 else None}
            for item in range(k)
        ]
        generator.shuffle(candidates)
        lines.append(json.dumps({"query_id": f"q{query}", "text": "films", "candidates": candidates}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    write_tasks(pytester.path / "tasks.jsonl")
    made = Project(pytester)
    made.write("small.invari.toml", SUITE)
    return made
