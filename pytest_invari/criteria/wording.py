"""What is said of a judgement: its figure, what was demanded, and what else must be known."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_invari.criteria.judgement import Judgement
from pytest_invari.text import harmless

MOST_QUERIES = 100_000
"""The most queries that a report says would decide; estimates beyond are in the JSON report alone."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What is said of a judgement: its figure, what was demanded, and what else must be known."""

    figure: str
    demand: str
    remarks: tuple[str, ...]

    @property
    def line(self) -> str:
        """All of it in one line."""
        said = ": ".join(filter(None, [self.figure, self.demand]))
        return harmless("; ".join(filter(None, [said, *self.remarks])))


def remarks_of(judgement: Judgement, min_queries: int) -> list[str]:
    """The reason, and how many queries would decide what is undecided."""
    remarks = [judgement.reason] if judgement.reason else []
    if judgement.verdict == "undecided" and judgement.is_measured:
        has_undefined = bool(judgement.undefined)
        remarks += what_would_decide(judgement.n_needed, judgement.reason, has_undefined, min_queries)
    return remarks


def what_would_decide(needed: int | None, reason: str, has_undefined: bool, min_queries: int) -> list[str]:
    """How many queries would decide what is undecided; nothing where the *reason* leaves nothing to say.

    Of a number that no data set has, only the size is told.
    """
    if needed is None:
        on_bound = "the figure, or nearly every query, lies on the bound, so more queries may not decide"
        return [] if reason else [on_bound]
    # That the least number of queries is wanted has been said by the reason.
    if needed == min_queries:
        return []
    queries = "queries with a value" if has_undefined else "queries"
    if needed > MOST_QUERIES:
        return [f"more than {MOST_QUERIES:,} {queries} would be needed to decide"]
    return [f"about {needed:,} {queries} would decide"]
