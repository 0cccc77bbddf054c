"""What the team measures besides the usual metrics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pytest_invari import RankedLists

__all__ = ["house_share", "page_changes"]


def page_changes(lists: RankedLists) -> NDArray[np.float64]:
    """In how many views the first k products are others than in the first view, whatever their order."""
    on_page = _on_page(lists)
    changed = (on_page != on_page[:, :1]).any(axis=2)
    share: NDArray[np.float64] = changed[:, 1:].mean(axis=1)
    return share


def house_share(lists: RankedLists) -> NDArray[np.float64]:
    """The house brand's share of the first k places, over all views."""
    is_house = np.array([[group == "house" for group in groups] for groups in lists.groups])
    shown = _on_page(lists)
    share: NDArray[np.float64] = (shown & is_house[:, np.newaxis]).sum(axis=(1, 2)) / shown.sum(axis=(1, 2))
    return share


def _on_page(lists: RankedLists) -> NDArray[np.bool_]:
    """Which products are among the first k, as (queries, views, products)."""
    assert lists.k is not None, "both metrics are declared with a cutoff"
    return lists.ranks < lists.k
