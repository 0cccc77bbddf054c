"""An audit of a reranker before it is measured: a few questions that tell what it is.

Does a candidate's score depend on the others? Does the same list, asked again, come back the same, alone and
among others? Does an answer hang on what was asked before? Are there ties, and is a long text read to its
end? The answers decide nothing; they say how the figures are to be read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

from pytest_invari.errors import counted
from pytest_invari.observation.observe import request_for
from pytest_invari.observation.views import View
from pytest_invari.protocol import Ranking, Request, Reranker, rank_all
from pytest_invari.protocol.seeding import shuffled
from pytest_invari.text import without_secrets

if TYPE_CHECKING:
    from pytest_invari.tasks.task import Task


QUERIES = 2
"""How many queries are asked about."""

ScoringKind = Literal["pointwise", "listwise", "unknown"]
End = Literal["counts", "ignored", "unknown"]

# Scores that differ by no more than this, of the largest score, are the same score.
_ROUNDING = 1e-6
# What is cut from the end of the longest text, to see whether it was read.
_CUT = 0.2
_SHORTEST_TO_CUT = 10
# Where the same question gets other scores, a difference this many times as large is more than noise.
_CLEAR = 4.0


@dataclass(frozen=True, slots=True)
class Audit:
    """What a few questions told of a reranker.

    ``kind``: *pointwise* where candidates alone get the scores that they get in the list, *listwise* where
    they do not. ``again_alone`` and ``again_among_others`` are the shares of item pairs in another order when
    the same list is asked again, by itself or in a batch of others; ``tie_rate`` is the share of pairs with
    equal scores; all are NaN where no answer told. ``remembers``: a list was answered as its reverse, which
    had been asked before, and not as it is when it comes first. ``end_of_text``: whether leaving out the last
    fifth of the longest text, of ``longest_text`` characters, changed its score. ``labels`` says how shown
    labels are bound, ``served_model`` what a service says it is, ``fault`` the first question's that failed.
    """

    kind: ScoringKind = "unknown"
    again_alone: float = math.nan
    again_among_others: float = math.nan
    remembers: bool = False
    tie_rate: float = math.nan
    end_of_text: End = "unknown"
    longest_text: int = 0
    labels: str = ""
    served_model: str = ""
    fault: str = ""
    calls: int = 0
    was_away: bool = field(default=False, compare=False)
    """Whether a question failed since a service was away: nothing to keep, and no part of :meth:`plain`."""

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> Audit:
        """From what :meth:`plain` made."""
        known = {each.name for each in fields(cls)}
        values = {name: math.nan if value is None else value for name, value in values.items()}
        return cls(**{name: value for name, value in values.items() if name in known})

    def plain(self) -> dict[str, Any]:
        """Values that JSON can hold; None is undefined."""
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in asdict(self).items()
            if name != "was_away"
        }

    @property
    def lines(self) -> tuple[str, str]:
        """The audit in two lines for people."""
        kinds = {
            "pointwise": "pointwise (alone, a candidate gets the score that it gets in the list)",
            "listwise": "listwise (a candidate's score depends on the others)",
            "unknown": "pointwise or listwise: not known",
        }
        again = [
            f"{share:.1%} {how}"
            for share, how in ((self.again_alone, "alone"), (self.again_among_others, "among others"))
            if not math.isnan(share)
        ]
        noise = f"; asked again, of pairs differ {', '.join(again)}" if again else ""
        memory = "; it remembers: what was asked before changes an answer" if self.remembers else ""
        length = counted(self.longest_text, "character")
        ends = {
            "counts": f"the longest text ({length}) is read to its end",
            "ignored": f"the end of the longest text ({length}) changes nothing",
            "unknown": "whether long texts are cut: not known",
        }
        ties = "" if math.isnan(self.tie_rate) else f"{self.tie_rate:.1%} ties; "
        labels = f"; labels by {self.labels}" if self.labels else ""
        model = f"; served by {self.served_model}" if self.served_model else ""
        fault = f"; a question failed: {self.fault}" if self.fault else ""
        return (
            f"{kinds[self.kind]}{noise}{memory}",
            f"{ties}{ends[self.end_of_text]}{labels}{model}{fault}; {counted(self.calls, 'call')}",
        )


def audit_reranker(build: Callable[[], Reranker], tasks: Sequence[Task]) -> Audit:
    """Ask about the first queries; a question that fails leaves what it would have told unknown.

    *build* makes the reranker, and makes it anew for what is asked again: nothing is answered from memory.
    """
    requests = [_request(task) for task in tasks[:QUERIES] if len(task.candidates) > 1]
    if not requests:
        return Audit()
    asker, again, batch = (_Asker(build()) for _ in range(3))
    first = [asker.ask([request])[0] for request in requests]
    # Noise may come of a state that each reranker begins anew with.
    repeated = asker.ask(requests[:1])
    alone = [again.ask([request])[0] for request in requests]
    batched = batch.ask([*requests, *map(_reversed, requests)])
    others, turned = batched[: len(requests)], batched[len(requests) :]
    asked_again = [*zip(first, alone, strict=True), (first[0], repeated[0])]
    changes = [_changed_pairs(*pair) for pair in (*asked_again, *zip(first, others, strict=True))]
    noise = max(_score_difference(*pair) for pair in (*asked_again, *zip(first, others, strict=True)))
    longest, end = _end_of_text(asker, tasks, requests[0], first[0], noise)
    diagnostics = first[0].diagnostics
    kind = _kind(asker, requests[0], first[0], noise, is_steady=not any(changes))
    askers = [asker, again, batch]
    remembers = False
    alike = {ranking.order for ranking in (first[0], alone[0], others[0], turned[0])}
    if first[0].status != "failed" and len(alike) == 1:
        # Either the order does not matter to it, or it remembers.
        askers.append(_Asker(build()))
        remembers = _remembers(askers[-1], requests[0], first[0])
    return Audit(
        kind=kind,
        again_alone=_mean(changes[: len(asked_again)]),
        again_among_others=_mean(changes[len(asked_again) :]),
        remembers=remembers,
        tie_rate=_mean(map(_ties, first)),
        end_of_text=end,
        longest_text=longest,
        labels=str(diagnostics.get("labels", "")),
        served_model=without_secrets(str(diagnostics.get("served_model", ""))),
        fault=without_secrets(next((each.fault for each in askers if each.fault), "")),
        calls=sum(each.calls for each in askers),
        was_away=any(each.was_away for each in askers),
    )


class _Asker:
    """Asks, counts calls, and keeps the first fault."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker
        self.calls = 0
        self.fault = ""
        self.was_away = False

    def ask(self, requests: Sequence[Request]) -> list[Ranking]:
        rankings = rank_all(self._reranker, requests)
        for ranking in rankings:
            # A count may be a number of NumPy, which no report holds.
            self.calls += int(ranking.cost.calls)
            self.fault = self.fault or ranking.fault
            self.was_away = self.was_away or ranking.is_transient
        return rankings


def _request(task: Task) -> Request:
    order = shuffled([each.id for each in task.candidates], "audit", task.query_id)
    return request_for(task, View("audit", order))


def _reversed(request: Request) -> Request:
    return request.select(reversed(request.ids))


def _kind(asker: _Asker, request: Request, in_list: Ranking, noise: float, *, is_steady: bool) -> ScoringKind:
    """The best and the worst candidate, alone and in the list; what is not steady turns round by chance."""
    if in_list.status == "failed":
        return "unknown"
    best, worst = in_list.order[0], in_list.order[-1]
    scores = _scores(in_list)
    if not scores:
        (pair,) = asker.ask([request.select((best, worst))])
        return "listwise" if is_steady and pair.order[:1] == (worst,) else "unknown"
    for item in (best, worst):
        (alone,) = asker.ask([request.select((item,))])
        score = _scores(alone).get(item)
        if score is None:
            return "unknown"
        if (differs := _differs(score, scores[item], noise, _tolerance(scores))) is not False:
            return "listwise" if differs else "unknown"
    return "pointwise"


def _remembers(asker: _Asker, request: Request, fresh: Ranking) -> bool:
    """Whether, asked for the reverse first, it answers the list alike, and not as a *fresh* one does."""
    (turned,) = asker.ask([_reversed(request)])
    if "failed" in (turned.status, fresh.status) or turned.order == fresh.order:
        return False
    (after,) = asker.ask([request])
    return after.order == turned.order and _scores(after) == _scores(turned)


def _end_of_text(
    asker: _Asker, tasks: Sequence[Task], request: Request, whole: Ranking, noise: float
) -> tuple[int, End]:
    """Whether the score of the longest text of all lists changes when its end is cut off.

    *request* and *whole* are a list that was asked about; it is asked about another where that has the text.
    """
    holder = max(tasks, key=lambda task: max((len(each.text) for each in task.candidates), default=0))
    longest = max(holder.candidates, key=lambda each: (len(each.text), each.id))
    length = len(longest.text)
    if length < _SHORTEST_TO_CUT or not _scores(whole):
        return length, "unknown"
    if holder.query_id != request.query_id:
        request = _request(holder)
        (whole,) = asker.ask([request])
    before = _scores(whole)
    if not before:
        return length, "unknown"
    text = longest.text[: length - max(1, int(_CUT * length))]
    shortened = tuple(
        replace(each, text=text) if each.id == longest.id else each for each in request.candidates
    )
    (cut,) = asker.ask([replace(request, candidates=shortened)])
    after = _scores(cut)
    if not after:
        return length, "unknown"
    differs = _differs(after[longest.id], before[longest.id], noise, _tolerance(before))
    return length, "unknown" if differs is None else "counts" if differs else "ignored"


def _scores(ranking: Ranking) -> dict[str, float]:
    """Scores by id; empty where the ranking failed or has none."""
    if ranking.status == "failed" or ranking.scores is None:
        return {}
    return dict(zip(ranking.order, ranking.scores, strict=True))


def _differs(one: float, other: float, noise: float, tolerance: float) -> bool | None:
    """Whether two scores differ by more than chance; None where noise hides it."""
    difference = abs(one - other)
    if noise <= tolerance:
        return difference > tolerance
    return True if difference > _CLEAR * noise else None


def _tolerance(scores: Mapping[str, float]) -> float:
    return _ROUNDING * max(map(abs, scores.values()))


def _score_difference(one: Ranking, other: Ranking) -> float:
    """The largest difference between two answers' scores; 0 where there is nothing to compare."""
    first, second = _scores(one), _scores(other)
    return max((abs(first[item] - second[item]) for item in first.keys() & second.keys()), default=0.0)


def _changed_pairs(one: Ranking, other: Ranking) -> float:
    """The share of item pairs that two answers order differently; NaN where one failed."""
    if "failed" in (one.status, other.status):
        return math.nan
    place = {item: rank for rank, item in enumerate(other.order)}
    pairs = list(combinations(one.order, 2))
    return sum(place[above] > place[below] for above, below in pairs) / len(pairs)


def _ties(ranking: Ranking) -> float:
    """The share of item pairs with equal scores; NaN where there are no scores."""
    scores = list(_scores(ranking).values())
    if not scores:
        return math.nan
    pairs = list(combinations(scores, 2))
    return sum(one == other for one, other in pairs) / len(pairs)


def _mean(values: Any) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan
