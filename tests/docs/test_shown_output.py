"""What a page shows is what its commands show, on the files that it shows."""

from __future__ import annotations

import sys

import pytest

from tests.docs.test_documentation import ROOT, blocks, write_files
from tests.session.conftest import QUIET

PAGE = ROOT / "docs" / "suites.md"


def test_the_smallest_witness_of_forty_queries(pytester: pytest.Pytester) -> None:
    write_files(PAGE, pytester.path)
    assert pytester.run(sys.executable, "forty.py").ret == 0
    result = pytester.runpytest_inprocess(*QUIET, "strict.invari.toml", "--reranker=input_order")
    [shown] = [block for block in blocks(PAGE, "text") if "smallest witness" in block]
    assert " ".join(shown.split()) in " ".join(result.stdout.str().split())
