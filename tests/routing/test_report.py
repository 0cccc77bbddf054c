"""One call for a whole block, and what it looks like as JSON and in a terminal."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from pytest_invari.errors import InvariError
from pytest_invari.metrics.arrays import Floats, Integers, PerQuery
from pytest_invari.routing import (
    BENEFIT_FIGURES,
    COSTS,
    JudgedLists,
    Routing,
    ViewRoles,
    as_json,
    evaluate_routing,
    format_routing,
    outcomes,
    probe_instability,
    summarise_benefit,
)
from pytest_invari.statistics import seeded_resamples

QUERIES, VIEWS, ITEMS = 40, 8, 12
ROLES = ViewRoles(canonical=0, probe=(0, 1), target=(4, 5, 6, 7))
RESAMPLES = seeded_resamples(QUERIES, "report", 50)


def block() -> tuple[Integers, JudgedLists]:
    random = np.random.default_rng(7)
    ranks = random.random((QUERIES, VIEWS, ITEMS)).argsort(axis=-1).astype(np.int16)
    relevant = random.random((QUERIES, ITEMS)) < 0.4
    relevant[:2] = False
    group = np.tile((np.arange(ITEMS) % 2).astype(np.int8), (QUERIES, 1))
    return ranks, JudgedLists("controlled", relevant, group)


def evaluated(costs: Floats | None = None, **changed: Any) -> Routing:
    ranks, lists = block()
    random = np.random.default_rng(8)
    given: dict[str, Any] = {
        "lists": lists,
        "entropy": PerQuery.of(random.random(QUERIES)),
        "margin": PerQuery.of(random.random(QUERIES)),
    }
    return evaluate_routing(
        [f"q{number}" for number in range(QUERIES)],
        ranks,
        ROLES,
        costs=np.ones((QUERIES, VIEWS, len(COSTS))) if costs is None else costs,
        resamples=RESAMPLES,
        **(given | changed),
    )


def test_a_block_is_evaluated_as_its_parts_are() -> None:
    ranks, lists = block()
    found = evaluated()
    parts = outcomes(ranks[:, 0], ranks[:, 4:], lists)
    assert found.outcomes.benefit.values.tolist() == pytest.approx(parts.benefit.values.tolist(), nan_ok=True)
    assert dict(found.benefit) == summarise_benefit(parts, probe_instability(ranks, ROLES), RESAMPLES)
    assert [point.name for point in found.frontier.points] == [
        "canonical_only",
        *(
            f"{name}@{share}"
            for name in ("V2", "entropy", "margin", "random")
            for share in ("0.1", "0.25", "0.5")
        ),
        "always_aggregate",
    ]
    # 40 queries, of which 4, 10 and 20 are routed to four views each.
    calls = [point.costs["calls"] for point in found.frontier.points]
    assert calls == pytest.approx([1, 2.4, 3, 4, *[1.4, 2, 3] * 3, 4])


def test_untouched_lists_are_refused_and_so_are_views_that_are_not_there() -> None:
    ranks, lists = block()
    untouched = JudgedLists("untouched", lists.relevant, lists.group)
    with pytest.raises(InvariError, match=r"controlled lists only.*declared untouched"):
        evaluated(lists=untouched)
    nothing = PerQuery.all_undefined(QUERIES, "no_scores")
    with pytest.raises(ValueError, match="a bank of 7 views does not hold"):
        evaluate_routing(
            [str(number) for number in range(QUERIES)],
            ranks[:, :7],
            ROLES,
            lists,
            np.ones((QUERIES, 7, len(COSTS))),
            RESAMPLES,
            entropy=nothing,
            margin=nothing,
        )


def test_json_holds_everything_and_no_nan() -> None:
    found = evaluated(entropy=PerQuery.all_undefined(QUERIES, "no_scores"))
    summary = as_json(found)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert list(summary["benefit"]) == list(BENEFIT_FIGURES)
    assert summary["undefined"] == {"no_relevant_candidate": 2}
    assert (summary["queries"], summary["loss_queries"], summary["ndcg_queries"]) == (40, 38, 38)
    assert summary["refused"] == [
        {
            "policy": "entropy",
            "reason": "entropy: no score for 40 of 40 queries (no_scores 40)",
            "reasons": {"no_scores": 40},
        }
    ]
    for shown, point in zip(summary["points"], found.frontier.points, strict=True):
        assert shown["name"] == point.name
        assert shown["cost"] == dict(point.costs)
        assert (shown["loss"], shown["ndcg@10"]) == (point.loss, point.ndcg)
        assert shown["dominators"] == list(point.dominators or ())
        assert shown["domination_frequency"] == point.domination_frequency
    dominated, points = found.frontier.dominated("V2") or (0, 0)
    assert summary["dominated_by_others"]["V2"] == {"dominated": dominated, "points": points}
    assert points == 3


def test_undefined_figures_are_null_with_their_reason() -> None:
    _, lists = block()
    nothing = JudgedLists("controlled", np.zeros_like(lists.relevant), lists.group)
    summary = as_json(evaluated(lists=nothing))
    assert json.dumps(summary, allow_nan=False)
    assert summary["reason"] == "no_defined_query"
    assert all(point["loss"] is point["dominators"] is None for point in summary["points"])
    assert summary["benefit"]["benefit"]["estimate"] is None
    assert summary["dominated_by_others"]["V2"] is None
    text = "\n".join(format_routing(summary))
    assert "B_F                undefined (no_defined_query)" in text
    assert "domination is undefined: no_defined_query" in text
    assert "no L_F: no_relevant_candidate 40" in text


def test_text_shows_each_point_its_dominators_and_what_is_built_in() -> None:
    found = evaluated(margin=PerQuery.all_undefined(QUERIES, "one_candidate"), aggregate="with_canonical")
    lines = format_routing(as_json(found))
    text = " ".join(line.strip() for line in lines)
    for point in found.frontier.points:
        rows = [line.split() for line in lines if line.startswith(f"{point.name} ")]
        utility, cost = rows[0], rows[1]
        word = "yes" if point.dominators else "no"
        assert utility[1] == str(point.routed)
        assert utility[4:] == [
            f"{point.loss:.3f}",
            f"{point.ndcg:.3f}",
            word,
            f"{point.domination_frequency:.0%}",
        ]
        assert len(cost) == 1 + len(COSTS)
        if point.dominators:
            assert f"{point.name} is dominated by {', '.join(point.dominators)}" in text
    dominated, points = found.frontier.dominated("V2") or (0, 0)
    assert f"V2: {dominated} of {points} points dominated by an endpoint or another policy" in text
    assert "V2 ranks 2 views of every query before it routes, others 1" in text
    assert text.count("before it routes") == 1
    assert "always_aggregate ranks the canonical view as well" in text
    assert "refused: margin: no score for 40 of 40 queries (one_candidate 40)" in text


def test_rare_values_leave_the_frequency_of_domination_undefined() -> None:
    _, lists = block()
    few = lists.relevant.copy()
    few[2:] = False
    few[0, 0] = True
    lines = format_routing(as_json(evaluated(lists=JudgedLists("controlled", few, lists.group))))
    (note,) = [line for line in lines if line.startswith("the frequency of domination")]
    # The one query with a value is not in (1 − 1/40)^40 = 36% of the resamples.
    missing = re.search(r"undefined_replicates, (\d+) of 50", " ".join(lines[lines.index(note) :]))
    assert missing is not None
    assert 5 < int(missing[1]) < 35
    assert "undefined" in next(line for line in lines if line.startswith("V2@0.1"))


@pytest.mark.parametrize("size", [0.0, 1e-9, 1.0, 123456.0, 1e6, 1e15])
def test_no_line_is_wider_than_80_columns(size: float) -> None:
    costs = np.full((QUERIES, VIEWS, len(COSTS)), size)
    fractions = (0.01, 0.123456, 0.5, 0.975)
    summary = as_json(evaluated(costs, fractions=fractions))
    assert max(map(len, format_routing(summary))) <= 80
