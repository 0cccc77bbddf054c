"""Distribution over pytest-xdist's workers: the checks of one subject stay together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling, LoadGroupScheduling, LoadScopeScheduling

OF_OTHERS: Mapping[str, type[LoadScopeScheduling] | None] = {
    "load": None,
    "loadfile": LoadFileScheduling,
    "loadscope": LoadScopeScheduling,
    "loadgroup": LoadGroupScheduling,
}
"""By ``--dist``, whose scopes ordinary tests keep to; None where each is dealt out by itself."""


class SubjectScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist is untyped here
    """Send all checks of a subject to one worker, so that it is loaded and measured once.

    Ordinary tests of the run are dealt out as ``--dist`` says. A subject whose worker crashed is not given
    to another one, which would crash as well.
    """

    def __init__(self, config: pytest.Config, log: Any, scopes: Mapping[str, str]) -> None:
        super().__init__(config, log)
        self._scopes = scopes
        others = OF_OTHERS[config.getoption("dist")]
        self._others = None if others is None else others(config, log)
        self._abandoned: dict[str, list[str]] = {}

    def remove_node(self, node: Any) -> str | None:
        """Give up the subject that a crashed worker was at; the rest of its work goes to others."""
        pending = [unit for unit in self.assigned_work[node].values() if not all(unit.values())]
        left: list[str] = [name for name, done in pending[0].items() if not done] if pending else []
        if not left or left[0] not in self._scopes:
            crashed: str | None = super().remove_node(node)
            return crashed
        pending[0].update(dict.fromkeys(left, True))
        super().remove_node(node)
        self._abandoned[left[0]] = left[1:]
        return left[0]

    def abandoned_with(self, crashed: str) -> list[str]:
        """The other checks of the subject that were left when a worker crashed at this one; told once."""
        return self._abandoned.pop(crashed, [])

    def _split_scope(self, nodeid: str) -> str:
        if nodeid in self._scopes or self._others is None:
            return self._scopes.get(nodeid, nodeid)
        scope: str = self._others._split_scope(nodeid)
        return scope
