"""The page as a document: everything is there, all text is text, and it can be used without seeing it."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest

import pytest_invari
from pytest_invari.text import printable
from tests.reports.html.conftest import HOSTILE, NAMED, Page

ELEMENTS = {
    *("html", "head", "meta", "link", "title", "style", "body", "header", "footer", "nav", "main", "section"),
    *(
        "h1",
        "h2",
        "h3",
        "p",
        "a",
        "ul",
        "li",
        "div",
        "span",
        "small",
        "strong",
        "wbr",
        "bdi",
        "details",
        "summary",
    ),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption"),
    *("svg", "desc", "g", "defs", "path", "use", "text", "clippath", "rect"),
}
"""All that the template and the pictures are made of: a title adds none."""
SECTIONS = ["verdicts", "figures", "exposure", "lengths", "fresh-views", "plane", "queries", "audits"]


def test_every_section_is_there_and_the_contents_lead_to_it(page: Page) -> None:
    assert [each["id"] for each in page.all("section")] == SECTIONS
    links = [str(each["href"]) for each in page.all("a")]
    assert links == ["#verdicts", *(f"#{name}" for name in SECTIONS)]


def test_the_verdicts_stand_at_the_head(page: Page) -> None:
    assert page.rows[0] == ["verdict", "id", "figure", "demand", "reason"]
    rows = {row[1]: row for row in page.rows if row[0] in ("pass", "fail", "undecided")}
    # Of two rerankers three criteria at two list lengths, and two of the bank.
    assert len(rows) == 2 * (3 * 2 + 2)
    verdict, _, figure, demand, reason = rows["hostile::loc[biased:noise=0.7-tasks-K8]"]
    assert (verdict, demand) == ("fail", "loc must be at least 0.75")
    assert re.fullmatch(r"0\.\d{4} \[0\.\d{4}, 0\.\d{4}\] n=40", figure)
    assert reason.startswith("why it is asked: ")
    [left_out] = [row for row in page.rows if row[0] == "many_views"]
    assert left_out[1].count("biased:noise=0.7-tasks-K") == 2
    assert left_out[2] == "its bound is for exactly 20 views of each query; this run has 5"


def test_exposure_has_its_numbers_in_a_table(page: Page) -> None:
    start = page.rows.index(["position", "biased:noise=0.7", "random", NAMED])
    at = page.rows[start + 1 : start + 9]
    assert [row[0] for row in at] == [str(position) for position in range(1, 9)]
    # The head of the list is favoured, and the places of a top of 5 add up to it.
    assert float(at[0][1]) > 0.8 > 0.5 > float(at[-1][1])
    for column in (1, 2, 3):
        assert sum(float(row[column]) for row in at) == pytest.approx(5, abs=0.005)


def test_hostile_titles_come_out_as_text(page: Page) -> None:
    names = [row[0] for row in page.rows]
    for title in HOSTILE:
        shown = printable(title)
        shown = shown if len(shown) <= 160 else f"{shown[:159]}…"
        assert any(name.removesuffix(" ★ relevant") == shown for name in names), title
    assert r"left \u202e to right \u2066 and back" in page.text
    assert {name for name, _ in page.tags} <= ELEMENTS


def test_hostile_names_and_suites_come_out_as_text(page: Page) -> None:
    assert "hostile (quick): </title><script>document.title='broken'</script> & so on" in page.text
    assert "why it is asked: <script>document.title='broken'</script> is no reason" in page.text
    assert any(NAMED in row[1] for row in page.rows if row[0] == "fail")
    # Within a picture as well, where a$b$ is no formula.
    assert page.text.count(NAMED) > 20


def test_every_picture_is_named_and_described(page: Page) -> None:
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    pictures = page.all("svg")
    assert len(pictures) > 25
    for picture in pictures:
        assert picture["role"] == "img"
        assert {picture["aria-labelledby"], picture["aria-describedby"]} <= set(ids)


def test_ids_that_are_referred_to_exist(page: Page) -> None:
    ids = set(page.values("id"))
    clips = {clip.removeprefix("url(#").removesuffix(")") for clip in page.values("clip-path")}
    uses = {str(each["href"]).removeprefix("#") for each in page.all("use")}
    labels = {part for value in page.values("aria-labelledby") for part in value.split()}
    assert clips
    assert uses
    assert clips | uses | labels <= ids


def test_tables_have_captions_and_headings(page: Page) -> None:
    assert len(page.all("caption")) == len(page.all("table")) > 30
    assert {each.get("scope") for each in page.all("th")} == {"col", "row"}
    regions = [each for each in page.all("div") if each.get("class") == "scroll"]
    assert len(regions) == len(page.all("table"))
    for each in regions:
        assert (each["role"], each["tabindex"]) == ("group", "0")
        assert each["aria-label"]


def test_it_says_what_it_was_made_by_and_from(report: Path, page: Page) -> None:
    for name in ("hostile", "bank"):
        digest = hashlib.sha256((report.parent / f"{name}.invari.toml").read_bytes()).hexdigest()
        assert f"suite {name}: SHA-256 {digest}" in page.text
    assert f"pytest-invari {pytest_invari.__version__}" in page.text


def test_nothing_is_fetched_and_nothing_runs(report: Path, page: Page) -> None:
    text = report.read_text(encoding="utf-8")
    [policy] = [str(each["content"]) for each in page.all("meta") if "http-equiv" in each]
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert not re.search(r"url\((?!#)|@import|expression", style)
    assert all(target.startswith(("#", "data:,")) for target in page.values("href"))
    names = {name for _, attributes in page.tags for name in attributes}
    assert not {name for name in names if name in ("src", "style") or name.startswith("on")}


def test_the_figures_are_those_of_the_terminal(page: Page) -> None:
    loc = [row for row in page.rows if len(row) == 4 and "at least 0.75" in row[2]]
    assert [row[0] for row in loc] == [
        f"{name}, tasks, lists of {k}" for name in ("biased:noise=0.7", NAMED) for k in (8, 12)
    ]
    assert all(re.fullmatch(r"-?0\.\d{3} \[-?0\.\d{3}, 0\.\d{3}\] n=40", row[1]) for row in loc)
    # A random ranking has a LOC of 0.
    assert {row[3] for row in loc} == {"0.000"}
    rho = [row for row in page.rows if row[0].startswith("two reused, biased")]
    # Beside what reuse alone gives, with its middle 95%.
    assert all(re.fullmatch(r"0\.\d{3} \[-?0\.\d{3}, 0\.\d{3}\]", row[-1]) for row in rho)
    assert len(rho) == 2
