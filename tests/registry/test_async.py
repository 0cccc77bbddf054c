"""What is async is never awaited: it is refused, before anything is ranked where that can be seen."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_invari.criteria.assertion import checked_kinds
from pytest_invari.errors import InvariError
from pytest_invari.metrics.custom import CustomMetric
from pytest_invari.protocol import Ranking, Request, rank_all
from pytest_invari.protocol.capabilities import prepare_reranker

HINT = "async functions are not awaited; wrap it in a plain function that calls asyncio.run"


async def scores(context: str, texts: list[str], *, size: int = 1) -> list[float]:
    return [float(len(text)) for text in texts]


async def ranked(request: Request) -> Ranking:
    return Ranking.from_order(request, request.ids)


class Single:
    async def rank(self, request: Request) -> Ranking:
        return await ranked(request)


class Many:
    def rank(self, request: Request) -> Ranking:
        return Ranking.from_order(request, request.ids)

    async def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        return [self.rank(request) for request in requests]


class Prepared:
    def rank(self, request: Request) -> Ranking:
        return Ranking.from_order(request, request.ids)

    async def prepare(self) -> None:
        return None


class Called:
    async def __call__(self, context: str, texts: list[str]) -> list[float]:
        return await scores(context, texts)


async def make(size: int = 2) -> Single:
    return Single()


@pytest.mark.parametrize(
    ("target", "what"),
    [
        (scores, "'scores' is async"),
        (functools.partial(scores, size=2), "an object of type partial is async"),
        (Called(), "an object of type Called is async"),
        (make, "'make' is async"),
        (Single, "Single.rank is async"),
        (Single(), "Single.rank is async"),
        (lambda build: Many(), "Many.rank_many is async"),
        (lambda build: scores, "'scores' is async"),
        (Prepared, "Prepared.prepare is async"),
    ],
)
def test_a_reranker_is_refused_when_it_is_made(project: Any, target: object, what: str) -> None:
    with pytest.raises(InvariError) as caught:
        project.build("mine", {"mine": target})
    assert str(caught.value) == f"reranker 'mine': {what}, and {HINT}"


@pytest.mark.parametrize(
    "target",
    [
        lambda context, texts: scores(context, texts),
        SimpleNamespace(rank=lambda request: ranked(request)),
        SimpleNamespace(rank=lambda request: ranked(request), rank_many=lambda requests: ranked(requests[0])),
    ],
)
def test_what_is_seen_in_the_answer_alone_is_its_fault(project: Any, target: object) -> None:
    [ranking] = rank_all(project.build("mine", {"mine": target}), [project.request])
    assert ranking.fault == f"returned a coroutine: {HINT}"


def test_a_member_that_returns_a_coroutine_is_refused() -> None:
    late: Any = SimpleNamespace(prepare=lambda: Prepared().prepare())
    with pytest.raises(InvariError) as caught:
        prepare_reranker(late)
    assert str(caught.value) == f"SimpleNamespace.prepare() returned a coroutine: {HINT}"


def test_a_metric_is_refused_when_it_is_declared() -> None:
    async def mine(lists: Any) -> list[float]:
        return []

    with pytest.raises(TypeError) as caught:
        CustomMetric(mine, direction="lower", low=0, high=1, description="mine")
    assert str(caught.value) == f"function is async, and {HINT}"


def test_a_kind_of_criterion_is_refused_by_name() -> None:
    async def calm(study: Any) -> None:
        return None

    with pytest.raises(InvariError) as caught:
        checked_kinds({"calm": calm}, {})
    assert str(caught.value) == f"hook pytest_invari_criteria: kind 'calm' is async, and {HINT}"


@pytest.fixture(autouse=True)
def nothing_is_left_to_await(recwarn: pytest.WarningsRecorder) -> Any:
    yield
    assert not [str(each.message) for each in recwarn]
