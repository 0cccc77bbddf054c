"""The forest plot: what stands beside a figure in its picture and in its table."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_invari.reports.html.canvas import WIDTH, drawing
from pytest_invari.reports.html.intervals import IntervalRow, Panel, draw_panel, panel_table


def drawn_words(panel: Panel) -> list[str]:
    with drawing():
        return re.findall(r"<text[^>]*>([^<]*)</text>", draw_panel(panel, "one").svg)


@pytest.mark.parametrize("notes", [(), ("3 of 40 views failed",), ("first", "second")])
def test_what_must_be_known_of_a_figure_stands_in_the_picture_and_in_the_table(
    notes: tuple[str, ...],
) -> None:
    rows = [
        IntervalRow("films", "a", 0.5, 0.4, 0.6, 8, notes=notes),
        IntervalRow("films", "b", 0.5, 0.4, 0.6, 10),
    ]
    panel = Panel("LOC", "higher is better", rows)
    words = drawn_words(panel)
    assert words[words.index("a") + 2 : words.index("b")] == list(notes)
    own, other = panel_table(panel).rows
    assert own[1] == "0.500 [0.400, 0.600] n=8" + (f" ({'; '.join(notes)})" if notes else "")
    assert other[1] == "0.500 [0.400, 0.600] n=10"


@pytest.mark.parametrize("groups", [("films, lists of 10",), ("films, lists of 10", "films, lists of 25")])
def test_the_lists_are_named_however_few_there_are(groups: tuple[str, ...]) -> None:
    words = drawn_words(Panel("LOC", "higher is better", [IntervalRow(group, "a", 0.5) for group in groups]))
    assert [word for word in words if word.startswith("films")] == list(groups)


@pytest.mark.parametrize(("count", "times"), [(8, 1), (9, 2)])
def test_a_long_panel_has_its_scale_at_both_ends(count: int, times: int) -> None:
    rows = [IntervalRow("films", f"r{number}", 0.0, -1.0, 1.0, 30) for number in range(count)]
    assert drawn_words(Panel("LOC", "higher is better", rows)).count("0") == times


def test_a_scale_has_whole_numbers_of_its_own() -> None:
    words = drawn_words(
        Panel("seconds", "lower is better", [IntervalRow("films", "a", 2e-5, 1e-5, 3e-5, 30)])
    )
    assert {"1e-05", "2e-05", "3e-05"} <= set(words)


# Of the font that measures; digits are wide in it.
_LETTER = 6.4
_NUMBER = re.compile(r'<text x="([\d.]+)"[^>]*font-size="10" text-anchor="(\w+)"[^>]*>([^<]*)</text>')


@given(st.floats(-1, 1), st.floats(1e-9, 2), st.integers(-6, 6))
@example(1.0, 0.249, -4)
@settings(max_examples=40, deadline=None)
def test_the_numbers_of_a_scale_stand_within_the_picture_and_apart(
    low: float, length: float, power: int
) -> None:
    low, high = low * 10**power, (low + length) * 10**power
    with drawing():
        svg = draw_panel(Panel("seconds", "", [IntervalRow("films", "a", low, low, high, 30)]), "one").svg
    ends = []
    for x, anchor, text in _NUMBER.findall(svg):
        width = _LETTER * len(text)
        left = float(x) - width * {"start": 0, "middle": 0.5, "end": 1}[anchor]
        ends += [left, left + width]
    assert ends
    assert ends == sorted(ends)
    assert ends[0] >= 0
    assert ends[-1] <= WIDTH


def test_what_is_undefined_says_why_in_the_picture_and_in_the_table() -> None:
    panel = Panel("LOC", "higher is better", [IntervalRow("films", "a", float("nan"), reason="failed_views")])
    words = drawn_words(panel)
    assert words[words.index("a") :] == ["a", "undefined", "failed_views"]
    assert panel_table(panel).rows == [("a, films", "undefined (failed_views)", "")]
