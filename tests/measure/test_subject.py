"""Subjects: how ids, records and reports name them, and which of them share what is observed or built."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_invari.measure.subject import Subject
from pytest_invari.observation.plan import Plan, SubjectName
from pytest_invari.registry.spec import RerankerSpec

PLAN = Plan("lists/films.jsonl", 5, None, 4)
SUBJECT = Subject(RerankerSpec.parse("mine:api_key=hush,depth=2"), PLAN)


def test_a_subject_is_named_without_secrets_and_the_same_in_every_folder() -> None:
    assert "hush" not in SUBJECT.label
    assert SUBJECT.label.startswith("mine:")
    assert SUBJECT.label.endswith(",depth=2-films-K5")
    assert SUBJECT.name("films") == SubjectName(SUBJECT.shown_reranker, "films", 5)


def test_what_only_counts_rankings_in_another_way_observes_the_same() -> None:
    other = Subject(SUBJECT.reranker, replace(PLAN, on_failure="drop", ties="half", interval="percentile"))
    assert other != SUBJECT
    assert other.observed == SUBJECT.observed
    for more in ({"views": 5}, {"view_seed": 1}, {"repeats": 2}, {"include_canonical": True}):
        assert Subject(SUBJECT.reranker, replace(PLAN, **more)).observed != SUBJECT.observed


def test_in_other_orders_the_same_lists_are_shown() -> None:
    same: list[dict[str, Any]] = [{"views": 5}, {"view_seed": 1}, {"repeats": 2}, {"on_failure": "drop"}]
    for more in same:
        assert Subject(SUBJECT.reranker, replace(PLAN, **more)).shown_lists == SUBJECT.shown_lists
    for more in ({"k": 4}, {"queries": 3}, {"labels": "position"}, {"blind_ids": True}):
        assert Subject(SUBJECT.reranker, replace(PLAN, **more)).shown_lists != SUBJECT.shown_lists
    other = Subject(RerankerSpec.parse("mine:depth=3"), PLAN)
    assert other.shown_lists != SUBJECT.shown_lists
