"""The findings of analyses of a bank of views; what they are made of is in the analyses."""

from __future__ import annotations

import math
from functools import partial

from pytest_invari.metrics.metric import INDEPENDENT_VIEWS, FindingMetric

_finding = partial(FindingMetric, low=-1.0, source=INDEPENDENT_VIEWS)
_of_views = partial(_finding, analysis="independent_views", direction="higher")
_of_routing = partial(_finding, analysis="routing", direction="higher")

METRICS = (
    _of_views(
        family="rho_0",
        place=250,
        description="does a probe foretell the instability of fresh views?",
        null=0.0,
    ),
    _of_views(
        family="rho_1",
        place=260,
        description="the same for targets with one view of the probe",
        null=0.0,
        is_reused=True,
    ),
    _of_views(
        family="rho_2",
        place=270,
        description="the same for targets with two views of the probe",
        is_reused=True,
    ),
    _of_views(
        family="rho_2_minus_0",
        place=280,
        description="how much reused views flatter a probe",
        direction="lower",
        low=-2.0,
        null=0.0,
    ),
    _of_views(
        family="ranking_rho_0",
        place=290,
        description="rho_0 of rankings alone, by Kendall's tau",
        null=0.0,
    ),
    _of_views(
        family="r2_gain",
        place=300,
        description="held-out R² that a probe of four adds to one of two",
        low=-math.inf,
        null=0.0,
    ),
    _of_routing(
        family="benefit",
        place=310,
        description="how much nearer to its target aggregation brings exposure",
        null=0.0,
    ),
    _of_routing(
        family="improved",
        place=320,
        description="the share of queries that aggregation brings nearer",
        low=0.0,
    ),
    _of_routing(
        family="rho_movement",
        place=330,
        description="does instability foretell how far exposure moves?",
        null=0.0,
    ),
    _of_routing(
        family="rho_benefit",
        place=340,
        description="does instability foretell whom aggregation helps?",
        null=0.0,
    ),
    _of_routing(
        family="v2_dominated",
        place=350,
        description=(
            "1 where another policy is as cheap and as good as routing @ % of the queries by V2, else 0"
        ),
        direction="lower",
        low=0.0,
        has_cutoff=True,
    ),
)
