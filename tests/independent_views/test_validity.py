"""A whole block against one written with SciPy and loops, and rerankers whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.stats

from pytest_invari.errors import InvariError
from pytest_invari.independent_views import Design, Validity, adjust_family, validate
from pytest_invari.independent_views.distances import exposure_vectors
from pytest_invari.independent_views.held_out import query_folds
from pytest_invari.metrics.arrays import Floats, Integers
from pytest_invari.statistics import Resamples, paper_resamples, seeded_resamples

BANK = ("canonical", "13", "17", "19", "23", "29", "31", "41")
PAPER = Design(BANK, ("canonical", "13"), ("23", "29", "31", "41"))
# What a reranker that ranks at random makes of overlap 2, by simulation.
COIN_FLIP_RHO_2 = 0.549


def random_orders(seed: int, queries: int, items: int = 20) -> Integers:
    return np.random.default_rng(seed).random((queries, 8, items)).argsort(axis=-1).astype(np.int16)


def heterogeneous(seed: int, queries: int, items: int = 20) -> Integers:
    """Some queries are ranked much the same way in every view, and some hardly."""
    random = np.random.default_rng(seed)
    noise = random.gamma(2, 0.4, size=(queries, 1, 1))
    scores = random.normal(size=(queries, 1, items)) + noise * random.normal(size=(queries, 8, items))
    return (-scores).argsort(axis=-1).argsort(axis=-1).astype(np.int16)


def names(queries: int) -> list[str]:
    return [f"user {number}" for number in range(queries)]


def estimates(block: Validity) -> dict[str, float]:
    return {name: found.interval.estimate for name, found in block.findings.items()}


Statistic = Callable[[Integers], float]


def naive_statistics(ranks: Integers, ids: list[str], design: Design) -> dict[str, Statistic]:
    """Each statistic as a function of the queries drawn."""
    vectors = exposure_vectors(ranks)
    probe, target = design.probe_views, design.target_views
    base, largest = len(probe), design.largest_size

    def exposure(views: tuple[int, ...]) -> Floats:
        spread: Floats = vectors[:, list(views)].var(axis=1).sum(axis=1)
        return spread

    def ranking(views: tuple[int, ...]) -> Floats:
        apart: Floats = np.mean([1 - taus[pair] for pair in combinations(sorted(views), 2)], axis=0)
        return apart

    taus = {
        (s, t): np.array([scipy.stats.kendalltau(query[s], query[t]).statistic for query in ranks])
        for s, t in combinations(range(len(design.bank)), 2)
    }
    sets = {
        reused: [
            (*old, *fresh)
            for old in combinations(probe, reused)
            for fresh in combinations(target, len(target) - reused)
        ]
        for reused in range(3)
    }
    found: dict[str, Statistic] = {}
    for prefix, measure in (("", exposure), ("ranking_", ranking)):
        targets = {str(reused): np.mean([measure(each) for each in sets[reused]], axis=0) for reused in sets}
        # The probe's distance is d²/m² of each set, and its own V is d²/4.
        removed = targets["2"] - exposure(probe) * (2 / len(target)) ** 2
        if measure is ranking:
            own = tuple(sorted(probe))
            others = [[pair for pair in combinations(sorted(each), 2) if pair != own] for each in sets[2]]
            removed = np.mean([[1 - taus[pair] for pair in pairs] for pairs in others], axis=(0, 1))
        targets["2_removed"] = removed
        targets = {name: np.round(values, 12) for name, values in targets.items()}
        probes = {size: np.round(measure(design.probe_of(size)), 12) for size in (base, *design.other_sizes)}
        rhos = {f"rho_{name}": rho(probes[base], values) for name, values in targets.items()}
        rhos |= {f"rho_0_probe_{size}": rho(probes[size], targets["0"]) for size in design.other_sizes}
        gains = {
            f"rho_0_probe_{size}_minus_{base}": (f"rho_0_probe_{size}", "rho_0")
            for size in design.other_sizes
        }
        every = rhos | {
            name: less(rhos[one], rhos[other])
            for name, (one, other) in (gains | {"rho_2_minus_0": ("rho_2", "rho_0")}).items()
        }
        folds = query_folds(ids)
        alone = r_squared([probes[base]], targets["0"], folds)
        together = r_squared([probes[base], probes[largest]], targets["0"], folds)
        every[f"r2_probe_{base}"] = alone
        every[f"r2_probe_{base}_and_{largest}"] = together
        every["r2_gain"] = less(together, alone)
        every[f"jaccard_probe_{base}_and_{largest}"] = jaccard(probes[base], probes[largest], ids)
        found |= {prefix + name: statistic for name, statistic in every.items()}
    return found


def rho(x: Floats, y: Floats) -> Statistic:
    return lambda drawn: float(scipy.stats.spearmanr(x[drawn], y[drawn]).statistic)


def less(one: Statistic, other: Statistic) -> Statistic:
    return lambda drawn: one(drawn) - other(drawn)


def r_squared(predictors: list[Floats], outcome: Floats, folds: Integers) -> Statistic:
    columns = np.column_stack([np.ones(len(outcome)), *(each * 100 for each in predictors)])

    def value(drawn: Integers) -> float:
        unexplained = total = 0.0
        for fold in range(5):
            test, training = drawn[folds[drawn] == fold], drawn[folds[drawn] != fold]
            fit = np.linalg.lstsq(columns[training], outcome[training], rcond=None)[0]
            unexplained += float(((outcome[test] - columns[test] @ fit) ** 2).sum())
            total += float(((outcome[test] - outcome[training].mean()) ** 2).sum())
        return 1 - unexplained / total

    return value


def jaccard(one: Floats, other: Floats, ids: list[str]) -> Statistic:
    def top(values: Floats, drawn: Integers) -> set[tuple[str, int]]:
        copies = [
            (-values[query], ids[query], copy)
            for query in set(drawn.tolist())
            for copy in range(int((drawn == query).sum()))
        ]
        return {(query_id, copy) for _, query_id, copy in sorted(copies)[: math.ceil(len(drawn) / 4)]}

    return lambda drawn: len(top(one, drawn) & top(other, drawn)) / len(top(one, drawn) | top(other, drawn))


def each_draw(resamples: Resamples) -> list[Integers]:
    return [
        np.repeat(np.arange(resamples.count), row)
        for block in resamples.blocks()
        for row in block.astype(np.int64)
    ]


@pytest.mark.parametrize(
    ("design", "items"),
    [
        (PAPER, 20),
        # Another bank's order, lists shorter than the top 10, probes smaller and larger than the declared.
        (Design(BANK[:7], ("31", "13"), ("canonical", "29", "19"), (2, 4)), 6),
    ],
)
def test_every_figure_is_that_of_loops_and_scipy(design: Design, items: int) -> None:
    ranks = heterogeneous(1, 60, items)[:, : len(design.bank)]
    ids, resamples = names(60), seeded_resamples(60, "block", 40)
    block = validate(ranks, design, ids, resamples)
    naive = naive_statistics(ranks, ids, design)
    assert set(naive) == set(block.findings)
    draws = each_draw(resamples)
    for name, statistic in naive.items():
        found = block.findings[name]
        replicates = np.array([statistic(drawn) for drawn in draws])
        assert found.interval.estimate == pytest.approx(statistic(np.arange(60)), abs=1e-9), name
        bounds = np.quantile(replicates, [0.025, 0.975])
        assert [found.interval.low, found.interval.high] == pytest.approx(bounds, abs=1e-9), name
        assert (found.interval.n, found.interval.replicates) == (60, 40)
        if "jaccard" in name:
            assert math.isnan(found.p_value)
            assert found.chance == 15 / 105
        else:
            assert found.p_value == pytest.approx((1 + (replicates <= 0).sum()) / 41), name
            is_inclusive = name.removeprefix("ranking_") in ("rho_2", "rho_2_minus_0")
            assert (found.chance > 0.4) if is_inclusive else (found.chance == 0)


@pytest.fixture(scope="module")
def coin_flip() -> Validity:
    return validate(random_orders(0, 1000), PAPER, names(1000), paper_resamples(1000))


@pytest.mark.parametrize("measure", ["", "ranking_"])
def test_a_reranker_that_ranks_at_random_has_no_rho_0_and_a_large_rho_2(
    coin_flip: Validity, measure: str
) -> None:
    found = {
        name: coin_flip.findings[measure + name] for name in ("rho_0", "rho_1", "rho_2", "rho_2_removed")
    }
    for name in ("rho_0", "rho_1", "rho_2_removed"):
        interval = found[name].interval
        assert interval.low < 0 < interval.high
        assert interval.high - interval.low < 0.15
        assert found[name].chance == 0
    interval, level = found["rho_2"].interval, found["rho_2"].mechanical
    assert interval.low < COIN_FLIP_RHO_2 < interval.high
    assert found["rho_2"].chance == pytest.approx(COIN_FLIP_RHO_2, abs=0.006)
    # All of it is mechanical: it is no less when the rest of the target is another query's.
    assert level is not None
    assert level.low < interval.estimate < level.high
    contrast = coin_flip.findings[f"{measure}rho_2_minus_0"]
    assert contrast.p_value == 1 / 1001
    assert contrast.mechanical == level


def test_a_random_reranker_s_nested_probes_share_more_than_unrelated_quarters(coin_flip: Validity) -> None:
    found = coin_flip.findings["jaccard_probe_2_and_4"]
    assert found.chance == pytest.approx(1 / 7)
    assert found.interval.low > found.chance + 0.05
    assert found.mechanical is not None
    assert found.mechanical.low < found.interval.estimate < found.mechanical.high


def test_a_probe_that_foretells_stops_to_when_the_target_is_another_query_s() -> None:
    ranks = heterogeneous(2, 400)
    resamples = seeded_resamples(400, "foretells", 300)
    block = validate(ranks, PAPER, names(400), resamples)
    assert block.findings["rho_0"].interval.low > 0.5
    assert block.findings["rho_0_probe_4_minus_2"].interval.low > 0
    assert block.findings["r2_gain"].interval.low > 0
    shuffled = ranks.copy()
    shuffled[:, 4:] = ranks[np.random.default_rng(3).permutation(400), 4:]
    without = validate(shuffled, PAPER, names(400), resamples)
    for measure in ("", "ranking_"):
        interval = without.findings[f"{measure}rho_0"].interval
        assert interval.low < 0 < interval.high
        # A reused view still ties the target to the probe.
        assert without.findings[f"{measure}rho_2"].interval.low > 0.15
        assert block.findings[f"{measure}rho_2"].interval.estimate > 0.9


def test_names_of_items_views_and_queries_do_not_matter() -> None:
    ranks, ids, resamples = heterogeneous(4, 120), names(120), seeded_resamples(120, "names", 20)
    block = validate(ranks, PAPER, ids, resamples)
    random = np.random.default_rng(5)
    relabelled = random.permuted(np.tile(np.arange(20), (120, 1)), axis=1)
    items = np.take_along_axis(ranks, relabelled[:, None, :], axis=2)
    bank = tuple(f"seed {name}" for name in BANK)
    renamed = Design(bank, bank[1::-1], bank[:3:-1])
    for same in (validate(items, PAPER, ids, resamples), validate(ranks, renamed, ids, resamples)):
        for name, found in block.findings.items():
            assert same.findings[name].interval == found.interval
            assert same.findings[name].mechanical == found.mechanical
    order = random.permutation(120)
    moved = validate(ranks[order], PAPER, [ids[query] for query in order], resamples)
    assert estimates(moved) == pytest.approx(estimates(block), rel=0, abs=1e-12)


def test_the_views_of_bank_probe_and_target_are_found_by_name() -> None:
    ranks, ids, resamples = heterogeneous(6, 50), names(50), seeded_resamples(50, "views", 20)
    order = [5, 2, 7, 0, 3, 6, 1, 4]
    bank = tuple(BANK[place] for place in order)
    # Probes of 3 and 4 views go on in the order of the bank, so that these two take 17 and 19 in both.
    moved = validate(ranks[:, order], Design(bank, PAPER.probe, PAPER.target), ids, resamples)
    assert estimates(moved) == estimates(validate(ranks, PAPER, ids, resamples))


def reasons(block: Validity) -> dict[str, str | None]:
    return {name: found.interval.reason for name, found in block.findings.items()}


def test_an_invariant_reranker_has_nothing_to_correlate() -> None:
    ranks = np.repeat(random_orders(7, 30)[:, :1], 8, axis=1)
    block = validate(ranks, PAPER, names(30), paper_resamples(30))
    assert set(reasons(block).values()) == {"constant_values"}
    assert block.undefined == tuple(block.findings)
    assert all(math.isnan(found.p_value) for found in block.findings.values())
    assert all(math.isnan(found.p_holm) for found in block.findings.values())
    level = block.findings["rho_2"].mechanical
    assert level is not None
    assert level.reason == "constant_values"


def test_a_single_view_has_no_spread() -> None:
    ranks, resamples = heterogeneous(8, 40), seeded_resamples(40, "single", 30)
    block = validate(ranks, Design(BANK, BANK[:1], BANK[4:], (1, 2)), names(40), resamples)
    defined = {"rho_0_probe_2", "ranking_rho_0_probe_2"}
    assert {name for name, reason in reasons(block).items() if reason is None} == defined
    assert {reason for reason in reasons(block).values() if reason} == {"single_view_probe"}
    pair = validate(ranks, Design(BANK, BANK[:2], BANK[4:], (1, 2)), names(40), resamples)
    assert reasons(pair)["rho_0_probe_1"] == reasons(pair)["rho_0_probe_1_minus_2"] == "single_view_probe"
    assert reasons(pair)["rho_0"] is None
    assert block.findings["rho_0_probe_2"] == pair.findings["rho_0"]
    nothing = validate(ranks, Design(BANK, BANK[:1], BANK[4:], ()), names(40), resamples)
    assert set(reasons(nothing).values()) == {"single_view_probe"}


def test_few_queries_are_undefined_with_a_reason() -> None:
    two = reasons(validate(heterogeneous(9, 2), PAPER, names(2), seeded_resamples(2, "two", 20)))
    assert (two["rho_0"], two["r2_gain"]) == ("fewer_than_3_queries", "fewer_than_5_queries")
    # user 1 … user 6 without those of one fold.
    ids = [each for each in names(40) if query_folds([each])[0] != 2][:12]
    twelve = reasons(validate(heterogeneous(9, 12), PAPER, ids, seeded_resamples(12, "twelve", 20)))
    assert (twelve["rho_0"], twelve["r2_probe_2"], twelve["r2_gain"]) == (None, "empty_fold", "empty_fold")


def test_too_many_undefined_resamples_leave_an_interval_undefined() -> None:
    # Only two of forty queries change with the view: a resample misses both with probability .13.
    ranks = np.repeat(random_orders(10, 40)[:, :1], 8, axis=1)
    ranks[:2] = random_orders(11, 2)
    block = validate(ranks, PAPER, names(40), paper_resamples(40))
    found = block.findings["rho_0"].interval
    assert found.reason == "undefined_replicates"
    assert found.undefined_replicates > 50
    assert not math.isnan(found.estimate)
    assert math.isnan(block.findings["rho_0"].p_value)


def test_lists_of_one_candidate_are_constant() -> None:
    block = validate(np.zeros((40, 8, 1), np.int16), PAPER, names(40), seeded_resamples(40, "one", 9))
    assert set(reasons(block).values()) == {"constant_values"}


def with_p_values(block: Validity, p_values: list[float]) -> Validity:
    findings = dict(block.findings)
    for name, p_value in zip(PAPER.family, p_values, strict=True):
        findings[name] = replace(findings[name], p_value=p_value)
    return replace(block, findings=findings)


def test_four_blocks_have_the_papers_eight_tests() -> None:
    least = 1 / 1001
    block = validate(heterogeneous(12, 30), PAPER, names(30), seeded_resamples(30, "four", 10))
    assert (block.family, block.tests) == (PAPER.family, 2)
    blocks = adjust_family([with_p_values(block, [least, least])] * 4)
    assert [each.findings[name].p_holm for each in blocks for name in PAPER.family] == pytest.approx(
        [8 * least] * 8
    )
    assert {each.tests for each in blocks} == {8}
    mixed = adjust_family(
        [with_p_values(block, pair) for pair in ([least, 0.3], [least, 0.04], [least, 0.5], [least, least])]
    )
    found = [each.findings["rho_0_probe_4_minus_2"].p_holm for each in mixed]
    assert found == pytest.approx([2 * 0.3, 3 * 0.04, 2 * 0.3, 8 * least])
    assert all(math.isnan(each.findings["rho_0"].p_holm) for each in mixed)


def test_an_undefined_test_claims_nothing_and_still_counts() -> None:
    block = validate(heterogeneous(13, 30), PAPER, names(30), seeded_resamples(30, "undefined", 10))
    (adjusted,) = adjust_family([with_p_values(block, [0.01, math.nan])])
    assert adjusted.findings["rho_2_minus_0"].p_holm == pytest.approx(0.02)
    assert math.isnan(adjusted.findings["rho_0_probe_4_minus_2"].p_holm)


def test_a_family_of_ones_own() -> None:
    block = validate(heterogeneous(14, 30), PAPER, names(30), seeded_resamples(30, "own", 10))
    (adjusted,) = adjust_family([block], ["rho_0"])
    assert (adjusted.family, adjusted.tests) == (("rho_0",), 1)
    assert adjusted.findings["rho_0"].p_holm == adjusted.findings["rho_0"].p_value
    assert math.isnan(adjusted.findings["rho_2_minus_0"].p_holm)
    with pytest.raises(InvariError, match=r"family: unknown statistic 'rho_3'\. Did you mean 'rho_"):
        adjust_family([block], ["rho_3"])


def test_arguments_that_do_not_fit_are_refused() -> None:
    ranks, resamples = heterogeneous(15, 9), seeded_resamples(9, "fit", 5)
    for wrong, ids, drawn, message in [
        (ranks[:, :7], names(9), resamples, "ranks of 7 views do not fit a bank of 8"),
        (ranks, names(8), resamples, "9 queries, 8 ids and resamples of 9 do not fit together"),
        (ranks, names(9), seeded_resamples(8, "fit", 5), "9 queries, 9 ids and resamples of 8"),
        (ranks, [*names(8), "user 3"], resamples, "query id 'user 3' is given twice"),
    ]:
        with pytest.raises(ValueError, match=message):
            validate(wrong, PAPER, ids, drawn)
