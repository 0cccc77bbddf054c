"""Distribution over pytest-xdist's workers: the checks of one subject stay together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

__all__ = ["SubjectScheduling"]


class SubjectScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist is untyped here
    """Send all checks of a subject to one worker, so that it is loaded and measured once.

    Ordinary tests of the same run are dealt out one by one.
    """

    def __init__(self, config: pytest.Config, log: Any, scopes: Mapping[str, str]) -> None:
        super().__init__(config, log)
        self._scopes = scopes

    def _split_scope(self, nodeid: str) -> str:
        return self._scopes.get(nodeid, nodeid)
