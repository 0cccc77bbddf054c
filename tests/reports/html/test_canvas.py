"""Drawings become SVG that is the same in every run, is safe in a page, and takes its colours from it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import matplotlib
import pytest

from pytest_invari.reports.html.canvas import INK, SERIES, chart, drawing, named, picture, series, short


def draw(name: str = "one", label: str = "a", title: str = "Title") -> str:
    with drawing():
        figure, axes = chart(1, "across", "up")
        axes.plot([1, 2], [3, 4], label=label, **series(0))
        axes.fill_between([1, 2], [3, 3], [4, 4], color=SERIES[1], alpha=0.3)
        axes.text(1, 3, label, color=INK)
        return picture(figure, name, title, "What it shows").svg


def test_it_is_the_same_again_and_whatever_the_user_has_set() -> None:
    first = draw()
    with matplotlib.rc_context({"font.size": 40, "axes.grid": False, "svg.hashsalt": "other"}):
        assert draw() == first
        assert matplotlib.rcParams["font.size"] == 40
    assert not re.search(r"20[0-9]{2}-|matplotlib|DOCTYPE|xmlns", first)


def test_colours_are_roles_and_nothing_has_an_inline_style() -> None:
    root = ET.fromstring(draw())
    classes = {each for part in root.iter() for each in part.get("class", "").split()}
    assert {"stroke-s1", "fill-s2", "stroke-faint"} <= classes
    assert all("style" not in part.attrib for part in root.iter())
    assert "#0a" not in ET.tostring(root, encoding="unicode").replace("#one-", "")
    assert {part.tag for part in root.iter()} <= {
        *("svg", "title", "desc", "g", "defs", "path", "use", "text", "clipPath", "rect")
    }


def test_two_pictures_share_no_id() -> None:
    ids = [set(re.findall(r' id="([^"]+)"', draw(name))) for name in ("one", "two")]
    assert ids[0]
    assert not ids[0] & ids[1]
    assert {each.removeprefix("one-") for each in ids[0]} == {each.removeprefix("two-") for each in ids[1]}


@pytest.mark.parametrize("words", ["$x^2$ \\frac{1}{", "</text><script>", "映画 \u05d0", "\"&'", "a--b-->"])
def test_words_stay_words(words: str) -> None:
    text = draw(label=words, title=words)
    root = ET.fromstring(text)
    assert [part.text for part in root.iter("text")].count(words) == 2
    assert root.findtext("title") == words
    assert "<script" not in text


def test_many_series_differ_in_colour_or_marker() -> None:
    looks = [tuple(series(number).values()) for number in range(36)]
    assert len(set(looks)) == 36
    assert all(looks[number] != looks[number + 1] for number in range(35))


def test_long_names_keep_both_ends() -> None:
    assert short("a" * 48) == "a" * 48
    assert short("first" + "x" * 90 + "last") == "first" + "x" * 19 + "…" + "x" * 19 + "last"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("映" * 24, "映" * 24),
        ("映" * 80, "映" * 12 + "…" + "映" * 11),
        ("W" * 80, "W" * 12 + "…" + "W" * 11),
        # An accent of its own takes no room.
        ("e\u0301" * 48, "e\u0301" * 48),
    ],
)
def test_wide_letters_take_more_room(name: str, shown: str) -> None:
    assert short(name) == shown


def test_a_name_with_an_underscore_in_front_is_in_the_legend() -> None:
    with drawing():
        figure, axes = chart(1, "across")
        axes.plot([1, 2], [3, 4], label=named("_own:rank"), **series(0))
        text = picture(figure, "one", "Title", "What it shows").svg
    assert "> _own:rank</text>" in text
