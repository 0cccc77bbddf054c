"""The self-check's pytest nodes: a criterion on a simulated reranker passes while its promise is not refuted.

PYTEST_DONT_REWRITE: verdicts are composed messages, not asserts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.session.items import CheckFailed, showing_progress
from pytest_invari.text import harmless

if TYPE_CHECKING:
    from pytest_invari.criteria.metric import MetricCriterion
    from pytest_invari.observation.plan import Plan
    from pytest_invari.selfcheck.simulation import Trial, World
    from pytest_invari.suitefile.suite import Suite


@dataclass(frozen=True)
class Promise:
    """One criterion of a suite on one simulated reranker, at a plan's size."""

    suite: Suite
    criterion: MetricCriterion
    reranker: str
    plan: Plan

    @property
    def name(self) -> str:
        """The item's name: ``recsys26.loc[noise-K10]``."""
        return f"{self.suite.name}.{self.criterion.name}[{self.reranker}-K{self.plan.k}]"

    @property
    def id(self) -> str:
        """The whole id, the same from every folder."""
        return f"selfcheck::{self.name}"


class SelfcheckNode(pytest.Directory):
    """All promises of the run; one population is simulated for each size that suites ask for."""

    def __init__(self, *, promises: list[Promise], datasets: int, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._promises, self._datasets = promises, datasets
        self._worlds: dict[Plan, World] = {}

    def collect(self) -> Iterator[PromiseItem]:
        """The promises, those on one reranker together."""
        for promise in self._promises:
            yield PromiseItem.from_parent(self, name=promise.name, nodeid=promise.id, promise=promise)

    def world(self, plan: Plan) -> World:
        """The simulated population of a plan, made at its first use."""
        from pytest_invari.selfcheck.simulation import World

        if plan not in self._worlds:
            self._worlds[plan] = World(plan, self._datasets)
        return self._worlds[plan]


class PromiseItem(pytest.Item):
    """One promise, put to the test."""

    def __init__(self, *, promise: Promise, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.promise = promise
        self.trial: Trial | None = None
        self.add_marker("invari")

    def runtest(self) -> None:
        """Simulate, and judge every simulated data set.

        Raises:
            CheckFailed: the verdicts err more often than is promised, or a user's metric is broken.
        """
        promise = self.promise
        assert isinstance(self.parent, SelfcheckNode)
        world = self.parent.world(promise.plan)
        with showing_progress(self, shown=not world.has(promise.reranker)):
            try:
                self.trial = world.trial(promise.criterion, promise.reranker, promise.suite)
            except InvariError as error:
                raise CheckFailed(harmless(f"nothing simulated: {error}")) from None
        broken = self.trial.broken
        if broken:
            raise CheckFailed(f"{'; '.join(broken)} data sets; about 2.5% is promised")

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """The criterion's place in its suite's file, and the item's name."""
        place = self.promise.criterion.place
        return place.path, place.line - 1, self.name

    def report_parts(self) -> dict[str, Any] | None:
        """The trial in plain values, to ride on the report; None when there was none."""
        return asdict(self.trial) if self.trial is not None else None
