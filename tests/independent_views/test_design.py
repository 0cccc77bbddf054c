"""Banks, probes and targets, and the names of what is found of them."""

from __future__ import annotations

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.observation.design import Design, statistic_names

BANK = ("canonical", "13", "17", "19", "23", "29", "31", "41")
PAPER = Design(BANK, ("canonical", "13"), ("23", "29", "31", "41"))


def test_the_papers_probes_and_target_by_their_places() -> None:
    assert [PAPER.probe_of(size) for size in (2, 3, 4)] == [(0, 1), (0, 1, 2), (0, 1, 2, 3)]
    assert PAPER.target_views == (4, 5, 6, 7)
    assert PAPER.family == ("rho_2_minus_0", "rho_0_probe_4_minus_2")


def test_probes_grow_past_the_target_in_the_order_of_the_bank() -> None:
    design = Design(BANK, ("19", "canonical"), ("13", "23", "41"), (1, 2, 5))
    assert design.probe_views == (3, 0)
    assert design.probe_of(1) == (3,)
    assert design.probe_of(5) == (3, 0, 2, 5, 6)
    assert (design.other_sizes, design.largest_size) == ((1, 5), 5)


def test_names_of_all_findings() -> None:
    exposure = [
        *("rho_0", "rho_1", "rho_2", "rho_2_removed", "rho_2_minus_0"),
        *("rho_0_probe_3", "rho_0_probe_3_minus_2", "rho_0_probe_4", "rho_0_probe_4_minus_2"),
        *("r2_probe_2", "r2_probe_2_and_4", "r2_gain", "jaccard_probe_2_and_4"),
    ]
    assert statistic_names(PAPER) == (*exposure, *(f"ranking_{name}" for name in exposure))
    alone = Design(BANK, BANK[:2], BANK[4:], ())
    assert alone.family == ("rho_2_minus_0",)
    assert statistic_names(alone)[5:7] == ("r2_probe_2", "ranking_rho_0")


@pytest.mark.parametrize(
    ("bank", "probe", "target", "sizes", "message"),
    [
        (BANK, ("canonical", "14"), BANK[4:], (2,), "probe: unknown view '14'. Known: 13, 17, .*canonical"),
        (BANK, BANK[:2], ("23", "29", "43"), (2,), "target: unknown view '43'"),
        ((*BANK, "13"), BANK[:2], BANK[4:], (2,), "bank: '13' given twice"),
        (BANK, ("13", "13"), BANK[4:], (2,), "probe: '13' given twice"),
        (BANK, ("13", "23"), BANK[4:], (2,), "probe and target share '23'"),
        (BANK, (), BANK[4:], (2,), "0 views in the probe and 4 in the target"),
        (BANK, BANK[:2], BANK[4:6], (2,), "2 views in the probe and 2 in the target; give at least 1 and 3"),
        (BANK, BANK[:2], BANK[4:], (2, 5), "probe size 5: 8 views in the bank, less the 4 .* 1 to 4"),
        (BANK, BANK[:2], BANK[4:], (0,), "probe size 0"),
    ],
)
def test_a_design_that_cannot_be_is_refused(
    bank: tuple[str, ...],
    probe: tuple[str, ...],
    target: tuple[str, ...],
    sizes: tuple[int, ...],
    message: str,
) -> None:
    with pytest.raises(InvariError, match=message):
        Design(bank, probe, target, sizes)
