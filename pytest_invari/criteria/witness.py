"""The kind ``witness``: every query is ranked alike in all its views, or two orders show that it is not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_invari.criteria.criterion import Criterion
from pytest_invari.criteria.judgement import Judgement, Verdict, too_few, too_many_gaps
from pytest_invari.criteria.witness_text import witness_lines
from pytest_invari.errors import counted
from pytest_invari.text import harmless

if TYPE_CHECKING:
    from pytest_invari.criteria.evidence import Evidence
    from pytest_invari.measure.flips import Answers
    from pytest_invari.observation.witness import Witness
    from pytest_invari.tasks.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessCriterion(Criterion):
    """No query's ranking may depend on the order.

    Where one does, at most ``max_calls`` further rankings of some of its candidates make the witness smaller.
    """

    max_calls: int = 50

    @property
    def kind(self) -> str:
        """See :class:`Criterion`."""
        return "witness"

    @property
    def may_rank_again(self) -> bool:
        """See :class:`Criterion`."""
        return self.max_calls > 0

    def demand(self, k: int, baseline: str) -> str:
        """See :class:`Criterion`."""
        return "no ranking may depend on the order"

    def judged(self, evidence: Evidence) -> Judgement:
        """Pass when all views of enough queries were ranked alike; without two views to compare, fail.

        A query with fewer than two views that count has nothing to compare, and is undefined.
        """
        from pytest_invari.measure.flips import answers

        compared = answers(evidence.measured)
        if not compared:
            why = f": {evidence.faults}" if evidence.faults else ""
            return Judgement("fail", math.nan, reason=f"nothing measured: no query has two views{why}")
        differ = [each for each in compared if each.differ]
        figure = (
            f"{len(differ):,} of {counted(len(compared), 'query')} {'is' if len(differ) == 1 else 'are'} "
            "ranked differently in another order"
        )
        found = self._witness(compared, evidence)
        n, total = len(compared), len(evidence.measured.query_ids)
        verdict: Verdict = "fail"
        needed = None
        if found is not None:
            reason = _remark(found[1])
        elif differ:
            reason = "they differ only where failed views count as random orders"
        elif reason := too_few(n, evidence.min_queries, "two views to compare"):
            verdict, needed = "undecided", evidence.min_queries
        elif reason := too_many_gaps(total - n, total, evidence.max_undefined, "two views to compare"):
            verdict = "undecided"
        else:
            verdict = "pass"
        return Judgement(
            verdict,
            math.nan,
            n=n,
            undefined=total - n,
            n_needed=needed,
            reason="; ".join(filter(None, [reason, evidence.faults])),
            figure=figure,
            lines=[harmless(line) for line in witness_lines(*found)] if found else (),
            details={"differ": len(differ), "witness": _details(*found) if found else None},
        )

    def _witness(self, compared: list[Answers], evidence: Evidence) -> tuple[Task, Witness] | None:
        """A witness, and its query; noise is told before any effect of order."""
        from pytest_invari.measure.flips import moved
        from pytest_invari.observation.witness import Witness, find_witness

        for each in compared:
            for order, again in each.again.items():
                return each.task, Witness.of((order, order), (each.rankings[order], again))
        pairs = [(each, each.nearest) for each in compared if each.differ]
        flips = [(each, pair) for each, pair in pairs if pair is not None]
        if not flips:
            return None
        answers, (first, second) = min(flips, key=lambda flip: moved(*flip[1]))
        if evidence.ranking_again is None or not self.max_calls:
            return answers.task, Witness.of(
                (first, second), (answers.rankings[first], answers.rankings[second])
            )
        with evidence.ranking_again(answers.task, self.max_calls) as rank:
            witness = find_witness(rank, first, second, self.max_calls, answers.rankings)
        assert witness is not None
        return answers.task, witness


def _remark(witness: Witness) -> str:
    """What the witness that follows is, and what it took."""
    calls = f"after {counted(witness.calls, 'further call')}" if witness.calls else "no calls were made"
    if witness.is_noise:
        return f"one order is ranked in two ways as well, so this is noise ({calls})"
    if not witness.calls:
        return f"the two most alike of the measured orders follow ({calls})"
    return f"the smallest witness found follows ({calls})"


def _details(task: Task, witness: Witness) -> dict[str, Any]:
    return {
        "query_id": task.query_id,
        "ids": sorted(witness.orders[0]),
        "orders": [list(order) for order in witness.orders],
        "rankings": [list(ranking) for ranking in witness.rankings],
        "preferred": witness.preferred,
        "other": witness.other,
        "is_noise": witness.is_noise,
        "is_smallest": witness.is_smallest,
        "calls": witness.calls,
    }
