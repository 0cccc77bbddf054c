"""MovieLens as controlled and as untouched lists, data sets of their own, because the two are never pooled.

How the lists are made is told in ``candidates``; contexts, splits and grades are those of ``movielens``.
"""

from __future__ import annotations

from pytest_invari.datasets import movielens
from pytest_invari.tasks.task import TaskSet


def small_controlled(
    k: int, queries: int | None = None, *, history: int = 10, liked_only: bool = True
) -> TaskSet:
    """MovieLens latest-small, controlled lists: relevant head and tail films put in by hand.

    Raises:
        InvariError: as ``movielens.small``; or *k* is less than 4.
    """
    return movielens.small(k, queries, history=history, liked_only=liked_only, stratum="controlled")


def small_untouched(
    k: int, queries: int | None = None, *, history: int = 10, liked_only: bool = True
) -> TaskSet:
    """MovieLens latest-small, untouched lists: the first stage's own, of at most 300 users drawn by a hash.

    Raises:
        InvariError: as ``movielens.small``.
    """
    return movielens.small(k, queries, history=history, liked_only=liked_only, stratum="untouched")


def folder_controlled(
    k: int, queries: int | None = None, *, history: int = 20, liked_only: bool = False
) -> TaskSet:
    """Controlled lists of the MovieLens folder or zip that INVARI_DATA names.

    Raises:
        InvariError: as ``movielens.folder``; or *k* is less than 4.
    """
    return movielens.folder(k, queries, history=history, liked_only=liked_only, stratum="controlled")


def folder_untouched(
    k: int, queries: int | None = None, *, history: int = 20, liked_only: bool = False
) -> TaskSet:
    """Untouched lists of the MovieLens folder or zip that INVARI_DATA names.

    Raises:
        InvariError: as ``movielens.folder``.
    """
    return movielens.folder(k, queries, history=history, liked_only=liked_only, stratum="untouched")
