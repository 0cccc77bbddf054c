"""The routing analysis as plain values for other programs, and as text for a terminal."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_invari.metrics.costs import COSTS
from pytest_invari.routing.evaluation import Routing
from pytest_invari.routing.frontier import Frontier, PolicyPoint
from pytest_invari.statistics import Interval
from pytest_invari.text import figure, number, printable

_WIDTH = 80
_DIGITS = 3
# Numbers of more digits than these are shown by their power of ten, so that six stand beside each other.
_LARGE = 1e6
_LABELS = {
    "loss_canonical": "L_F canonical",
    "loss_borda": "L_F Borda",
    "benefit": "B_F",
    "absolute_benefit": "|B_F|",
    "improved": "Pr(B_F > 0)",
    "movement": "movement",
    "ndcg_canonical": "NDCG@10 canonical",
    "ndcg_borda": "NDCG@10 Borda",
    "rho_movement": "rho(V, movement)",
    "rho_benefit": "rho(V, B_F)",
    "rho_absolute_benefit": "rho(V, |B_F|)",
}
_COST_HEADINGS = ("calls", "depth", "tokens in", "cached", "out", "seconds")
_AGGREGATES = {"target_only": "the target views alone", "with_canonical": "the canonical view as well"}


def as_json(routing: Routing) -> dict[str, Any]:
    """All of it in types that JSON has; what is undefined is null and has a reason."""
    frontier = routing.frontier
    undefined = Counter(reason for reason in routing.outcomes.benefit.reasons if reason is not None)
    policies = dict.fromkeys(point.policy for point in frontier.points)
    return {
        "queries": frontier.queries,
        "undefined": dict(sorted(undefined.items())),
        "benefit": {name: _interval(value) for name, value in routing.benefit.items()},
        "points": [_point(point) for point in frontier.points],
        "dominated_by_others": {policy: _dominated(frontier, policy) for policy in policies},
        "refused": [
            {"policy": each.policy, "reason": str(each), "reasons": dict(each.reasons)}
            for each in frontier.refused
        ],
        "always_aggregate": frontier.aggregate,
        "loss_queries": frontier.loss_queries,
        "ndcg_queries": frontier.ndcg_queries,
        "replicates": frontier.replicates,
        "undefined_replicates": frontier.undefined_replicates,
        "reason": frontier.reason,
        "frequency_reason": frontier.frequency_reason,
    }


def format_routing(summary: Mapping[str, Any]) -> list[str]:
    """Show what :func:`as_json` gave, in lines of at most 80 columns."""
    return [
        *_wrapped(
            "Borda aggregate of the target views against the canonical ranking: estimate [interval] "
            f"n=queries with a value, of {summary['queries']:,}"
        ),
        *_table([(_LABELS[name], _figure(value)) for name, value in summary["benefit"].items()], "<<"),
        *_undefined(summary["undefined"]),
        "",
        *_wrapped("Routing, means a query: is a point dominated, and in which share of the resamples?"),
        *_utility_table(summary["points"]),
        "",
        *_table([("", *_COST_HEADINGS), *map(_cost_row, summary["points"])], "<" + ">" * len(COSTS)),
        "",
        *(line for note in _notes(summary) for line in _wrapped(note)),
    ]


def _point(point: PolicyPoint) -> dict[str, Any]:
    return {
        "name": point.name,
        "policy": point.policy,
        "fraction": point.fraction,
        "routed": point.routed,
        "views_before_routing": point.views_before_routing,
        "views": point.views,
        "cost": dict(point.costs),
        "loss": _number(point.loss),
        "ndcg@10": _number(point.ndcg),
        "dominators": None if point.dominators is None else list(point.dominators),
        "domination_frequency": _number(point.domination_frequency),
    }


def _dominated(frontier: Frontier, policy: str) -> dict[str, int] | None:
    found = frontier.dominated(policy)
    return None if found is None else {"dominated": found[0], "points": found[1]}


def _interval(value: Interval) -> dict[str, Any]:
    return {
        "estimate": _number(value.estimate),
        "low": _number(value.low),
        "high": _number(value.high),
        "n": value.n,
        "undefined": value.undefined,
        "level": value.level,
        "method": value.method,
        "reason": value.reason,
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _figure(value: Mapping[str, Any]) -> str:
    ends = [math.nan if value[name] is None else value[name] for name in ("estimate", "low", "high")]
    why = f" ({value['reason']})" if value["reason"] else ""
    return figure(ends[0], ends[1], ends[2], value["n"], _DIGITS) + why


def _undefined(reasons: Mapping[str, int]) -> list[str]:
    if not reasons:
        return []
    return _wrapped("no L_F: " + ", ".join(f"{code} {count}" for code, count in reasons.items()))


def _utility_table(points: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [("", "routed", "views", "calls", "L_F", "NDCG@10", "dominated", "resamples")]
    for point in points:
        figures = [_shown(point["views"]), _shown(point["cost"]["calls"])]
        figures += [_unless_none(point[name]) for name in ("loss", "ndcg@10")]
        rows.append((point["name"], str(point["routed"]), *figures, *_domination(point)))
    return _table(rows, "<>>>>><>")


def _cost_row(point: Mapping[str, Any]) -> tuple[str, ...]:
    return (point["name"], *(_shown(point["cost"][name]) for name in COSTS))


def _shown(value: float) -> str:
    return f"{value:.1e}" if value >= _LARGE else number(value, _DIGITS, counted=True)


def _unless_none(value: float | None) -> str:
    return "undefined" if value is None else number(value, _DIGITS)


def _domination(point: Mapping[str, Any]) -> tuple[str, str]:
    dominators, frequency = point["dominators"], point["domination_frequency"]
    word = "undefined" if dominators is None else "yes" if dominators else "no"
    return word, "undefined" if frequency is None else f"{frequency:.0%}"


def _notes(summary: Mapping[str, Any]) -> Iterator[str]:
    for point in summary["points"]:
        if point["dominators"]:
            yield f"{point['name']} is dominated by {', '.join(point['dominators'])}"
    for policy, found in summary["dominated_by_others"].items():
        if found is not None and found["points"] > 1:
            yield (
                f"{policy}: {found['dominated']} of {found['points']} points dominated by an endpoint or "
                "another policy"
            )
    before = {point["policy"]: point["views_before_routing"] for point in summary["points"]}
    least = min((views for views in before.values() if views), default=0)
    for policy, views in before.items():
        if views > least:
            yield (
                f"{policy} ranks {views} views of every query before it routes, others {least}: that these "
                "cost less is built in, not found"
            )
    yield f"always_aggregate ranks {_AGGREGATES[summary['always_aggregate']]}"
    for each in summary["refused"]:
        yield f"refused: {each['reason']}"
    if summary["reason"]:
        yield f"domination is undefined: {summary['reason']}"
    elif summary["frequency_reason"]:
        yield (
            f"the frequency of domination is undefined: {summary['frequency_reason']}, "
            f"{summary['undefined_replicates']} of {summary['replicates']}"
        )


def _table(rows: Sequence[Sequence[str]], aligned: str) -> list[str]:
    """Rows of cells, each column as wide as its widest cell, aligned as ``<`` and ``>`` say."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{printable(cell):{side}{width}}" for cell, side, width in zip(row, aligned, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(printable(text), _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
