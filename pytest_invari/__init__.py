"""Does a reranker change its mind when the same candidates arrive in another order?

The names in ``__all__`` are the public ones; each is imported when it is first asked for, so that importing
this package costs nothing.

PYTEST_DONT_REWRITE: where the checkout is on sys.path, pytest would mark this package for the rewriting of
assertions and warn that it is imported already; no module here relies on rewritten assertions.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_invari.criteria.outcomes import CriterionNotMetError, InvariUndecidedWarning
    from pytest_invari.criteria.study import Study
    from pytest_invari.errors import InvariError
    from pytest_invari.metrics.custom import CustomMetric, RankedLists
    from pytest_invari.protocol import (
        Candidate,
        Context,
        Cost,
        HistoryEntry,
        Ranking,
        RankingError,
        Request,
        Reranker,
    )
    from pytest_invari.session.fixture import Studies
    from pytest_invari.tasks.task import Task, TaskSet
    from pytest_invari.testing.invariance import OrderDependentError, assert_permutation_invariant

    __version__: str

__all__ = [
    "Candidate",
    "Context",
    "Cost",
    "CriterionNotMetError",
    "CustomMetric",
    "HistoryEntry",
    "InvariError",
    "InvariUndecidedWarning",
    "OrderDependentError",
    "RankedLists",
    "Ranking",
    "RankingError",
    "Request",
    "Reranker",
    "Studies",
    "Study",
    "Task",
    "TaskSet",
    "__version__",
    "assert_permutation_invariant",
]

_MODULE_OF = {
    "Candidate": "pytest_invari.protocol",
    "Context": "pytest_invari.protocol",
    "Cost": "pytest_invari.protocol",
    "CriterionNotMetError": "pytest_invari.criteria.outcomes",
    "CustomMetric": "pytest_invari.metrics.custom",
    "HistoryEntry": "pytest_invari.protocol",
    "InvariError": "pytest_invari.errors",
    "InvariUndecidedWarning": "pytest_invari.criteria.outcomes",
    "OrderDependentError": "pytest_invari.testing.invariance",
    "RankedLists": "pytest_invari.metrics.custom",
    "Ranking": "pytest_invari.protocol",
    "RankingError": "pytest_invari.protocol",
    "Request": "pytest_invari.protocol",
    "Reranker": "pytest_invari.protocol",
    "Studies": "pytest_invari.session.fixture",
    "Study": "pytest_invari.criteria.study",
    "Task": "pytest_invari.tasks.task",
    "TaskSet": "pytest_invari.tasks.task",
    "assert_permutation_invariant": "pytest_invari.testing.invariance",
}

# A type checker that saw it would take any misspelt name for one of ours.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name when it is first asked for (PEP 562)."""
        if name == "__version__":
            from importlib.metadata import version

            value = version("pytest-invari")
        elif name in _MODULE_OF:
            from importlib import import_module

            value = getattr(import_module(_MODULE_OF[name]), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """The public names too, imported or not."""
        return sorted({*globals(), *__all__})
