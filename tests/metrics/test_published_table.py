"""The published table: its rows obey the identities, and the suite's bounds are those of its best method."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_invari.criteria.metric import MetricCriterion
from pytest_invari.suitefile.reader import find_suite

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "g22_published_bounds.json").read_text(encoding="utf-8")
)
ROWS = GOLDEN["inputs"]["rows"]
VIEWS = GOLDEN["inputs"]["M"]
# Four methods in each of six settings, SGS the last of them.
SGS = ROWS[3::4]


@pytest.mark.parametrize(("row", "bounds"), list(zip(ROWS, GOLDEN["expected"]["bounds"], strict=True)))
def test_loc_bounds_gpi_in_every_published_row(row: dict[str, float], bounds: list[float]) -> None:
    gap = 1 - row["loc"]
    assert bounds == pytest.approx([(VIEWS - 1) / (4 * VIEWS) * gap, (VIEWS - 1) / (2 * VIEWS) * gap])
    assert bounds[0] <= row["gpi"] <= bounds[1]


def test_the_suites_bounds_are_what_sgs_reaches_in_all_settings_and_no_other_method_does() -> None:
    bounds = {
        criterion.metric.name: (criterion.comparison, criterion.value)
        for criterion in find_suite("recsys26").criteria
        if isinstance(criterion, MetricCriterion) and criterion.name in ("loc", "gpi", "ppi")
    }

    def keeps(row: dict[str, float]) -> bool:
        return all(
            row[name] >= float(value) if comparison == "at_least" else row[name] <= float(value)
            for name, (comparison, value) in bounds.items()
        )

    assert len(bounds) == 3
    assert all(map(keeps, SGS))
    assert not any(all(keeps(row) for row in ROWS[method::4]) for method in range(3))
