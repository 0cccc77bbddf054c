"""The invalid view rate: how often no valid ranking comes back."""

from __future__ import annotations

from pytest_invari.metrics.metric import ViewMetric

METRICS = (
    ViewMetric(
        family="invalid_view_rate",
        place=240,
        description="the share of views without a valid ranking",
        direction="lower",
        source="counted",
        standing="always",
        is_hidden_at_zero=True,
        is_of_failures=True,
        function=lambda ranking: not ranking.is_valid,
    ),
)
