"""What the team demands besides bounds on means: one function, for a suite and for ordinary tests."""

from __future__ import annotations

from pytest_invari import Study

__all__ = ["every_query"]


def every_query(study: Study, metric: str = "loc", at_least: float = 0.9) -> None:
    """Fail when the metric of one query is below the bound, and name the worst; a mean may hide one."""
    values = study.frame(metric)[metric].dropna()
    assert len(values), f"{metric} of {study.name} is undefined for every query"
    low = values[values < at_least].sort_values()
    named = ", ".join(f"{query} {value:.2f}" for query, value in low.head(3).items())
    assert low.empty, f"{metric} is below {at_least} for {len(low)} of {len(values)} queries: {named}"
