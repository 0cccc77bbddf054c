"""A project with tests of its own that use the fixture."""

from __future__ import annotations

import json
import random
import textwrap
from pathlib import Path

# pytester forgets the modules that a run in this process imported, and NumPy may be loaded only once.
import numpy
import pandas
import pyarrow.parquet
import pytest
import scipy.special

import pytest_invari.testing.studies

LOADED = (numpy, pandas, pyarrow.parquet, scipy.special, pytest_invari.testing.studies)

QUIET = ("-p", "no:hypothesispytest", "-p", "no:anyio")

MINE = """
import pytest
from pytest_invari.testing import *

def longest(context, texts):
    return [float(len(text)) for text in texts]

def front(context, texts):
    return [len(text) / 20 - place for place, text in enumerate(texts)]

"""


class Own:
    """A folder with ``tasks.jsonl``, 32 lists of 6 that differ in their texts' lengths, and a test file."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester, self.path = pytester, pytester.path

    def run(self, body: str, *arguments: str | Path) -> pytest.RunResult:
        """Run pytest in this process on a ``test_mine.py`` of this body; all warnings but ours are errors."""
        (self.path / "test_mine.py").write_text(MINE + textwrap.dedent(body), encoding="utf-8")
        strict = ("-W", "error", "-W", "default::pytest_invari.testing.InvariUndecidedWarning")
        return self.pytester.runpytest_inprocess(*QUIET, *strict, "--strict-markers", *arguments)


@pytest.fixture
def own(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Own:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    generator = random.Random(7)
    lines = []
    for query in range(32):
        lengths = generator.sample(range(1, 20), 6)
        candidates = [
            {"id": f"q{query}i{item}", "text": "x" * length, "relevance": 1.0 if item < 2 else None}
            for item, length in enumerate(lengths)
        ]
        lines.append(json.dumps({"query_id": f"q{query}", "text": "films", "candidates": candidates}))
    (pytester.path / "tasks.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Own(pytester)
