"""Labels: bound to items, to positions, or drawn for each view anew, through all steps of a method."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.errors import InvariError
from pytest_invari.metrics.agreement_gap import AgreementGap
from pytest_invari.metrics.arrays import Integers
from pytest_invari.metrics.label_agreement import label_agreement
from pytest_invari.metrics.loc import loc
from pytest_invari.protocol import (
    Candidate,
    Context,
    LabelBinding,
    Ranking,
    Request,
    Reranker,
    label_order,
    rank_all,
)

METHODS = ["bootstrapping:", "sgs:", "sgs:select=2,", "stella:probes=2,repeats=1,", "canonical_order:"]


class ByLabel:
    """The first label first, whatever the items; remembers which item it saw under which label."""

    def __init__(self, labels: LabelBinding = "item") -> None:
        self.label_binding = labels
        self.asked: list[Request] = []

    def rank(self, request: Request) -> Ranking:
        return self.rank_many([request])[0]

    def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        self.asked += requests
        return [self._rank(request) for request in requests]

    def _rank(self, request: Request) -> Ranking:
        labels = dict(zip(request.ids, request.label_indices, strict=True))
        return Ranking.from_scores(request, {item: -float(label) for item, label in labels.items()})


def agreement(requests: Sequence[Request], rankings: Sequence[Ranking]) -> tuple[AgreementGap, float]:
    """Label agreement and LOC of each query, from what records keep: input, output and diagnostics."""
    labels, ranks = defaultdict(list), defaultdict(list)
    for request, ranking in zip(requests, rankings, strict=True):
        items = sorted(request.ids)
        order = label_order(ranking.diagnostics["labels"], request.query_id, request.ids)
        labels[request.query_id].append([order.index(item) for item in items])
        ranks[request.query_id].append([ranking.order.index(item) for item in items])
    arrays: list[Integers] = [np.array(list(each.values()), np.int16) for each in (labels, ranks)]
    return label_agreement(*arrays), loc(arrays[1]).mean


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("binding", ["item", "redrawn"])
@pytest.mark.parametrize("directly", [False, True])
def test_an_item_keeps_its_label_through_all_steps_of_a_method(
    lists: Callable[..., Any], method: str, binding: LabelBinding, directly: bool
) -> None:
    data = lists(3, 6)
    for request in data.views(3):
        base = ByLabel(binding)
        built = data.build(f"{method}base=base", base=base)
        built.prepare()
        base.asked.clear()
        _ = built.rank(request) if directly else rank_all(built, [request])
        assert base.asked
        order = label_order(binding, request.query_id, request.ids)
        for asked in base.asked:
            assert asked.label_indices == tuple(order.index(item) for item in asked.ids)


@pytest.mark.parametrize("method", METHODS)
def test_labels_by_position_follow_the_places_of_every_call(lists: Callable[..., Any], method: str) -> None:
    data = lists(2, 5)
    base = ByLabel("position")
    rank_all(data.build(f"{method}base=base", base=base), data.views(3))
    assert all(asked.label_indices == tuple(range(len(asked.ids))) for asked in base.asked)


def test_bindings_differ_in_what_changes_between_views(lists: Callable[..., Any]) -> None:
    requests = lists(4, 8).views(6)

    def orders(binding: LabelBinding) -> dict[str, set[tuple[str, ...]]]:
        found = defaultdict(set)
        for request in requests:
            found[request.query_id].add(label_order(binding, request.query_id, request.ids))
        return found

    assert [len(each) for each in orders("item").values()] == [1] * 4
    assert [len(each) for each in orders("redrawn").values()] == [6] * 4
    assert all(label_order("position", r.query_id, r.ids) == r.ids for r in requests)


@settings(max_examples=50, deadline=None)
@given(st.permutations("abcdef"), st.sampled_from(["item", "redrawn"]), st.text(max_size=3))
def test_labels_are_an_order_of_the_items_and_depend_on_what_they_should(
    shown: list[str], binding: LabelBinding, query: str
) -> None:
    order = label_order(binding, query, shown)
    assert sorted(order) == sorted(shown)
    assert order == label_order(binding, query, tuple(shown))
    if binding == "item":
        assert order == label_order(binding, query, sorted(shown))


def test_no_label_follows_a_place_or_an_id() -> None:
    ids = [f"id{number}" for number in range(8)]
    counts: dict[str, Integers] = {binding: np.zeros((8, 8), int) for binding in ("item", "redrawn")}
    for number in range(4000):
        for binding, counted in counts.items():
            order = label_order(binding, f"q{number}", ids)  # type: ignore[arg-type]
            for label, item in enumerate(order):
                counted[ids.index(item), label] += 1
    for counted in counts.values():
        # 500 expected in each cell, with a standard deviation of 21.
        assert counted.min() > 400
        assert counted.max() < 600


def test_labels_that_a_request_has_stay() -> None:
    request = Request("q", Context(), tuple(Candidate(item, "") for item in "abcd"))
    bound = request.labelled("redrawn")
    assert bound.labelled("item") is bound
    assert bound.select("dca").labels == bound.labels
    assert bound.select("dca").label_indices == tuple(bound.labels.index(item) for item in "dca")
    assert request.labelled(None) is request.labelled("position") is request
    assert request.select("dca").label_indices == (0, 1, 2)


def test_what_the_harness_draws_stands_in_the_diagnostics() -> None:
    request = Request("q", Context(), tuple(Candidate(item, "") for item in "abcd"))
    for binding in ("item", "position", "redrawn"):
        base = ByLabel(binding)
        (ranking,) = rank_all(base, [request])
        assert ranking.diagnostics == {"labels": binding}
        assert ranking.order == label_order(binding, "q", request.ids)


@pytest.mark.parametrize("spec", ["input_order", "sgs:base=input_order"])
def test_a_reranker_without_labels_is_given_none(lists: Callable[..., Any], spec: str) -> None:
    data = lists(1, 4)
    built = data.build(spec)
    assert getattr(built, "label_binding", None) is None
    assert all("labels" not in ranking.diagnostics for ranking in rank_all(built, data.views(3)))


def test_an_unknown_binding_is_named() -> None:
    base: Any = ByLabel("positon")  # type: ignore[arg-type]
    request = Request("q", Context(), (Candidate("a", ""),))
    message = r"^ByLabel\.label_binding must be one of item, position, redrawn or None, not 'positon'$"
    with pytest.raises(InvariError, match=message):
        rank_all(base, [request])


@pytest.mark.parametrize("method", ["bootstrapping", "sgs"])
def test_answers_under_other_labels_are_not_remembered(lists: Callable[..., Any], method: str) -> None:
    # The inner orders are the same for all views of a query, the labels are not.
    data = lists(1, 4)
    built = data.build(f"{method}:inner_seed=query,base=base", base=ByLabel("redrawn"))
    for request, ranking in zip(data.all_orders(), rank_all(built, data.all_orders()), strict=True):
        assert ranking.order == label_order("redrawn", request.query_id, request.ids)


def test_probes_of_a_calibration_are_labelled_like_views(lists: Callable[..., Any]) -> None:
    data = lists(2, 4)
    base = ByLabel("redrawn")
    built: Any = data.build("stella:probes=2,repeats=3,base=base", base=base)
    built.prepare()
    assert len(base.asked) > 10
    for asked in base.asked:
        assert asked.labels == label_order("redrawn", asked.query_id, asked.ids)
    assert len({asked.labels for asked in base.asked}) > 10


@pytest.mark.parametrize("method", ["", "sgs:base=", "bootstrapping:base="])
def test_only_redrawn_labels_unmask_a_reranker_that_goes_by_the_label(
    lists: Callable[..., Any], method: str
) -> None:
    data = lists(10, 6)
    requests = data.views(6)
    found = {
        binding: agreement(requests, rank_all(data.build(f"{method}base", base=ByLabel(binding)), requests))
        for binding in ("item", "redrawn")
    }
    bound, consistency = found["item"]
    assert consistency == 1
    assert bound.reasons == ("labels_never_differ",) * 10
    redrawn, consistency = found["redrawn"]
    assert abs(consistency) < 0.2
    assert redrawn.values.tolist() == [1.0] * 10


def test_a_reranker_that_goes_by_the_item_has_no_gap(lists: Callable[..., Any]) -> None:
    class ByItem(ByLabel):
        def _rank(self, request: Request) -> Ranking:
            return Ranking.from_order(request, sorted(request.ids))

    base: Reranker = ByItem("redrawn")
    requests = lists(10, 6).views(6)
    found, consistency = agreement(requests, rank_all(base, requests))
    assert consistency == 1
    assert found.values.tolist() == [0.0] * 10
