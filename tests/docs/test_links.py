"""Every relative link in the project's pages leads to a file and, where it says so, to a heading of it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.test_documentation import ROOT

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "examples").glob("*/README.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:")
HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    return CODE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    return [target for target in LINK.findall(prose(page)) if not ELSEWHERE.match(target)]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in HEADING.findall(text):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def faults(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for target in links(page):
        path, _, anchor = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        if not other.is_relative_to(ROOT) or not other.exists():
            found.append(f"{target}: there is no such file")
        elif anchor and anchor not in anchors(prose(other)):
            found.append(f"{target}: no heading of {other.name} has this anchor")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert not faults(page)


def test_the_readme_leads_to_every_page() -> None:
    linked = {(ROOT / target.partition("#")[0]).resolve() for target in links(ROOT / "README.md")}
    pages = {path for path in PAGES if path.is_relative_to(ROOT / "docs") or path.name == "README.md"}
    assert {path.relative_to(ROOT) for path in pages - linked - {ROOT / "README.md"}} == set()


def test_anchors_are_githubs() -> None:
    text = "# A `word`, and more\n\n## `[[criterion]]`\n\n## Twice\n\n## Twice\n\n### [Linked](x.md) name_\n"
    assert anchors(text) == {"a-word-and-more", "criterion", "twice", "twice-1", "linked-name_"}


def test_a_link_to_nowhere_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# Here\n[a](#here) [b](#there) [c](gone.md) [d](https://x.y/z)\n```\n[e](no.md)\n```\n")
    assert faults(page) == [
        "#there: no heading of page.md has this anchor",
        "gone.md: there is no such file",
    ]
