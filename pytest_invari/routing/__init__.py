"""What routing unstable queries to more views is worth and what it costs (P2: signed value and cost)."""

from pytest_invari.metrics.costs import COSTS
from pytest_invari.routing.benefit import BENEFIT_FIGURES, summarise_benefit
from pytest_invari.routing.evaluation import Routing, evaluate_routing
from pytest_invari.routing.fairness import (
    JudgedLists,
    Outcomes,
    borda_ranks,
    fairness_loss,
    movement,
    outcomes,
)
from pytest_invari.routing.frontier import Frontier, PolicyPoint, frontier
from pytest_invari.routing.policies import (
    FRACTIONS,
    Policy,
    Refusal,
    ViewRoles,
    make_policies,
    probe_instability,
)
from pytest_invari.routing.report import as_json, format_routing

__all__ = [
    "BENEFIT_FIGURES",
    "COSTS",
    "FRACTIONS",
    "Frontier",
    "JudgedLists",
    "Outcomes",
    "Policy",
    "PolicyPoint",
    "Refusal",
    "Routing",
    "ViewRoles",
    "as_json",
    "borda_ranks",
    "evaluate_routing",
    "fairness_loss",
    "format_routing",
    "frontier",
    "make_policies",
    "movement",
    "outcomes",
    "probe_instability",
    "summarise_benefit",
]
