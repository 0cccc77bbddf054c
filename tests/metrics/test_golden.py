"""The kernels against small inputs whose values were computed in exact rational arithmetic."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_invari.metrics.arrays import QueryArrays, query_arrays, ranks_from_scores
from pytest_invari.metrics.cells import position_buckets
from pytest_invari.metrics.exposure import exposure
from pytest_invari.metrics.gpi import consensus, gpi
from pytest_invari.metrics.loc import loc
from pytest_invari.metrics.ppi import ppi, ppi_of_pairs
from pytest_invari.metrics.preference import preferences, tie_rate, wins

FOLDER = Path(__file__).parents[1] / "golden"
RANKINGS = [
    "g01_invariant",
    "g03_reverse_echo",
    "g05_condorcet_cycle",
    "g06_swap_local_optimum_not_exact",
    "g09b_partly_observed",
]


def load(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return data


def arrays_of(case: dict[str, Any]) -> QueryArrays:
    views = case["views"]
    return query_arrays("q", [view["input"] for view in views], [view["output"] for view in views])


def exact(values: dict[str, str]) -> list[float]:
    """Rationals by pair, "0,1" and on, in the order of ``triu_indices``."""
    return [float(Fraction(values[pair])) for pair in sorted(values, key=lambda p: [*map(int, p.split(","))])]


@pytest.mark.parametrize("name", RANKINGS)
def test_golden_rankings_give_the_exact_values(name: str) -> None:
    golden = load(name)
    rationals = golden["exact"]
    arrays = arrays_of(golden["inputs"])
    positions, ranks = arrays.positions[None], arrays.ranks[None]
    near = {"rel": 0, "abs": golden["tolerance"]}

    assert list(arrays.ids) == golden["inputs"]["items"]
    assert preferences(ranks)[0] == pytest.approx(exact(rationals["q"]), **near)
    spread, cells = ppi_of_pairs(positions, ranks)
    assert spread[0] == pytest.approx(exact(rationals["ppi_pair"]), **near)
    assert int((cells < 2).sum()) == rationals["pairs_dropped"]
    paper, dropping = ppi(positions, ranks), ppi(positions, ranks, single_cell="drop")
    assert paper.values[0] == pytest.approx(float(Fraction(rationals["ppi"])), **near)
    assert paper.single_cell_pairs[0] == rationals["pairs_dropped"]
    assert dropping.values[0] == pytest.approx(float(Fraction(rationals["ppi_drop"])), **near)
    assert loc(ranks).values[0] == pytest.approx(float(Fraction(rationals["loc"])), **near)
    for k in golden["options"]["exposure_k"]:
        expected = [float(Fraction(share)) for share in rationals[f"E_{k}"]]
        assert exposure(positions, ranks, k) == pytest.approx(expected, **near)


@pytest.mark.parametrize("name", RANKINGS)
def test_golden_swap_search_finds_the_same_order_and_certificate(name: str) -> None:
    golden = load(name)
    expected, rationals = golden["expected"], golden["exact"]
    arrays = arrays_of(golden["inputs"])
    views, items = arrays.ranks.shape
    result = gpi(arrays.ranks[None])
    found = consensus(wins(arrays.ranks[None]), views, items)
    whole = views * items * (items - 1)

    assert Fraction(int(found.disagreement[0]), whole) == Fraction(rationals["gpi"])
    assert Fraction(int(found.start_disagreement[0]), whole) == Fraction(rationals["gpi_init"])
    assert [arrays.ids[i] for i in found.order[0]] == expected["gpi_order"]
    assert found.swaps[0] == len(expected["gpi_swaps_positions"])
    assert result.values[0] == pytest.approx(expected["gpi"], rel=0, abs=1e-15)
    assert result.lower_bound[0] == pytest.approx(expected["gpi_lower_bound"], rel=0, abs=1e-15)


@pytest.mark.parametrize("case", load("g08_edge_cases")["inputs"]["cases"], ids=lambda case: case["name"])
def test_golden_edge_cases_are_undefined_with_a_reason(case: dict[str, Any]) -> None:
    expected = load("g08_edge_cases")["expected"][case["name"]]
    arrays = arrays_of(case)
    positions, ranks = arrays.positions[None], arrays.ranks[None]
    results = {
        "ppi": ppi(positions, ranks),
        "ppi_drop": ppi(positions, ranks, single_cell="drop"),
        "gpi": gpi(ranks),
        "loc": loc(ranks),
    }
    for metric, value in expected.items():
        if metric == "reason":
            assert {result.reasons[0] for result in results.values()} == {value}
        elif value is None:
            assert np.isnan(results[metric].values[0])
            assert results[metric].reasons[0] is not None
        else:
            assert results[metric].values[0] == value


def test_golden_bucket_table_is_reproduced() -> None:
    for case, expected in load("g10_bucket_table")["expected"].items():
        items, buckets = (int(part[1:]) for part in case.split("_"))
        assert position_buckets(items, buckets).tolist() == expected, case


def test_golden_half_ties_count_half_a_win() -> None:
    golden = load("g11_half_ties")
    rationals = golden["exact"]
    order = golden["inputs"]["inputs"]
    positions = query_arrays("q", order, order).positions[None]
    ranks = ranks_from_scores(np.array(golden["inputs"]["scores_by_item"]))[None]

    assert preferences(ranks)[0] == pytest.approx(exact(rationals["q"]), abs=1e-12)
    assert loc(ranks).values[0] == pytest.approx(float(Fraction(rationals["loc"])), abs=1e-12)
    assert ppi(positions, ranks).values[0] == pytest.approx(float(Fraction(rationals["ppi"])), abs=1e-12)
    assert tie_rate(ranks).values[0] == pytest.approx(float(Fraction(rationals["tie_rate"])), abs=1e-12)
    # Here the search reaches the optimum; its certificate need not.
    assert gpi(ranks).values[0] == pytest.approx(float(Fraction(rationals["gpi_exact"])), abs=1e-12)
