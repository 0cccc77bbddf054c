"""A page with everything in it, made by a real run over lists whose texts are hostile; and what reads it."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

collect_ignore = [] if shutil.which("chromium") else ["test_browser.py"]

HOSTILE = (
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "\"quoted\" & 'quoted' <b>bold</b>",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "left \u202e to right \u2066 and back",
    "W" * 400,
    "$x^2$ --> <!-- ]]> \\frac{a}{b}",
    "映画 فيلم 🎬 e\u0301",
    "</svg></style></details></table>",
    "javascript:alert(1) \x00 \x1b[31m",
    "http://127.0.0.1:1/beacon.png",
    "&#60;b&#62; &lt;i&gt;",
)
"""Titles that a careless page would obey, or be torn apart by."""

NAMED = "mine:label=<b onclick=x>$bold$&amp;</b>"
"""A reranker's name."""

SUITE = """
[suite]
name = "hostile"
title = "</title><script>document.title='broken'</script> & so on"
baseline = "random"

[profile.quick]
datasets = ["tasks.jsonl"]
k = [8, 12]
views = 5
queries = 40

[[criterion]]
name = "loc"
metric = "loc"
at_least = 0.75
why = "<script>document.title='broken'</script> is no reason"

[[criterion]]
name = "exposure"
metric = "exposure_deviation@5"
at_most = 0.2
profiles = ["quick"]

[[criterion]]
name = "many_views"
metric = "ppi"
at_most = 0.3
only_at_views = 20

[[criterion]]
name = "loc_vs_baseline"
metric = "loc"
better_than = "baseline"
"""

BANK = """
[suite]
name = "bank"
analyses = ["independent_views", "routing"]

[profile.quick]
datasets = ["controlled.jsonl"]
k = 12
bank = ["canonical", 13, 17, 19, 23, 29, 31, 41]
probe = ["canonical", 13]
target = [23, 29, 31, 41]

[[criterion]]
name = "validity"
metric = "rho_0"
at_least = 0.0

[[criterion]]
name = "benefit"
metric = "rho_benefit"
at_least = 0.0
"""

CONFTEST = """
import random

import pytest


def rank(context, candidates, label=""):
    draw = random.Random(" ".join(each.id for each in candidates))
    return [draw.random() for _ in candidates]


@pytest.hookimpl(optionalhook=True)
def pytest_invari_rerankers(config):
    return {"mine": rank}
"""

# They have no end tag in HTML.
VOID = {"meta", "link", "br", "wbr"}


class Page(HTMLParser):
    """A page's elements in order, its text, and the rows of its tables.

    Reading it fails where an element is not closed by its own end tag.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "td" in self._open or "th" in self._open:
            self.rows[-1][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of this name."""
        return [attributes for name, attributes in self.tags if name == tag]

    def values(self, attribute: str) -> list[str]:
        """The values of an attribute in all elements that have it."""
        return [
            value or "" for _, attributes in self.tags if (value := attributes.get(attribute)) is not None
        ]


def write_lists(path: Path, stratum: str = "", queries: int = 40, k: int = 12) -> None:
    """Lists with hostile titles and ids; in each the first two candidates and the last are relevant."""
    draw = random.Random(3)
    lines = []
    for query in range(queries):
        candidates = [
            {
                "id": f"<i>{query}.{item:02}",
                "text": HOSTILE[item % len(HOSTILE)],
                "relevance": 1.0 if item in (0, 1, k - 1) else None,
                "group": "head" if item < k // 2 else "tail",
            }
            for item in range(k)
        ]
        draw.shuffle(candidates)
        row = {"query_id": f"<q>{query}", "text": HOSTILE[query % len(HOSTILE)], "candidates": candidates}
        lines.append(json.dumps(row | ({"stratum": stratum} if stratum else {})))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run of two suites, with several list lengths, both analyses and hostile texts."""
    folder = tmp_path_factory.mktemp("hostile")
    write_lists(folder / "tasks.jsonl")
    write_lists(folder / "controlled.jsonl", "controlled")
    (folder / "hostile.invari.toml").write_text(SUITE, encoding="utf-8")
    (folder / "bank.invari.toml").write_text(BANK, encoding="utf-8")
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-W", "error"),
            *("-p", "no:randomly", "-p", "no:cacheprovider"),
            *("--invari-suite=hostile.invari.toml", "--invari-suite=bank.invari.toml"),
            *("--reranker=biased:noise=0.7", f"--reranker={NAMED}", "--invari-html=report.html"),
        ],
        cwd=folder,
        env=os.environ | {"PYTEST_ADDOPTS": "", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert "ERROR" not in done.stderr, done.stderr
    return folder / "report.html"


@pytest.fixture(scope="session")
def page(report: Path) -> Page:
    return Page(report.read_text(encoding="utf-8"))
