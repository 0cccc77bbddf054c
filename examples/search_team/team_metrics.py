"""What the team measures besides the usual metrics."""

from __future__ import annotations

import numpy as np

from pytest_invari import RankedLists

__all__ = ["house_share", "page_changes"]


def page_changes(lists: RankedLists) -> np.ndarray:
    """In how many views the first k products are others than in the first view, whatever their order."""
    on_page = lists.ranks < lists.k  # (queries, views, products)
    changed = (on_page != on_page[:, :1]).any(axis=2)
    return changed[:, 1:].mean(axis=1)


def house_share(lists: RankedLists) -> np.ndarray:
    """The house brand's share of the first k places, over all views."""
    is_house = np.array([[group == "house" for group in groups] for groups in lists.groups])
    on_page = lists.ranks < lists.k
    return (on_page & is_house[:, np.newaxis]).sum(axis=2).mean(axis=1) / lists.k
