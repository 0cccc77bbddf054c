"""The report ``invari-report/1`` as typed models: what is written, what comes from workers, and the schema.

In memory an undefined number is NaN, in the file it is null. Shares are from 0 to 1.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from pytest_invari.metrics.costs import COSTS

Count = Annotated[int, Meta(ge=0)]
Length = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
CLOSED = "closed"
"""Marks a mapping that has the declared keys alone."""

NULLABLE = "nullable"
"""Marks what has another value in memory where the file has null."""

OptionalNumber = Annotated[float, Meta(extra_json_schema={NULLABLE: True})]
"""NaN in memory, and null in the file, where it is undefined."""

Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Distance = Annotated[float, Meta(ge=0)]


def says(description: str) -> Meta:
    """What a field means, for its schema."""
    return Meta(description=description)


def costs(kind: str | list[str], words: str) -> Meta:
    """The keys of an object with a value of this *kind* for each kind of cost."""
    properties = {name: {"description": words.format(name), "type": kind} for name in COSTS}
    return Meta(extra_json_schema={"properties": properties, "required": list(COSTS), CLOSED: True})


class Model(Struct, forbid_unknown_fields=True):
    """An object all of whose keys are declared."""


class IntervalModel(Model):
    """An estimate over queries with its interval."""

    estimate: Annotated[OptionalNumber, says("the estimate over queries; null where it is undefined")]
    low: Annotated[OptionalNumber, says("lower end of the 95% interval")]
    high: Annotated[OptionalNumber, says("upper end of the 95% interval")]
    n: Annotated[Count, says("queries with a value")]


Reason = Annotated[str | None, says("code of why there is no interval; null where there is one")]
Undefined = Annotated[Count, says("queries without a value")]


Costs = Annotated[dict[str, float | None], costs(["number", "null"], "{}; null where not reported")]


class SuiteModel(Model):
    """A suite that has judged something."""

    name: Annotated[str, says("the suite's name")]
    title: Annotated[str, says("its title; empty where it has none")]
    sha256: Annotated[Digest, says("SHA-256 of its file")]
    profile: Annotated[str, says("the profile that said how much to measure")]


class EnvironmentModel(Struct):
    """What the run was made with; a hook may add to it."""

    python: Annotated[str, says("version of Python")]
    platform: Annotated[str, says("the operating system and machine")]
    packages: Annotated[dict[str, str], says("versions of the installed packages that matter, by name")]


class FigureModel(IntervalModel):
    """A metric of a subject."""

    undefined: Undefined
    reason: Reason


class AuditModel(Model):
    """What a few questions told of a reranker."""

    kind: Annotated[
        Literal["pointwise", "listwise", "unknown"],
        says("whether candidates alone get the scores that they get in the list"),
    ]
    again_alone: Annotated[Share | None, says("item pairs that the same list, asked again alone, changes")]
    again_among_others: Annotated[Share | None, says("those that it changes, asked again in a batch")]
    remembers: Annotated[bool, says("whether a list was answered as its reverse, which was asked before")]
    tie_rate: Annotated[Share | None, says("item pairs with equal scores")]
    end_of_text: Annotated[
        Literal["counts", "ignored", "unknown"],
        says("whether leaving out the last fifth of the longest text changes its score"),
    ]
    longest_text: Annotated[Count, says("the characters of the longest text that was asked about")]
    labels: Annotated[str, says("how the labels that it shows are bound; empty where it shows none")]
    served_model: Annotated[str, says("what a service says its model is; empty where none says so")]
    fault: Annotated[str, says("why the first question that failed did")]
    calls: Annotated[Count, says("the calls that the questions took")]


class RegionsModel(Model):
    """What PPI rests on."""

    cells_observed_mean: Annotated[float | None, says("pairs of regions a pair of items was seen in")]
    single_cell_pairs: Annotated[Count, says("pairs of items that were seen in fewer than two")]


class SubjectModel(Model):
    """What was measured of one reranker on one data set at one list length."""

    reranker: Annotated[str, says("the reranker with its options, secrets hidden")]
    dataset: Annotated[str, says("the data set's name")]
    k: Annotated[Length, says("candidates in each list")]
    views: Annotated[Count, says("orders of each list")]
    queries: Annotated[Count, says("lists")]
    rankings: Annotated[Count, says("rankings that were looked at, repeats aside")]
    rankings_from_records: Annotated[Count, says("those that an earlier run had made")]
    failures: Annotated[Count, says("rankings that failed")]
    failures_from_records: Annotated[Count, says("those of them that an earlier run had made")]
    rankings_asked_again: Annotated[
        Count, says("rankings for which a service was asked more than once a call")
    ]
    further_requests: Annotated[Count, says("the requests that these took beyond their calls")]
    rankings_with_cut_texts: Annotated[Count, says("rankings some text of which was cut before it was read")]
    cost: Annotated[Costs, says("means per ranking, of queries in equal parts")]
    total_cost: Annotated[Costs, says("sums over these rankings")]
    witness_rankings: Annotated[Count, says("rankings that were made for witnesses besides these")]
    witness_cost: Annotated[Costs, says("sums over the latter")]
    metrics: Annotated[dict[str, FigureModel], says("the rows of the table, by metric")]
    audit: Annotated[
        AuditModel | None, says("what a few questions told of the reranker; null without an audit")
    ]
    position_p_value: Annotated[
        Share | None, says("how often chance pairings of inputs and outputs agree as much on buckets")
    ]
    regions: Annotated[RegionsModel, says("what PPI rests on")]
    analyses: Annotated[
        dict[str, dict[str, Any]], says("the analyses that the suite asks for and that could be made")
    ]


class CriterionModel(Model):
    """A criterion that was judged."""

    id: Annotated[str, says("the item's id, by which it can be run alone")]
    suite: Annotated[str, says("the suite's name")]
    criterion: Annotated[str, says("the criterion's name")]
    kind: Annotated[str, says("metric, or another kind of criterion")]
    metric: Annotated[str | None, says("the metric's name; null for a criterion that is not about one")]
    comparison: Annotated[
        Literal["at_least", "at_most", "not_worse_than", "better_than"] | None,
        says("how the figure is held against the bound; null for another kind than metric"),
    ]
    reranker: Annotated[str, says("the reranker with its options, secrets hidden")]
    baseline: Annotated[str | None, says("the reranker that it is compared with")]
    dataset: Annotated[str, says("the data set's name")]
    k: Annotated[Length, says("candidates in each list")]
    estimate: Annotated[float | None, says("the figure, or the difference from the baseline")]
    low: Annotated[float | None, says("lower end of its 95% interval")]
    high: Annotated[float | None, says("upper end of its 95% interval")]
    bound: Annotated[float | None, says("what it is held against; null for another kind than metric")]
    verdict: Annotated[Literal["pass", "fail", "undecided"], says("what became of it")]
    reason: Annotated[str | None, says("why, where the figures alone do not say it")]
    n: Annotated[Count, says("queries with a value")]
    n_needed: Annotated[Count | None, says("queries that would decide, by estimate")]
    detectable: Annotated[float | None, says("the distance from the bound that as many queries mostly show")]
    p_fail: Annotated[Share | None, says("one-sided p-value of failing, not adjusted")]
    why: Annotated[str | None, says("the suite's own words on why it matters")]
    text: Annotated[str, says("all of it in one line, as the terminal shows it")]
    details: Annotated[dict[str, Any] | None, says("more of what was found, as the kind has it")]


class ChangeModel(Model):
    """A comparison with a stored baseline."""

    id: Annotated[str, says("the item's id, by which it can be run alone")]
    suite: Annotated[str, says("the suite's name")]
    criterion: Annotated[str, says("the criterion's name")]
    metric: Annotated[str, says("the metric's name")]
    reranker: Annotated[str, says("the reranker with its options, secrets hidden")]
    dataset: Annotated[str, says("the data set's name")]
    k: Annotated[Length, says("candidates in each list")]
    margin: Annotated[Distance, says("how much worse is still no regression")]
    outcome: Annotated[
        Literal["improved", "same", "regressed", "undecided", "missing"],
        says("what became of the metric"),
    ]
    difference: Annotated[float | None, says("new less stored, over the queries with a value in both")]
    low: Annotated[float | None, says("lower end of its 95% interval")]
    high: Annotated[float | None, says("upper end of its 95% interval")]
    n: Annotated[Count, says("queries with a value in both")]
    undefined: Annotated[Count, says("queries without a value")]
    before: Annotated[float | None, says("the stored metric over these queries")]
    now: Annotated[float | None, says("the new one")]
    reason: Annotated[str, says("why, where the interval alone does not say it; else empty")]
    n_needed: Annotated[Count | None, says("queries that would decide, by estimate")]
    text: Annotated[str, says("all of it in one line, as the terminal shows it")]


class LeftOutModel(Model):
    """A criterion that the run does not judge."""

    suite: Annotated[str, says("the suite's name")]
    criterion: Annotated[str, says("the criterion's name")]
    subject: Annotated[str, says("the subject as ids name it")]
    reason: Annotated[str, says("why the run cannot judge it")]


class Unjudged(Struct, frozen=True, forbid_unknown_fields=True):
    """What should have been judged and was not.

    It is an item, all items of a subject (``suite::[subject]``) or all its comparisons
    (``suite::@baseline[subject]``).
    """

    id: Annotated[str, says("the item's id; of a whole subject one without a criterion")]
    suite: Annotated[str, says("the suite's name")]
    subject: Annotated[str, says("the subject as ids name it")]
    reason: Annotated[str, says("why there is no verdict")]


class Rerun(Struct, frozen=True, forbid_unknown_fields=True):
    """An attempt at an item that another plugin has not let stand."""

    id: Annotated[str, says("the item's id")]
    reason: Annotated[str, says("how the attempt ended")]


class VerdictsModel(Struct, forbid_unknown_fields=True, rename={"passed": "pass", "failed": "fail"}):
    """How many criteria have which verdict."""

    passed: Annotated[Count, says("criteria with the verdict pass")]
    failed: Annotated[Count, says("criteria with the verdict fail")]
    undecided: Annotated[Count, says("criteria with the verdict undecided")]


class ReportModel(Model):
    """What a run measured and judged; shares are from 0 to 1, undefined numbers are null."""

    format: Annotated[Literal["invari-report/1"], says("name and version of this form")]
    suite: Annotated[SuiteModel | None, says("the first of the suites; null where nothing was judged")]
    suites: Annotated[list[SuiteModel], says("the suites that have judged something")]
    environment: Annotated[EnvironmentModel, says("what the run was made with; a hook may add to it")]
    strict: Annotated[bool, says("whether undecided criteria fail")]
    subjects: Annotated[list[SubjectModel], says("what was measured, a subject after another")]
    criteria: Annotated[
        list[CriterionModel], says("the criteria that were judged, in the order of the suites")
    ]
    changes: Annotated[list[ChangeModel], says("comparisons with a stored baseline")]
    left_out: Annotated[list[LeftOutModel], says("criteria that the run does not judge")]
    unjudged: Annotated[list[Unjudged], says("what should have been judged and was not")]
    reruns: Annotated[list[Rerun], says("attempts that another plugin has not let stand")]
    verdicts: Annotated[VerdictsModel, says("how many criteria have which verdict")]


class RateModel(Model):
    """How many of the simulated data sets came out in one way."""

    count: Annotated[Count, says("simulated data sets that came out so")]
    total: Annotated[Count, says("of how many")]


class TrialModel(Model):
    """One criterion on one simulated reranker."""

    id: Annotated[str, says("the item's id")]
    suite: Annotated[str, says("the suite's name")]
    criterion: Annotated[str, says("the criterion's name")]
    metric: Annotated[str, says("the metric's name")]
    reranker: Annotated[str, says("the simulated reranker")]
    k: Annotated[Length, says("candidates in each list")]
    views: Annotated[Count, says("orders of each list")]
    queries: Annotated[Count, says("queries in each simulated data set")]
    truth: Annotated[float, says("the metric, or its difference, over the whole population")]
    bound: Annotated[float, says("what it is held against")]
    right: Annotated[Literal["pass", "fail"], says("the verdict that the truth deserves")]
    passed: Annotated[RateModel, says("passed")]
    failed: Annotated[RateModel, says("failed")]
    undecided: Annotated[RateModel, says("left undecided")]
    missed_below: Annotated[RateModel, says("had an interval wholly below the truth")]
    missed_above: Annotated[RateModel, says("had an interval wholly above the truth")]
    broken: Annotated[list[str], says("the promises that the simulation refutes, in words")]


class SelfcheckModel(Model):
    """How often the verdicts of suites are wrong on simulated rerankers whose truth is known."""

    format: Annotated[Literal["invari-selfcheck/1"], says("name and version of this form")]
    trials: Annotated[list[TrialModel], says("a trial for each criterion and simulated reranker")]
