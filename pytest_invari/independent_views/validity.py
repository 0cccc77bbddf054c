"""What a probe of views tells of a fresh target, and what it seems to tell of one that reuses it (P2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from pytest_invari.errors import unknown_name
from pytest_invari.independent_views.distances import ViewDistances, view_distances
from pytest_invari.independent_views.held_out import held_out_r2, query_folds
from pytest_invari.independent_views.mechanical import Mechanical, mechanical_level, spearman_with
from pytest_invari.independent_views.replicated import undefined_interval
from pytest_invari.independent_views.targets import (
    Pairs,
    chance_rho,
    pairs_reusing,
    pairs_within,
    rounded,
    split_at,
    weigh,
    weighted_distances,
)
from pytest_invari.independent_views.top_quartile import chance_jaccard, jaccard_with, top_quartile_jaccard
from pytest_invari.metrics.arrays import Floats, Integers, require_shape
from pytest_invari.observation.design import (
    MEASURES,
    SINGLE_VIEW_PROBE,
    Design,
    Measure,
    prefixed,
    statistic_names,
)
from pytest_invari.statistics.correlation import bootstrap_spearman
from pytest_invari.statistics.interval import Interval
from pytest_invari.statistics.multiplicity import holm
from pytest_invari.statistics.resampling import Resamples

PERMUTATIONS = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """A statistic over the queries of a block.

    ``chance`` is where it would be if there were nothing to find: rho for a reranker that ranks at random, no
    R², the overlap of two unrelated quarters. ``mechanical`` is there for what a probe inflates by being part
    of what it is held against, rho_2, its contrast with rho_0, and the overlap of nested probes: its level if
    nothing but that part tied the two.
    ``p_value`` is one-sided, (1 + #{replicates ≤ 0}) / (B + 1), of the claim that the statistic is above 0;
    NaN for a Jaccard overlap and for what is undefined. ``p_holm`` is adjusted, NaN outside of the family.
    """

    interval: Interval
    chance: float
    p_value: float = math.nan
    p_holm: float = math.nan
    mechanical: Mechanical | None = None


@dataclass(frozen=True, eq=False)
class Validity:
    """The findings of one block: one reranker on one data set.

    ``findings`` are by name, in the order of
    :func:`~pytest_invari.observation.design.statistic_names`. ``family`` names those that Holm's method
    took together, ``tests`` is how many it took in all blocks.
    """

    design: Design
    queries: int
    replicates: int
    findings: Mapping[str, Finding]
    family: tuple[str, ...]
    tests: int

    @property
    def undefined(self) -> tuple[str, ...]:
        """The names of the findings that have no interval."""
        return tuple(name for name, found in self.findings.items() if not found.interval.defined)


def validate(
    ranks: Integers,
    design: Design,
    query_ids: Sequence[str],
    resamples: Resamples,
    *,
    permutations: int = PERMUTATIONS,
) -> Validity:
    """Correlate the probe's instability with that of fresh and of reused targets, over queries.

    Every interval is the percentile interval of P2, of the same resamples, so that all contrasts are paired.
    Holm's method takes the block's own two tests together; :func:`adjust_family` does so for several blocks.

    Args:
        ranks: (N, B, K) strict output ranks, 0-based, of the views in the order of the bank.
        design: the bank's names, the probe, the target and the probe sizes.
        query_ids: of the N queries; they decide folds and ties.
        resamples: of the N queries; ``paper_resamples(N)`` are P2's.
        permutations: how many the mechanical level is a mean of.

    Raises:
        ValueError: the arguments do not fit each other, or an id repeats.
    """
    queries = _require_fit(ranks, design, query_ids, resamples)
    distances = view_distances(ranks)
    # What needs the spread of a single view is found by none of the three and stays undefined.
    undefined = Finding(undefined_interval(queries, SINGLE_VIEW_PROBE), math.nan)
    findings = dict.fromkeys(statistic_names(design), undefined)
    for measure in MEASURES:
        weights = _weights(measure, design)
        values = {
            name: rounded(weighted_distances(distances, measure, each)) for name, each in weights.items()
        }
        found = _correlations(weights, values, design, resamples)
        if len(design.probe) > 1:
            found |= _predictions(values, design, query_ids, resamples)
            for name, level in _levels(distances, measure, values, design, query_ids, permutations).items():
                found[name] = replace(found[name], mechanical=level)
        findings |= {prefixed(measure, name): finding for name, finding in found.items()}
    block = Validity(design, queries, resamples.replicates, MappingProxyType(findings), (), 0)
    return adjust_family([block])[0]


def adjust_family(blocks: Sequence[Validity], family: Sequence[str] | None = None) -> list[Validity]:
    """The blocks with p-values adjusted by Holm's method over the family's tests of all of them.

    A test that is undefined stays in the family, as one that claims nothing.

    Args:
        blocks: what is claimed together; P2 takes four, with eight tests.
        family: names of findings; by default the two contrasts of each block's design.

    Raises:
        UnknownNameError: a block has no finding of that name.
    """
    names = [tuple(block.design.family if family is None else family) for block in blocks]
    for block, chosen in zip(blocks, names, strict=True):
        for name in chosen:
            if name not in block.findings:
                raise unknown_name("statistic", name, block.findings, where="family")
    p_values = [
        block.findings[name].p_value for block, chosen in zip(blocks, names, strict=True) for name in chosen
    ]
    claims = iter(holm([1.0 if math.isnan(p_value) else p_value for p_value in p_values]))
    adjusted = []
    for block, chosen in zip(blocks, names, strict=True):
        findings = {name: replace(each, p_holm=math.nan) for name, each in block.findings.items()}
        for name in chosen:
            p_holm = next(claims)
            is_undefined = math.isnan(findings[name].p_value)
            findings[name] = replace(findings[name], p_holm=math.nan if is_undefined else p_holm)
        adjusted.append(
            replace(block, findings=MappingProxyType(findings), family=chosen, tests=len(p_values))
        )
    return adjusted


def _weights(measure: Measure, design: Design) -> dict[str, Pairs]:
    """The weights of every probe and target that has a spread, by name."""
    probe, target = design.probe_views, design.target_views
    weights = {
        f"probe_{size}": weigh(measure, pairs_within(design.probe_of(size)), size)
        for size in (len(probe), *design.other_sizes)
        if size > 1
    }
    weights["target_0"] = weigh(measure, pairs_within(target), len(target))
    if len(probe) > 1:
        once, twice = (pairs_reusing(probe, target, reused) for reused in (1, 2))
        _, removed = split_at(twice, probe)
        inclusive = {"target_1": once, "target_2": twice, "target_2_removed": removed}
        weights |= {name: weigh(measure, pairs, len(target)) for name, pairs in inclusive.items()}
    return weights


def _correlations(
    weights: Mapping[str, Pairs], values: Mapping[str, Floats], design: Design, resamples: Resamples
) -> dict[str, Finding]:
    """Each rho of a probe with a target, and how much more than rho_0 some of them are."""
    base = len(design.probe)
    pairs: dict[str, tuple[str, str]] = {}
    bases: dict[str, tuple[str, str]] = {}
    if base > 1:
        for name in ("0", "1", "2", "2_removed"):
            pairs[f"rho_{name}"] = (f"probe_{base}", f"target_{name}")
        bases["rho_2_minus_0"] = ("rho_2", "rho_0")
    for size in design.other_sizes:
        if size > 1:
            pairs[f"rho_0_probe_{size}"] = (f"probe_{size}", "target_0")
        if min(size, base) > 1:
            bases[f"rho_0_probe_{size}_minus_{base}"] = (f"rho_0_probe_{size}", "rho_0")
    bootstrap = bootstrap_spearman(values, pairs, resamples)
    chance = {name: chance_rho(weights[one], weights[other]) for name, (one, other) in pairs.items()}
    found = {name: _tested(bootstrap.interval(name), chance[name]) for name in pairs}
    for name, (more, less) in bases.items():
        # What is taken off is always rho_0, of which chance makes nothing.
        found[name] = _tested(bootstrap.contrast(more, less), chance[more])
    return found


def _predictions(
    values: Mapping[str, Floats], design: Design, query_ids: Sequence[str], resamples: Resamples
) -> dict[str, Finding]:
    """Held-out R² of the probe and of it with the largest one, and the overlap of their top quarters."""
    base, largest = len(design.probe), design.largest_size
    probe, target = values[f"probe_{base}"], values["target_0"]
    folds = query_folds(query_ids)
    alone = held_out_r2([probe], target, folds, resamples)
    found = {f"r2_probe_{base}": _tested(alone.interval(), 0.0)}
    if largest > base:
        larger = values[f"probe_{largest}"]
        together = held_out_r2([probe, larger], target, folds, resamples)
        overlap = top_quartile_jaccard(probe, larger, query_ids, resamples)
        found[f"r2_probe_{base}_and_{largest}"] = _tested(together.interval(), 0.0)
        found["r2_gain"] = _tested(together.minus(alone).interval(), 0.0)
        found[f"jaccard_probe_{base}_and_{largest}"] = Finding(overlap.interval(), chance_jaccard(len(probe)))
    return found


def _levels(
    distances: ViewDistances,
    measure: Measure,
    values: Mapping[str, Floats],
    design: Design,
    query_ids: Sequence[str],
    permutations: int,
) -> dict[str, Mechanical]:
    """The mechanical level of each finding that a probe inflates by being part of what it is held against."""
    base, largest = len(design.probe), design.largest_size
    probe = values[f"probe_{base}"]

    def level(weights: Pairs, statistic: Callable[[Floats], float]) -> Mechanical:
        parts = split_at(weights, design.probe_views)
        own, rest = (weighted_distances(distances, measure, part) for part in parts)
        return mechanical_level(own, rest, statistic, permutations)

    weights = _weights(measure, design)
    reused = level(weights["target_2"], spearman_with(probe))
    levels = {"rho_2": reused, "rho_2_minus_0": reused}
    if largest > base:
        overlap = level(weights[f"probe_{largest}"], jaccard_with(probe, query_ids))
        levels[f"jaccard_probe_{base}_and_{largest}"] = overlap
    return levels


def _tested(interval: Interval, chance: float) -> Finding:
    return Finding(interval, chance, interval.probability_at_most(0.0))


def _require_fit(ranks: Integers, design: Design, query_ids: Sequence[str], resamples: Resamples) -> int:
    queries, views, _ = require_shape(ranks)
    if views != len(design.bank):
        raise ValueError(f"ranks of {views} views do not fit a bank of {len(design.bank)}")
    if len(query_ids) != queries or resamples.count != queries:
        raise ValueError(
            f"{queries} queries, {len(query_ids)} ids and resamples of {resamples.count} do not fit together"
        )
    if len(set(query_ids)) != queries:
        repeated = next(each for each in query_ids if list(query_ids).count(each) > 1)
        raise ValueError(f"query id {repeated!r} is given twice")
    return queries
