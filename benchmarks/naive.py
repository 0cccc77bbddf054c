"""The metrics of one query as a first version would compute them: loops, one view and one pair at a time."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

Views: TypeAlias = list[list[int]]
# From positions and ranks of one query, (M, K) each, to its value.
NaiveMetric: TypeAlias = Callable[[Views, Views], float]

_ORACLES = Path(__file__).parents[1] / "tests" / "metrics" / "test_consistency.py"


def loc_by_scipy(positions: Views, ranks: Views) -> float:
    """``scipy.stats.kendalltau`` of each pair of views."""
    from scipy.stats import kendalltau

    taus = [float(kendalltau(first, second).statistic) for first, second in combinations(ranks, 2)]
    return sum(taus) / len(taus)


def ppi_by_loops(positions: Views, ranks: Views) -> float:
    """Wins and views of each bucket pair, counted in dictionaries; 3 buckets, no ties."""
    items = len(ranks[0])
    total = 0.0
    for i, j in combinations(range(items), 2):
        seen: dict[tuple[int, int], int] = {}
        won: dict[tuple[int, int], int] = {}
        for shown, view in zip(positions, ranks, strict=True):
            cell = min(shown[i] * 3 // items, 2), min(shown[j] * 3 // items, 2)
            seen[cell] = seen.get(cell, 0) + 1
            won[cell] = won.get(cell, 0) + (view[i] < view[j])
        shares = [won[cell] / seen[cell] for cell in seen]
        total += max(shares) - min(shares)
    return total / (items * (items - 1) // 2)


def gpi_by_loops(positions: Views, ranks: Views) -> float:
    """The swap search, with each trial order evaluated from nothing; no ties."""
    items, views = len(ranks[0]), len(ranks)
    wins = [[sum(view[i] < view[j] for view in ranks) for j in range(items)] for i in range(items)]

    def disagreement(order: list[int]) -> int:
        return sum(wins[lower][upper] for upper, lower in combinations(order, 2))

    order = sorted(range(items), key=lambda item: (-sum(wins[item]), item))
    while True:
        least, best = disagreement(order), None
        for upper, lower in combinations(range(items), 2):
            trial = list(order)
            trial[upper], trial[lower] = trial[lower], trial[upper]
            after = disagreement(trial)
            if after < least:
                least, best = after, trial
        if best is None:
            return least / (views * items * (items - 1) // 2)
        order = best


def ppi_by_oracle(positions: Views, ranks: Views) -> float:
    """What the tests compare with: plain loops in exact fractions."""
    oracle = _oracles().naive_pair_instability
    pairs = list(combinations(range(len(ranks[0])), 2))
    return float(sum(oracle(positions, ranks, i, j, 3, 1)[0] for i, j in pairs) / len(pairs))


def gpi_by_oracle(positions: Views, ranks: Views) -> float:
    """What the tests compare with: plain loops in exact fractions."""
    items = len(ranks[0])
    return float(_oracles().naive_swap_search(ranks)[3] / (items * (items - 1) // 2))


def _oracles() -> Any:
    spec = importlib.util.spec_from_file_location("oracles", _ORACLES)
    if spec is None or spec.loader is None:
        raise ImportError(f"{_ORACLES} holds no module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
