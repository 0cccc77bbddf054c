"""Effectiveness against trec_eval, through ir_measures, where the definitions coincide.

HR@k is its Success@k. nDCG@k of all held-out positives is its nDCG@k with judgements of items that are not in
the list; without these it is that of the candidates.
"""

from __future__ import annotations

from itertools import permutations, product
from random import Random

import ir_measures
import numpy as np
import pytest
from ir_measures import Measure, Success, nDCG

from pytest_invari.metrics.arrays import ranks_from_scores
from pytest_invari.metrics.effectiveness import hit_rate, ndcg, ndcg_candidates

Runs = dict[str, dict[str, float]]
NEAR = 1e-9


def judged(relevant: list[bool], missed: int) -> dict[str, int]:
    """Judgements of a query's items and of relevant ones that its list does not hold."""
    found = {f"d{item:03}": int(flag) for item, flag in enumerate(relevant)}
    return found | {f"missed{n}": 1 for n in range(missed)}


def run_of(ranking: list[int]) -> dict[str, float]:
    """A run that ranks item i at ranking[i]; scores are distinct small integers."""
    return {f"d{item:03}": float(len(ranking) - rank) for item, rank in enumerate(ranking)}


def of_each_query(measure: Measure, judgements: dict[str, dict[str, int]], runs: Runs) -> list[float]:
    found = {each.query_id: each.value for each in ir_measures.iter_calc([measure], judgements, runs)}
    return [found[query] for query in runs]


def test_strict_rankings_agree_with_trec_eval() -> None:
    random = Random(0)
    for _ in range(200):
        items, k = random.randint(1, 40), random.randint(1, 45)
        ranking = random.sample(range(items), items)
        relevant = [random.random() < 0.2 for _ in range(items)]
        relevant[random.randrange(items)] = True
        missed = random.randint(0, 4)
        ranks, flags = np.array([[ranking]], np.int16), np.array([relevant])
        run = {"q": run_of(ranking)}
        whole, limited = {"q": judged(relevant, missed)}, {"q": judged(relevant, 0)}
        total = np.array([sum(relevant) + missed])
        assert hit_rate(ranks, flags, k).values.tolist() == of_each_query(Success @ k, whole, run)
        assert ndcg(ranks, flags, total, k).values.tolist() == pytest.approx(
            of_each_query(nDCG @ k, whole, run), rel=0, abs=NEAR
        )
        assert ndcg_candidates(ranks, flags, k).values.tolist() == pytest.approx(
            of_each_query(nDCG @ k, limited, run), rel=0, abs=NEAR
        )


def test_ties_are_the_mean_of_what_trec_eval_gives_their_orders() -> None:
    random = Random(1)
    for _ in range(40):
        scores = [random.randint(0, 2) for _ in range(random.randint(2, 6))]
        relevant = [random.random() < 0.4 for _ in scores]
        relevant[0] = True
        k, missed = random.randint(1, 6), random.randint(0, 2)
        groups = [[i for i, score in enumerate(scores) if score == each] for each in (2, 1, 0)]
        orders = [
            [item for group in chosen for item in group]
            for chosen in product(*(permutations(group) for group in groups))
        ]
        runs = {
            f"q{n}": run_of([order.index(i) for i in range(len(scores))]) for n, order in enumerate(orders)
        }
        whole = {query: judged(relevant, missed) for query in runs}
        ranks, flags = ranks_from_scores(np.array([[scores]], np.float64)), np.array([relevant])
        assert hit_rate(ranks, flags, k).values[0] == pytest.approx(
            np.mean(of_each_query(Success @ k, whole, runs)), rel=0, abs=NEAR
        )
        total = np.array([sum(relevant) + missed])
        assert ndcg(ranks, flags, total, k).values[0] == pytest.approx(
            np.mean(of_each_query(nDCG @ k, whole, runs)), rel=0, abs=NEAR
        )
