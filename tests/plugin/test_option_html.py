"""--invari-html: one page that holds the verdicts, and pictures of what is behind them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import TYPE_CHECKING

# pytester forgets what a run imported, and these may be loaded only once.
import jinja2
import matplotlib.backends.backend_svg
import matplotlib.figure
import pytest
import scipy.special

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

LOADED = (jinja2, matplotlib.backends.backend_svg, matplotlib.figure, scipy.special)

# They have no end tag in HTML.
VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """A page's text by its elements: ``rows`` of its tables, and every tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[list[str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data

    def with_tag(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def made(project: Project, *arguments: str, reranker: str = "biased:noise=0.5") -> str:
    result = project.run("--invari-html=report.html", *arguments, reranker=reranker)
    assert result.ret in (0, 1), result.stderr.str()
    return (project.path / "report.html").read_text(encoding="utf-8")


def test_the_verdicts_stand_at_the_head(project: Project) -> None:
    page = Page(made(project, reranker="random"))
    rows = {row[1]: row for row in page.rows if row[0] in ("pass", "fail", "undecided")}
    assert [row[0] for row in rows.values()] == ["fail", "fail", "pass"]
    verdict, _, figure, demand, reason = rows["small::loc[random-tasks-K6]"]
    assert (verdict, demand) == ("fail", "loc must be at least 0.75")
    assert re.fullmatch(r"-?0\.\d{4} \[-0\.\d{4}, 0\.\d{4}\] n=32", figure)
    assert reason == "why it is asked: users notice when a page is reordered"
    left_out = ["loc_vs_baseline", "random-tasks-K6", "its baseline is the subject itself"]
    assert [row[:2] for row in page.rows if row[0] == "loc_vs_baseline"] == [left_out[:2]]


def test_exposure_is_drawn_and_its_numbers_are_in_a_table(project: Project) -> None:
    page = Page(made(project, reranker="input_order"))
    at = [row for row in page.rows if row[0] in {"1", "2", "3", "4", "5", "6"} and len(row) == 3]
    assert [row[1] for row in at] == ["1.000"] * 5 + ["0.000"]
    labels = [attributes["aria-labelledby"] for attributes in page.with_tag("svg")]
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert labels
    assert all(part in ids for label in labels for part in str(label).split())


def test_the_page_needs_nothing_else(project: Project) -> None:
    text = made(project)
    page = Page(text)
    assert not page.with_tag("script")
    assert [attributes["href"] for attributes in page.with_tag("link")] == ["data:,"]
    targets = [value for _, attributes in page.tags for name, value in attributes.items() if name == "href"]
    assert all(str(target).startswith(("#", "data:,")) for target in targets)
    assert not re.search(r"https?:|//|@import|url\((?!#)", re.sub(r"<!DOCTYPE[^>]*>", "", text))
    names = {name for _, attributes in page.tags for name in attributes}
    assert not {name for name in names if name == "style" or name.startswith("on")}
    policy = page.with_tag("meta")[1]["content"]
    assert str(policy).startswith("default-src 'none'; style-src 'sha256-")


def test_ids_are_unique(project: Project) -> None:
    page = Page(made(project, "--invari-profile=wide", "--reranker=first_stage"))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids)) > 4


@pytest.mark.xdist
def test_the_page_is_the_same_with_workers(project: Project) -> None:
    pytest.importorskip("xdist")
    records = "--invari-records=records"
    made(project, records, "--reranker=first_stage")
    alone = made(project, records, "--invari-replay", "--reranker=first_stage")
    assert alone == made(project, records, "--invari-replay", "--reranker=first_stage", "-n2")


CARRIED = """
import json

def pytest_runtest_logreport(report):
    if hasattr(report, "invari"):
        with open("carried.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps([sorted(each) for each in report.invari["subjects"]]) + "\\n")
"""


def test_what_is_drawn_travels_only_when_a_page_is_asked_for(project: Project) -> None:
    project.write("conftest.py", CARRIED)
    project.run("-k", "gpi")
    made(project, "-k", "gpi", "--invari-json=report.json")
    lines = (project.path / "carried.jsonl").read_text(encoding="utf-8").splitlines()
    assert ["pictures" in json.loads(line)[0] for line in lines] == [False, True]
    report = json.loads((project.path / "report.json").read_text(encoding="utf-8"))
    assert "pictures" not in report["subjects"][0]


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(project: Project) -> None:
    result = project.run("--invari-html=no/report.html")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --invari-html=no/report.html: there is no folder no"])


def test_missing_packages_are_told_before_anything_runs(project: Project) -> None:
    project.write(
        "run.py",
        """\
        import importlib.machinery, sys

        class Hidden(importlib.machinery.PathFinder):
            @classmethod
            def find_spec(cls, name, path=None, target=None):
                return None if name in ("matplotlib", "jinja2") else super().find_spec(name, path, target)

        sys.meta_path = [Hidden if each is importlib.machinery.PathFinder else each for each in sys.meta_path]
        import pytest
        sys.exit(pytest.main(sys.argv[1:]))
        """,
    )
    done = subprocess.run(
        [
            sys.executable,
            "run.py",
            "--invari-suite=small.invari.toml",
            "--reranker=random",
            "--invari-html=a.html",
        ],
        cwd=project.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert done.stderr.strip() == (
        'ERROR: --invari-html needs matplotlib and jinja2: pip install "pytest-invari[report]"'
    )


def test_a_folder_that_is_gone_at_the_end_leaves_the_summary(project: Project) -> None:
    (project.path / "out").mkdir()
    project.write(
        "gone.py",
        """\
        import pathlib, shutil

        def rank(context, texts):
            if pathlib.Path("out").is_dir():
                shutil.rmtree("out")
                pathlib.Path("out").write_text("not a folder any more")
            return [float(text[-1]) for text in texts]
        """,
    )
    result = project.run("--invari-html=out/report.html", "-k", "gpi", reranker="gone:rank")
    result.stdout.fnmatch_lines(["*= invari =*", "PASS *gpi*"])
    assert "ERROR: out/report.html: cannot be written (File exists)" in result.errlines
    assert result.ret == pytest.ExitCode.USAGE_ERROR
