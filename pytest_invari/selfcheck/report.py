"""The section of a self-check: for each criterion a row a simulated reranker."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_invari.selfcheck.simulation import Rate, Trial

if TYPE_CHECKING:
    from pytest_invari.selfcheck.items import Promise


_HEAD = ["reranker", "truth", "wrong verdict", "right verdict", "misses, %"]
_LEGEND = (
    "wrong, right: share of simulated data sets with that verdict [95% interval]; the rest are undecided",
    "misses: intervals wholly below / above the truth; wrong verdicts, if the bound were the truth",
)


@dataclass(frozen=True)
class PromiseOutcome:
    """A promise and its trial."""

    promise: Promise
    trial: Trial

    @classmethod
    def of(cls, promise: Promise, parts: Mapping[str, Any]) -> PromiseOutcome:
        """Put together what :meth:`PromiseItem.report_parts` took apart."""
        values: dict[str, Any] = {
            key: Rate(**value) if isinstance(value, Mapping) else value for key, value in parts.items()
        }
        return cls(promise, Trial(**values))


def write_section(reporter: Any, outcomes: Sequence[PromiseOutcome]) -> None:
    """Write a table for each criterion at each list length, then what the columns mean."""
    from tabulate import tabulate

    width = reporter._tw.fullwidth
    reporter.section("invari self-check")
    groups: dict[str, list[PromiseOutcome]] = {}
    for outcome in outcomes:
        groups.setdefault(_title(outcome.promise), []).append(outcome)
    for title, group in groups.items():
        rows = [_row(outcome) for outcome in group]
        for line in textwrap.wrap(title, width):
            reporter.write_line(line)
        for line in tabulate(rows, headers=_HEAD, tablefmt="simple", disable_numparse=True).splitlines():
            reporter.write_line(line.rstrip())
        reporter.write_line("")
    for sentence in _LEGEND:
        for line in textwrap.wrap(sentence, width, subsequent_indent="  "):
            reporter.write_line(line)


def _title(promise: Promise) -> str:
    criterion, plan = promise.criterion, promise.plan
    value = "k" if criterion.value == "k" else f"{criterion.value:g}"
    wanted = f"{criterion.comparison} baseline, distance" if criterion.is_relative else criterion.comparison
    return (
        f"{promise.suite.name}: {criterion.metric.name} {wanted.replace('_', ' ')} {value}; lists of "
        f"{plan.k}, {plan.views} views of {plan.queries} queries"
    )


def _row(outcome: PromiseOutcome) -> list[str]:
    trial = outcome.trial
    right = trial.passed if trial.right == "pass" else trial.failed
    return [
        outcome.promise.reranker,
        f"{trial.truth:.3f}",
        f"{_share(trial.wrong)}",
        f"{trial.right} {_share(right)}",
        f"{100 * trial.missed_below.share:.1f} / {100 * trial.missed_above.share:.1f}",
    ]


def _share(rate: Rate) -> str:
    low, high = rate.interval
    return f"{rate.share:.1%} [{100 * low:.1f}, {100 * high:.1f}]"
