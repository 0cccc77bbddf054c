"""The assertion that a reranker does not depend on the order; it shows the smallest witness when it does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, permutations

from pytest_invari.criteria.outcomes import WithoutInternals
from pytest_invari.criteria.witness_text import witness_lines
from pytest_invari.errors import InvariError, counted
from pytest_invari.observation.observe import request_for
from pytest_invari.observation.views import View
from pytest_invari.observation.witness import LEAST_CALLS, Order, Witness, find_witness
from pytest_invari.protocol import Candidate, Ranking, rank_all
from pytest_invari.protocol.capabilities import check_reranker, prepare_reranker
from pytest_invari.protocol.seeding import shuffled
from pytest_invari.registry.adapt import make_reranker
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import Task, TaskSet
from pytest_invari.testing.inputs import Tasks, find_tasks
from pytest_invari.text import printable

VIEWS = 8
"""Orders of each list, where nothing else is asked for."""

assertions_made = 0
"""How many this process has made, by which a gate knows that something was measured."""


class OrderDependentError(AssertionError):
    """A reranker that ranks two orders of the same candidates differently, as its ``witness`` shows."""

    __module__ = "builtins"

    def __init__(self, message: str, witness: Witness) -> None:
        super().__init__(message)
        self.witness = witness


def assert_permutation_invariant(
    reranker: object,
    tasks: Tasks,
    *,
    k: int | None = None,
    queries: int | None = None,
    views: int = VIEWS,
    orders: Iterable[Sequence[str]] = (),
    max_calls: int = 1000,
) -> None:
    """Fail when two orders of one list are ranked differently, and show the smallest witness of it.

    Args:
        reranker: a function ``(context, texts)``, an object with ``rank(request)``, a class or factory that
            makes one, or a name as on the command line, but for those that conftests give (the fixture's
            method of this name, ``invari.assert_permutation_invariant``, knows them too).
        tasks: the lists: a task file's path, a data set's name, a :class:`TaskSet`, or :class:`Task` objects.
            Equal scores count as ranked, in the order that the ranking gave them.
        k: the first this many candidates of each list; all of them without it. A data set's name needs it.
        queries: the first this many lists; all of them without it.
        views: orders of each list: its own, the reverse, and drawn ones; all there are when they are fewer.
        orders: ids in further orders, each for the lists that have exactly these candidates.
        max_calls: the most lists that are ranked, the search for the witness included. What the orders leave
            of them makes the witness smaller.

    Raises:
        OrderDependentError: the reranker is order-dependent; an AssertionError.
        AssertionError: a ranking failed, or no list has two candidates, so that nothing is known.
        InvariError: the reranker cannot be made, the tasks cannot be read, or *max_calls* does not even allow
            for the orders.
    """
    __tracebackhide__ = True
    surroundings = Surroundings()
    with WithoutInternals():
        lists = find_tasks(surroundings.registry, tasks, k, queries)
    assert_invariant(reranker, lists, views, orders, max_calls, surroundings)


@dataclass(frozen=True)
class Surroundings:
    """Where a reranker is looked up and its model kept; ``assertion`` is how a test calls it."""

    registry: Registry = field(default_factory=Registry)
    settings: ModelSettings = field(default_factory=ModelSettings)
    shared: dict[object, object] = field(default_factory=dict)
    assertion: str = "assert_permutation_invariant"


def assert_invariant(
    reranker: object,
    tasks: TaskSet,
    views: int,
    orders: Iterable[Sequence[str]],
    max_calls: int,
    surroundings: Surroundings,
) -> None:
    """As :func:`assert_permutation_invariant`, in the given surroundings."""
    global assertions_made
    __tracebackhide__ = True
    assertions_made += 1
    with WithoutInternals():
        taken = [task for task in tasks.tasks if len(task.candidates) > 1]
        if not taken:
            raise AssertionError("nothing measured: no list has two candidates")
        wanted = _wanted(taken, views, [tuple(order) for order in orders])
        needed = sum(map(len, wanted)) + LEAST_CALLS
        if max_calls < needed:
            raise InvariError(
                f"max_calls = {max_calls}: the orders of {counted(len(taken), 'list')} and the search for a "
                f"witness take at least {needed}; give fewer tasks, fewer views or more calls"
            )
        shower = _Shower(reranker, taken, surroundings)
        for task, some in zip(taken, wanted, strict=True):
            known = shower.certainly_rank(task, some)
            other = next((order for order in some if known[order] != known[some[0]]), None)
            if other is not None:
                left = max_calls - shower.calls
                witness = find_witness(partial(shower.rank, task), some[0], other, left, known)
                assert witness is not None
                raise OrderDependentError(_message(shower.call, task, witness), witness)


class _Shower:
    """Shows lists to a reranker and counts."""

    def __init__(self, reranker: object, tasks: Sequence[Task], surroundings: Surroundings) -> None:
        registry = surroundings.registry
        longest = max(len(task.candidates) for task in tasks)
        build = Build(
            surroundings.settings, TaskSet.of("tasks", tasks), longest, registry, surroundings.shared
        )
        expression = _expression(reranker)
        self.call = f"{surroundings.assertion}({expression}, "
        who = f"reranker {expression}"
        # Without a look at the names that there are, which takes longer than Hypothesis has for an example.
        self._reranker = (
            registry.build(reranker, build)
            if isinstance(reranker, str)
            else make_reranker(reranker, build, {}, who)
        )
        check_reranker(self._reranker, who)
        prepare_reranker(self._reranker, who)
        self.calls = 0

    def rank(self, task: Task, shown: Order) -> Order | None:
        """The ids best first; None where the ranking failed."""
        [ranking] = self._rankings(task, [shown])
        return None if ranking.status == "failed" else tuple(ranking.order)

    def certainly_rank(self, task: Task, orders: Sequence[Order]) -> dict[Order, Order]:
        """The same of several orders, in one batch where the reranker can; a failure fails the assertion."""
        __tracebackhide__ = True
        rankings = dict(zip(orders, self._rankings(task, orders), strict=True))
        for shown, ranking in rankings.items():
            if ranking.status == "failed":
                where = f"query {task.query_id!r} in order {list(shown)}"
                raise AssertionError(printable(f"no ranking of {where}: {ranking.fault}"))
        return {shown: tuple(ranking.order) for shown, ranking in rankings.items()}

    def _rankings(self, task: Task, orders: Sequence[Order]) -> list[Ranking]:
        self.calls += len(orders)
        return rank_all(self._reranker, [request_for(task, View("", shown)) for shown in orders])


def _wanted(tasks: Sequence[Task], views: int, further: Sequence[Order]) -> list[list[Order]]:
    """The orders in which each list is shown, its own first."""
    for task in tasks:
        if len(set(task.ids)) < len(task.ids):
            raise InvariError(
                f"query {task.query_id!r} has a candidate twice; every candidate of a list needs its own id"
            )
    known = {frozenset(task.ids) for task in tasks}
    for order in further:
        if frozenset(order) not in known or len(set(order)) < len(order):
            raise InvariError(f"orders: {list(order)} is no order of any of the lists")
    if views < 2:
        raise InvariError(f"{counted(views, 'view')} asked for; a comparison needs at least 2")
    return [
        _orders(task, views, [order for order in further if set(order) == set(task.ids)]) for task in tasks
    ]


def _orders(task: Task, views: int, further: Iterable[Order]) -> list[Order]:
    found = dict.fromkeys([task.ids, *further])
    if math.factorial(len(task.ids)) <= views:
        return list(dict.fromkeys([*found, *permutations(task.ids)]))
    drawn = dict.fromkeys([task.ids, task.ids[::-1]])
    draws = count()
    while len(drawn) < views:
        drawn[shuffled(task.ids, "order", task.query_id, next(draws))] = None
    return list(dict.fromkeys([*found, *drawn]))


def _message(call: str, task: Task, witness: Witness) -> str:
    """The two orders, the two rankings, and a line of Python that shows them again."""
    one, other = witness.orders
    lines = witness_lines(task, witness)
    if not witness.is_noise:
        lines.append(f"  to see it again: {_line(call, _part(task, one), other)}")
    return "\n".join(map(printable, lines))


def _part(task: Task, ids: Order) -> Task:
    """The same query with these candidates alone, in this order."""
    by_id = {candidate.id: candidate for candidate in task.candidates}
    return Task(task.query_id, task.context, tuple(by_id[item] for item in ids))


def _line(call: str, task: Task, order: Order) -> str:
    """Python that asserts on one list, with an order that would not be among the drawn ones for certain."""
    names = ["Candidate", "Context", *(["HistoryEntry"] if task.context.history else []), "Task"]
    if call.startswith("assert_"):
        names.append("assert_permutation_invariant")
    candidates = ", ".join(_candidate(each) for each in task.candidates)
    history = ", ".join(f"HistoryEntry({each.text!r}, {each.rating!r})" for each in task.context.history)
    context = f"Context({task.context.text!r}{f', ({history},)' if history else ''})"
    further = "" if math.factorial(len(order)) <= VIEWS else f", orders=[{order!r}]"
    return (
        f"from pytest_invari import {', '.join(names)}; {call}"
        f"[Task({task.query_id!r}, {context}, ({candidates}))]{further})"
    )


def _candidate(candidate: Candidate) -> str:
    meta = f", {dict(candidate.meta)!r}" if candidate.meta else ""
    return f"Candidate({candidate.id!r}, {candidate.text!r}{meta})"


def _expression(reranker: object) -> str:
    """What stands for the reranker in a line of Python: its name where it has one."""
    if isinstance(reranker, str):
        return repr(reranker)
    name = getattr(reranker, "__name__", "")
    return name if name.isidentifier() else "reranker"
