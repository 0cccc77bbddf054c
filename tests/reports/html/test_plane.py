"""The plane of cost and utility: which markers meet, and that each of them can be told all the same."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from pytest_invari.reports.html.parts import Section
from pytest_invari.reports.html.plane import Marker, heaps, section
from pytest_invari.reports.subjects import Summary
from tests.reports.summaries import summary


def subject(name: str, calls: float, ndcg: float, loc: float) -> Summary:
    values = {"ndcg@5": ndcg, "loc": loc}
    figures = {metric: {"estimate": value} for metric, value in values.items()}
    size = {"k": 10, "views": 6, "rankings": 60}
    return summary(reranker=name, dataset="films", **size, cost={"calls": calls}, metrics=figures)


def pictures(*subjects: Summary) -> list[ET.Element]:
    found = section(subjects)
    assert isinstance(found, Section)
    return [ET.fromstring(picture.svg) for picture in found.pictures]


def words(picture: ET.Element) -> list[str]:
    return [part.text or "" for part in picture.iter("text")]


def markers(picture: ET.Element) -> list[tuple[str, str, float]]:
    """Of each marker in the order of drawing its place, its classes and how far it reaches to the right."""
    shapes = {part.get("id"): part.get("d", "") for part in picture.iter("path")}
    return [
        (
            f"{part.get('x')},{part.get('y')}",
            part.get("class", ""),
            max(map(float, re.findall(r"[-.\d]+", shape))),
        )
        for part in picture.iter("use")
        for shape in [shapes[part.get("href", "#")[1:]]]
        if "stroke-s" in part.get("class", "")
    ]


def test_two_at_one_point_are_both_seen_and_told_by_their_numbers() -> None:
    ndcg, loc = pictures(subject("a", 1, 0.5, 0.9), subject("b", 1, 0.5, 0.2), subject("c", 9, 0.8, 0.9))
    assert "1, 2" in words(ndcg)
    assert not any("," in word for word in words(loc))
    assert words(ndcg)[-3:] == words(loc)[-3:] == ["1 a", "2 b", "3 c"]
    first, second = markers(ndcg)[:2]
    assert first[0] == second[0]
    # The second is dominated, hollow and drawn upon the first, which is seen around it.
    assert (first[1], second[1]) == ("fill-s1 stroke-s1", "fill-paper stroke-s2")
    assert first[2] > second[2] + 1
    assert len({place for place, *_ in markers(loc)[:3]}) == 3


@pytest.mark.parametrize(
    ("places", "found"),
    [
        ([(1, 0.5), (1, 0.5)], [[0, 1]]),
        ([(1, 0.5), (9, 0.5)], [[0], [1]]),
        ([(1, 0.5), (1, 0.9)], [[0], [1]]),
        ([(1, 0.0), (1, 0.07), (1, 0.14), (1, 1.0)], [[0, 1, 2], [3]]),
        # The one between them brings two together.
        ([(1, 0.0), (1, 0.14), (1, 0.07), (1, 1.0)], [[0, 1, 2], [3]]),
        ([(0, 0.5), (0, 0.5)], [[0, 1]]),
    ],
)
def test_markers_that_would_cover_each_other_are_a_heap(
    places: list[tuple[float, float]], found: list[list[int]]
) -> None:
    given = [Marker(series, calls, value, False) for series, (calls, value) in enumerate(places)]
    assert sorted([marker.series for marker in heap] for heap in heaps(given)) == found
