"""What the reason codes of undefined values mean, for people."""

from __future__ import annotations

_MEANINGS = {
    "fewer_than_2_views": "fewer than 2 views of a query came back",
    "fewer_than_2_items": "lists of 1 have no pairs",
    "failed_views": "too few views of a query came back",
    "no_relevant_candidate": "no candidate is marked as relevant",
    "no_views_in_one_cell": (
        "no two views show two items in the same two buckets, as in lists of 2 or 3: use longer lists, or "
        "more views"
    ),
    "no_views_in_different_cells": "all views show the items in the same pairs of buckets",
    "best_ranking_unproven": "no best ranking could be proven",
    "labels_never_differ": "all views give the items the same labels",
    "labels_always_differ": "no two views give two items the same labels",
    "undefined_by_metric": "the metric itself gives none",
}


def meaning(code: str) -> str:
    """The code, and behind it what it means, where that is not said by the code alone."""
    return f"{code} ({_MEANINGS[code]})" if code in _MEANINGS else code
