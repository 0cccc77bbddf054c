"""Reason codes of undefined values that many metrics share, with what they mean for people."""

from __future__ import annotations

from collections.abc import Mapping

FAILED_VIEWS = "failed_views"
FEWER_THAN_2_VIEWS = "fewer_than_2_views"
FEWER_THAN_2_ITEMS = "fewer_than_2_items"

FAILED: Mapping[str, str] = {FAILED_VIEWS: "too few views of a query came back"}
"""Of every metric that has a value for each query."""

PAIRWISE: Mapping[str, str] = {
    FEWER_THAN_2_VIEWS: "fewer than 2 views of a query came back",
    FEWER_THAN_2_ITEMS: "lists of 1 have no pairs",
}
"""Of metrics that compare views by the order of two items."""
