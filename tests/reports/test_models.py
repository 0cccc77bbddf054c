"""What goes from workers to the controller, and into the file, is what the models declare."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pytest_invari.criteria.judgement import Judgement
from pytest_invari.reports.models import CriterionModel, FigureModel, ReportModel, SubjectModel
from pytest_invari.reports.run import plain_values
from pytest_invari.reports.subjects import Summary
from tests.reports.summaries import summary

if TYPE_CHECKING:
    from tests.session.conftest import Project


def plain(**changed: Any) -> Any:
    """A summary as a worker of pytest-xdist sends it."""
    sent = plain_values(Judgement("pass", 0.5), [summary(**changed)], {})
    return sent["subjects"][0]


def test_a_summary_arrives_as_it_was_sent() -> None:
    given = summary(reranker="sgs", metrics={"loc": {"estimate": 0.5, "n": 30}}, tables={"routing": ["a"]})
    arrived = msgspec.convert(plain_values(Judgement("pass", 0.5), [given], {})["subjects"][0], Summary)
    assert arrived.key == ("sgs", "d", 10)
    assert arrived.metrics["loc"].estimate == 0.5
    assert math.isnan(arrived.metrics["loc"].low)
    assert arrived.tables == {"routing": ["a"]}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("k", "10", r"Expected `int`, got `str` - at `\$.k`"),
        ("rankings", -1, r"Expected `int` >= 0 - at `\$.rankings`"),
        ("more", 1, "unknown field `more`"),
        ("metrics", {"loc": {"estimate": 0.5}}, r"missing required field `low` - at `\$.metrics\[...\]`"),
    ],
)
def test_a_summary_that_is_none_is_refused_where_it_arrives(key: str, value: object, message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert(plain() | {key: value}, Summary)


def test_the_file_has_the_declared_keys_in_their_order(project: Project) -> None:
    project.run("--invari-json=report.json")
    report = json.loads((project.path / "report.json").read_text(encoding="utf-8"))
    assert tuple(report) == ReportModel.__struct_fields__
    assert tuple(report["subjects"][0]) == SubjectModel.__struct_fields__
    assert tuple(report["subjects"][0]["metrics"]["loc"]) == FigureModel.__struct_fields__
    assert tuple(report["criteria"][0]) == CriterionModel.__struct_fields__
