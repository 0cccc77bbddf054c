"""Task sets: cut to a length or a number of queries, and hashed by their content."""

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.protocol import Candidate, Context, HistoryEntry
from pytest_invari.tasks.task import TaskSet, content_hash
from tests.tasks.conftest import sample_task


def test_at_k_keeps_the_first_candidates_and_all_positives_in_the_total() -> None:
    task_set = TaskSet.of("t", [sample_task()], "about")
    cut = task_set.at_k(2)
    assert cut.tasks == (
        sample_task(candidates=task_set.tasks[0].candidates[:2], relevance={"a": 1.0}, groups={"a": "head"}),
    )
    assert (cut.name, cut.description, cut.sha256) == ("t", "about", content_hash(cut.tasks))
    assert task_set.at_k(4) == task_set


def test_at_k_names_the_query_whose_list_is_too_short() -> None:
    task_set = TaskSet.of(
        "films", [sample_task(), sample_task(query_id="short", candidates=(), relevance={}, groups={})]
    )
    with pytest.raises(
        InvariError, match=r"^data set 'films': query 'short' has 0 candidates, fewer than the 3"
    ):
        task_set.at_k(3)
    with pytest.raises(InvariError, match="k must be at least 1"):
        task_set.at_k(0)


def test_head_takes_the_first_queries() -> None:
    task_set = TaskSet.of("t", [sample_task(query_id=name) for name in "xyz"])
    assert task_set.head(2) == TaskSet.of("t", task_set.tasks[:2])
    assert task_set.head(None) is task_set
    assert task_set.head(9) is task_set
    with pytest.raises(InvariError, match="at least 1"):
        task_set.head(0)


def test_hash_changes_with_every_part_of_a_task_and_not_with_grade_zero() -> None:
    variants = [
        sample_task(),
        sample_task(query_id="p"),
        sample_task(context=Context("drama")),
        sample_task(context=Context("crime", (HistoryEntry("Heat", 4.0),))),
        sample_task(context=Context("crime", (HistoryEntry("Heat"),))),
        sample_task(candidates=tuple(Candidate(item, item.upper()) for item in "abdc")),
        sample_task(candidates=tuple(Candidate(item, item.upper(), {"n": 1}) for item in "abcd")),
        sample_task(relevance={"a": 1.0, "d": 2.0}),
        sample_task(relevant_total=6),
        sample_task(groups={"a": "tail", "d": "tail"}),
    ]
    assert len({content_hash([task]) for task in variants}) == len(variants)
    zero = sample_task(relevance={"d": 1, "a": 1.0, "b": 0.0})
    assert content_hash([zero]) == content_hash([sample_task()])


def test_hash_is_pinned() -> None:
    """Records carry this hash: a change here makes every stored one look like another data set's."""
    assert content_hash([sample_task()]) == "de7648ed668083435e3e572e0e5022f244ed1da0b824f0f1f227d67233c63c1a"


def test_a_task_set_is_iterated_as_its_tasks() -> None:
    tasks = TaskSet.of("films", [sample_task(query_id=name) for name in ("q1", "q2")])
    assert list(tasks) == list(tasks.tasks)
    assert [task.query_id for task in tasks] == ["q1", "q2"]
