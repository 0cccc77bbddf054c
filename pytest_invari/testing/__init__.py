"""For ordinary tests: an assertion of permutation invariance, and what tasks are made of.

Strategies for Hypothesis are in ``testing.strategies``. The fixture ``invari`` builds studies, whose
assertions judge intervals: see ``testing.study``.
"""

from pytest_invari.criteria.outcomes import CriterionNotMetError, InvariUndecidedWarning
from pytest_invari.errors import InvariError
from pytest_invari.protocol import Candidate, Context, HistoryEntry, Ranking, Request
from pytest_invari.tasks.task import Task, TaskSet
from pytest_invari.testing.invariance import OrderDependentError, assert_permutation_invariant

__all__ = [
    "Candidate",
    "Context",
    "CriterionNotMetError",
    "HistoryEntry",
    "InvariError",
    "InvariUndecidedWarning",
    "OrderDependentError",
    "Ranking",
    "Request",
    "Task",
    "TaskSet",
    "assert_permutation_invariant",
]
