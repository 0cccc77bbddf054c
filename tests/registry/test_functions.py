"""Plain functions, classes and factories as rerankers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pytest_invari.errors import InvariError
from pytest_invari.progress import bar
from pytest_invari.protocol import Candidate, Context, Ranking, RankingError, Request
from pytest_invari.protocol.capabilities import fingerprint_of

TWINS = Request("q", Context(), (Candidate("x", "same"), Candidate("y", "same"), Candidate("z", "other")))


def of_texts(output: Any) -> Callable[..., Any]:
    return lambda context, texts: output


def of_candidates(output: Any) -> Callable[..., Any]:
    return lambda context, candidates: output


@pytest.mark.parametrize(
    "function",
    [
        of_texts([0.1, 0.9, 0.5]),
        of_texts((0.1, 0.9, 0.5)),
        of_texts(np.array([0.1, 0.9, 0.5], dtype=np.float32)),
        of_texts([np.float64(0.1), np.float64(0.9), 0.5]),
        of_texts([0, 1, 0.5]),
        of_texts([0, 30, 20]),
        of_texts([2, 4, 3]),
        of_texts([-1, 1, 0]),
        of_texts({0: 0, 1: 2, 2: 1}),
        of_texts(iter([0.1, 0.9, 0.5])),
        of_texts({0: 0.1, 1: 0.9, 2: 0.5}),
        of_texts({2: 5, 1: 9, 0: 1}),
        of_texts([(1, 0.9), (2, 0.5), (0, 0.1)]),
        of_texts({np.int64(i): s for i, s in enumerate([0.1, 0.9, 0.5])}),
        of_candidates(["a", "b", "c"]),
        of_candidates(("a", "b", "c")),
        of_candidates([("c", 0.1), ("a", 0.9), ("b", 0.5)]),
        of_candidates({"c": 1, "a": 9, "b": 5}),
        of_candidates([0.1, 0.9, 0.5]),
        of_candidates({0: 0.1, 1: 0.9, 2: 0.5}),
        of_texts(Ranking(("a", "b", "c"))),
    ],
)
def test_every_documented_output_is_a_ranking(project: Any, function: Callable[..., Any]) -> None:
    assert project.rank("mine", {"mine": function}) == "abc"


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (of_texts([1, 2, 0]), r"whole numbers only \(\[1, 2, 0\]\), which may be an order or scores"),
        (of_texts([1, 2, 3]), r"whole numbers only \(\[1, 2, 3\]\)"),
        (of_texts(np.array([1, 2, 0])), r"whole numbers only \(\[1, 2, 0\]\)"),
        (of_texts([0.1, 0.9]), "returned 2 scores for 3 candidates"),
        (of_texts([]), "returned 0 scores for 3 candidates"),
        (of_texts([0.1, float("nan"), 0.2]), "score of 'a' is nan"),
        (of_texts([0.1, None, 0.2]), "score of 'a' is None, not a number"),
        (of_texts({0: 0.1, 1: 0.2}), "lacks 'b'"),
        (of_texts({0: 0.1, 1: 0.2, -1: 0.3}), "index -1 is not a position in a list of 3 candidates"),
        (of_texts({0: 0.1, 1: 0.2, 3: 0.3}), "index 3 is not a position"),
        (of_texts({0: 0.1, True: 0.2, 2: 0.3}), "index True is not a position"),
        (of_texts([(0, 0.1), (1, 0.2), (1, 0.3)]), "scores 1 more than once"),
        (of_texts(["ant", "a bee", "cube"]), "takes texts and cannot know the ids"),
        (of_texts({"ant": 1.0, "a bee": 0.5, "cube": 0.1}), "call the second parameter 'candidates'"),
        (of_candidates(["a", "b"]), "lacks 'c'"),
        (of_candidates(["a", "b", "b"]), "repeats 'b', lacks 'c'"),
        (of_candidates(["a", "b", "d"]), "has unknown 'd', lacks 'c'"),
        (of_candidates([("a", 1.0), ("a", 2.0), ("b", 3.0)]), "scores 'a' more than once"),
        (of_candidates([("a", 1.0), ("b", 2.0), (0, 3.0)]), "by position and by id together"),
        (of_candidates({}), "lacks 'a', 'b', 'c'"),
        (of_texts(None), r"returned None \(NoneType\) instead of scores or ids"),
        (of_texts("abc"), r"returned 'abc' \(str\) instead of scores or ids"),
        (of_texts(np.float64(0.5)), r"returned 0.5 \(float\) instead of scores or ids"),
    ],
)
def test_every_other_output_is_a_fault(project: Any, function: Callable[..., Any], fault: str) -> None:
    with pytest.raises(RankingError, match=fault):
        project.rank("mine", {"mine": function})


def test_a_function_is_given_texts_or_candidates(project: Any) -> None:
    seen: list[Any] = []

    def with_texts(context: str, texts: list[str]) -> list[float]:
        seen.extend((context, texts))
        return [float(len(text)) for text in texts]

    def with_candidates(context: str, candidates: Sequence[Candidate]) -> list[str]:
        return sorted(candidate.id for candidate in candidates)

    assert project.rank("mine", {"mine": with_texts}) == "bca"
    assert seen == ["insects\nwasp", ["cube", "ant", "a bee"]]
    assert project.rank("mine", {"mine": with_candidates}) == "abc"


def test_equal_texts_are_told_apart(project: Any) -> None:
    by_place = project.build("mine", {"mine": of_texts([0.1, 0.9, 0.5])})
    assert by_place.rank(TWINS).order == ("y", "z", "x")
    by_id = project.build("mine", {"mine": of_candidates(["y", "z", "x"])})
    assert by_id.rank(TWINS).order == ("y", "z", "x")


def test_ties_do_not_follow_the_input_order(project: Any) -> None:
    tied = project.build("mine", {"mine": of_texts([1.0, 1.0, 1.0])})
    assert tied.rank(TWINS).order == tied.rank(TWINS.select("zyx")).order


def test_a_function_costs_one_timed_call_and_ticks(project: Any) -> None:
    reranker = project.build("mine", {"mine": of_texts([0.1, 0.9, 0.5])})
    with bar(1, "ranking", show=False) as shown:
        ranking = reranker.rank(project.request)
    assert (ranking.cost.calls, ranking.cost.depth, shown.done) == (1, 1, 1)
    assert ranking.cost.seconds > 0


def test_further_parameters_of_a_function_are_options(project: Any) -> None:
    def weighted(context: str, texts: list[str], weight: float = 1.0) -> list[float]:
        return [weight * len(text) for text in texts]

    assert project.rank("mine", {"mine": weighted}) == "bca"
    assert project.rank("mine:weight=-1", {"mine": weighted}) == "acb"
    with pytest.raises(InvariError, match="option 'weight' must be a number, not 'x'"):
        project.build("mine:weight=x", {"mine": weighted})
    fingerprints = [project.build(f"mine:weight={w}", {"mine": weighted}).fingerprint() for w in (1, 2)]
    assert fingerprints[0] != fingerprints[1]
    assert fingerprints[0]["sha256"] == fingerprints[1]["sha256"]


class ById:
    """A reranker of the user's own."""

    def __init__(self, reverse: bool = False) -> None:
        self.reverse = reverse

    def rank(self, request: Request) -> Ranking:
        return Ranking.from_order(request, sorted(request.ids, reverse=self.reverse))


class Caller:
    """An object that is called."""

    def __call__(self, context: str, texts: list[str]) -> list[float]:
        return [float(len(text)) for text in texts]


def make(reverse: bool = False) -> ById:
    return ById(reverse)


def make_over(build: Any, base: str = "input_order") -> Any:
    return build.reranker(base)


def make_function(power: int = 1) -> Callable[..., Any]:
    return lambda context, texts: [float(len(text)) ** power for text in texts]


@pytest.mark.parametrize(
    ("spec", "target", "expected"),
    [
        ("mine", ById(), "abc"),
        ("mine", ById, "abc"),
        ("mine:reverse=true", ById, "cba"),
        ("mine", make, "abc"),
        ("mine:reverse=true", make, "cba"),
        ("mine", make_over, "cab"),
        ("mine:base=reverse_input_order", make_over, "bac"),
        ("mine:power=-1", make_function, "acb"),
        ("mine", Caller(), "bca"),
        ("mine", Caller, "bca"),
        ("mine", functools.partial(make, reverse=True), "cba"),
        ("mine", Caller().__call__, "bca"),
    ],
)
def test_rerankers_classes_factories_and_callables_are_told_apart(
    project: Any, spec: str, target: object, expected: str
) -> None:
    assert project.rank(spec, {"mine": target}) == expected


def raising() -> None:
    raise ValueError("no such\nindex")


def refusing() -> None:
    raise InvariError("the index is locked")


@pytest.mark.parametrize(
    ("spec", "target", "fault"),
    [
        ("mine:a=1", ById(), "reranker 'mine:a=1': is ready made and takes no options, but got a"),
        ("mine", 3, "reranker 'mine': an object of type int is neither a reranker nor a function"),
        ("mine", None, "reranker 'mine': an object of type NoneType is neither"),
        ("mine", raising, "reranker 'mine': making it raised ValueError: no such index"),
        ("mine", refusing, "reranker 'mine': the index is locked"),
        ("mine", lambda: 3, "reranker 'mine': made an object of type int, which has no method rank(request)"),
        ("mine", lambda: ById, "reranker 'mine': made 'ById', which has no method rank(request)"),
        ("mine", lambda one: one, "reranker 'mine': needs a value for option 'one'"),
        (
            "mine:revers=true",
            ById,
            "reranker 'mine:revers=true': unknown option 'revers'. Did you mean 'reverse'?",
        ),
        ("mine:a=1", of_texts([]), "reranker 'mine:a=1': unknown option 'a'. Known: none."),
    ],
)
def test_everything_else_is_refused(project: Any, spec: str, target: object, fault: str) -> None:
    with pytest.raises(InvariError) as error:
        project.build(spec, {"mine": target})
    assert str(error.value).startswith(fault)


def test_a_reranker_without_a_fingerprint_is_known_by_its_source() -> None:
    known = fingerprint_of(ById(), "mine:x=1")
    assert str(known["code"]).endswith("ById")
    assert known["label"] == "mine:x=1"
    assert len(str(known["sha256"])) == 64
