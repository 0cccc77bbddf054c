"""The rules by which a criterion is decided, declared as the settings of views are."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_invari.observation.view_settings import setting


@dataclass(frozen=True)
class DecisionRules:
    """What a figure must rest on to decide a criterion."""

    min_queries: int = setting(
        30, "verdicts", "the least number of queries that decides a criterion", least=1
    )
    max_undefined: float = setting(
        0.05, "verdicts", "the largest share of queries without a value, from 0 to below 1", below=1
    )
