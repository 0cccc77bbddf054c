"""L_F, Borda, B_F, movement and NDCG@10 against plain Python, the golden case and the paper's proposition."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.errors import InvariError
from pytest_invari.metrics.arrays import Integers
from pytest_invari.routing import JudgedLists, borda_ranks, fairness_loss, movement, outcomes

GOLDEN = Path(__file__).parents[1] / "golden" / "g18_fairness_borda_ndcg.json"
HEAD, TAIL, NONE = 0, 1, -1


def naive_exposure(ranks: list[int]) -> list[float]:
    top = min(10, len(ranks))
    total = math.fsum(1 / math.log2(rank + 2) for rank in range(top))
    return [1 / math.log2(rank + 2) / total if rank < top else 0.0 for rank in ranks]


def naive_loss(exposure: list[float], relevant: list[bool], group: list[int]) -> float | str:
    if not any(relevant):
        return "no_relevant_candidate"
    if HEAD not in group or TAIL not in group:
        return "missing_group"
    losses = []
    for each in (HEAD, TAIL):
        members = [item for item, its in enumerate(group) if its == each]
        due = Fraction(sum(relevant[item] for item in members), sum(relevant))
        losses.append(abs(math.fsum(exposure[item] for item in members) - due))
    return max(losses)


def naive_borda(views: list[list[int]]) -> list[int]:
    items = range(len(views[0]))
    points = [sum(len(items) - 1 - view[item] for view in views) for item in items]
    order = sorted(items, key=lambda item: (-points[item], item))
    return [order.index(item) for item in items]


def naive_ndcg(ranks: list[int], relevant: list[bool]) -> float:
    gained = math.fsum(
        1 / math.log2(rank + 2) for rank, hit in zip(ranks, relevant, strict=True) if hit and rank < 10
    )
    return gained / math.fsum(1 / math.log2(rank + 2) for rank in range(min(10, sum(relevant))))


def controlled(relevant: Any, group: Any) -> JudgedLists:
    return JudgedLists("controlled", np.array(relevant, bool), np.array(group, np.int8))


def ranks_of(order: list[int]) -> list[int]:
    return [order.index(item) for item in range(len(order))]


@st.composite
def judged(draw: st.DrawFn) -> tuple[Integers, Integers, JudgedLists]:
    """Canonical ranks (N, K), those of the target views (N, T, K), and the judgements."""
    queries, views, items = (draw(st.integers(1, most)) for most in (3, 4, 13))
    orders = st.permutations(range(items))
    canonical = draw(st.lists(orders, min_size=queries, max_size=queries))
    target = draw(
        st.lists(st.lists(orders, min_size=views, max_size=views), min_size=queries, max_size=queries)
    )

    def of_each_item(values: st.SearchStrategy[Any]) -> Any:
        row = st.lists(values, min_size=items, max_size=items)
        return draw(st.lists(row, min_size=queries, max_size=queries))

    lists = controlled(of_each_item(st.booleans()), of_each_item(st.sampled_from([HEAD, TAIL, NONE])))
    return np.array(canonical, np.int16), np.array(target, np.int16), lists


@settings(max_examples=150, deadline=None)
@given(judged())
def test_outcomes_equal_plain_python(case: tuple[Integers, Integers, JudgedLists]) -> None:
    canonical, target, lists = case
    found = outcomes(canonical, target, lists)
    for n in range(len(canonical)):
        shown, relevant, group = canonical[n].tolist(), lists.relevant[n].tolist(), lists.group[n].tolist()
        borda = naive_borda(target[n].tolist())
        assert found.borda[n].tolist() == borda
        exposures = [naive_exposure(shown), naive_exposure(borda)]
        assert found.movement.values[n] == pytest.approx(math.dist(*exposures), abs=1e-12)
        losses = [naive_loss(exposure, relevant, group) for exposure in exposures]
        results = (found.loss_canonical, found.loss_borda, found.benefit)
        if isinstance(losses[0], str) or isinstance(losses[1], str):
            assert [result.reasons[n] for result in results] == [losses[0]] * 3
        else:
            expected = [*losses, losses[0] - losses[1]]
            assert [result.values[n] for result in results] == pytest.approx(expected, abs=1e-12)
        for result, ranks in ((found.ndcg_canonical, shown), (found.ndcg_borda, borda)):
            if any(relevant):
                assert result.values[n] == pytest.approx(naive_ndcg(ranks, relevant), abs=1e-12)
            else:
                assert result.reasons[n] == "no_relevant_candidate"


@settings(max_examples=50, deadline=None)
@given(judged(), st.randoms(use_true_random=False))
def test_relabelling_items_changes_no_loss_and_no_movement(
    case: tuple[Integers, Integers, JudgedLists], random: Any
) -> None:
    canonical, target, lists = case
    new = list(range(canonical.shape[1]))
    random.shuffle(new)
    renamed = controlled(lists.relevant[:, new], lists.group[:, new])
    before = outcomes(canonical, target[:, :1], lists)
    after = outcomes(canonical[:, new], target[:, :1][..., new], renamed)
    for name in ("loss_canonical", "loss_borda", "benefit", "movement", "ndcg_borda"):
        first, second = getattr(before, name), getattr(after, name)
        assert second.values == pytest.approx(first.values, abs=1e-12, nan_ok=True)
        assert second.reasons == first.reasons


@settings(max_examples=50, deadline=None)
@given(st.permutations(range(6)), st.permutations(range(6, 12)))
def test_moving_items_within_their_groups_is_no_benefit_not_even_a_rounding_error(
    head: list[int], tail: list[int]
) -> None:
    lists = controlled([[True] * 4 + [False] * 8], [[HEAD] * 6 + [TAIL] * 6])
    canonical = np.arange(12, dtype=np.int16)[None]
    found = outcomes(canonical, np.array([[[*head, *tail]]], np.int16), lists)
    assert found.benefit.values[0] == 0


def test_golden_case_has_the_exact_values() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    inputs, expected = golden["inputs"], golden["expected"]
    ranks = np.array([ranks_of(order) for order in inputs["rank_orders"]], np.int16)
    items = ranks.shape[1]
    relevant = [[item in inputs["relevant"] for item in range(items)]]
    group = [[HEAD if item in inputs["head_items"] else TAIL for item in range(items)]]
    target = ranks[inputs["A4"]][None]
    found = outcomes(ranks[inputs["canonical"]][None], target, controlled(relevant, group))

    points = (items - 1 - target[0].astype(int)).sum(axis=0)
    assert points.tolist() == expected["borda_scores"]
    assert np.argsort(found.borda[0]).tolist() == expected["borda_order"]
    values = {
        "L_F_canonical": found.loss_canonical,
        "L_F_borda": found.loss_borda,
        "B_F": found.benefit,
        "movement": found.movement,
        "ndcg10_canonical": found.ndcg_canonical,
        "ndcg10_borda": found.ndcg_borda,
    }
    for name, result in values.items():
        assert result.values[0] == pytest.approx(expected[name], rel=0, abs=golden["tolerance"]), name


def test_the_same_movement_helps_one_query_and_harms_another() -> None:
    """The proposition, by the exact discount: one head and one tail item change places 1 and 2."""
    expected = json.loads(GOLDEN.read_text(encoding="utf-8"))["expected"]["counterexample"]
    items = 20
    # Item 0 is the only head item, and one of five relevant ones: its share is .20.
    lists = controlled([[item < 5 for item in range(items)]] * 2, [[HEAD] + [TAIL] * (items - 1)] * 2)
    first, second = list(range(items)), [1, 0, *range(2, items)]
    canonical = np.array([first, second], np.int16)
    target = np.array([[second] * 4, [first] * 4], np.int16)
    found = outcomes(canonical, target, lists)
    assert found.movement.values**2 == pytest.approx([expected["sq_movement"]] * 2, abs=1e-15)
    p1, p2 = expected["p1"], expected["p2"]
    assert found.loss_canonical.values == pytest.approx([abs(p1 - 0.2), abs(p2 - 0.2)], abs=1e-15)
    assert found.benefit.values == pytest.approx(
        [expected["benefit_minus"], expected["benefit_plus"]], abs=1e-12
    )


def test_the_same_movement_within_the_simplex_helps_or_harms() -> None:
    expected = json.loads(GOLDEN.read_text(encoding="utf-8"))["expected"]["counterexample"]
    # 13 of 20 relevant items are head, so that the target is (.65, .35).
    lists = controlled([[True] * 20] * 3, [[HEAD] * 13 + [TAIL] * 7] * 3)
    exposure = np.zeros((3, 20))
    exposure[:, 0], exposure[:, 19] = [0.55, 0.65, 0.45], [0.45, 0.35, 0.55]
    canonical, better, worse = fairness_loss(exposure, lists).values
    assert [canonical - better, canonical - worse] == pytest.approx(expected["simplex_benefits"], abs=1e-15)
    moved = movement(exposure[[0, 0]], exposure[1:]).values
    assert moved == pytest.approx([expected["simplex_movement"]] * 2, abs=1e-15)


def test_what_has_no_target_is_undefined_for_a_reason() -> None:
    relevant = [[True, False, False], [False] * 3, [True, False, False], [True, False, False]]
    group = [[HEAD, TAIL, NONE], [HEAD, TAIL, TAIL], [HEAD, HEAD, HEAD], [NONE, TAIL, TAIL]]
    canonical = np.array([[0, 1, 2]] * 4, np.int16)
    found = outcomes(canonical, canonical[:, None], controlled(relevant, group))
    reasons = (None, "no_relevant_candidate", "missing_group", "missing_group")
    for result in (found.loss_canonical, found.loss_borda, found.benefit):
        assert result.reasons == reasons
    # Of the three relevance shares only the head's is 1; the item without a group has exposure, too.
    top = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert found.loss_canonical.values[0] == pytest.approx(1 - 1 / top)
    assert found.ndcg_canonical.reasons == (None, "no_relevant_candidate", None, None)
    assert found.movement.values.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("stratum", "said"), [("untouched", "declared untouched"), ("", "not declared to be controlled")]
)
def test_lists_that_are_not_controlled_have_no_signed_outcome(stratum: Any, said: str) -> None:
    lists = JudgedLists(stratum, np.array([[True, False]]), np.array([[HEAD, TAIL]]))
    ranks = np.array([[0, 1]], np.int16)
    with pytest.raises(InvariError, match=f"B_F is defined on controlled lists only.*{said}"):
        outcomes(ranks, ranks[:, None], lists)
    with pytest.raises(InvariError, match=f"L_F is defined on controlled lists only.*{said}"):
        fairness_loss(np.array([[0.6, 0.4]]), lists)
    # Movement has no sign and no target.
    assert movement(np.array([[0.6, 0.4]]), np.array([[0.4, 0.6]])).values[0] == pytest.approx(
        0.2 * math.sqrt(2)
    )


def test_points_that_tie_go_to_the_smaller_id() -> None:
    # Items 1 and 2 change places, and so do 0 and 3.
    target = np.array([[[3, 0, 1, 2], [2, 1, 0, 3]]], np.int16)
    assert borda_ranks(target).tolist() == [[2, 0, 1, 3]]


def test_wrong_arrays_are_refused() -> None:
    relevant, group = np.array([[True, False]]), np.array([[HEAD, TAIL]])
    with pytest.raises(ValueError, match="controlled or untouched"):
        JudgedLists("open", relevant, group)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="booleans"):
        JudgedLists("controlled", relevant.astype(int), group)
    with pytest.raises(ValueError, match="shape of relevant"):
        JudgedLists("controlled", relevant, group[:, :1])
    with pytest.raises(ValueError, match="a group is 0"):
        JudgedLists("controlled", relevant, group + 1)
    lists = JudgedLists("controlled", relevant, group)
    with pytest.raises(ValueError, match="shape of relevant"):
        fairness_loss(np.ones((1, 3)) / 3, lists)
    with pytest.raises(ValueError, match="ranks must be strict"):
        outcomes(np.array([[0, 0]], np.int16), np.array([[[0, 1]]], np.int16), lists)
    with pytest.raises(ValueError, match="ranks must be strict"):
        borda_ranks(np.array([[[0, 0]]], np.int16))
    with pytest.raises(ValueError, match="no views"):
        borda_ranks(np.empty((1, 0, 2), np.int16))
