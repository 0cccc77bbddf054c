"""The block as JSON and as tables."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from pytest_invari.independent_views import Design, Validity, as_json, format_validity, validate
from pytest_invari.metrics.arrays import Integers
from pytest_invari.statistics import seeded_resamples

BANK = ("canonical", "13", "17", "19", "23", "29", "31", "41")
PAPER = Design(BANK, ("canonical", "13"), ("23", "29", "31", "41"))


def block_of(ranks: Integers, design: Design = PAPER, replicates: int = 200) -> Validity:
    ids = [f"user {number}" for number in range(len(ranks))]
    return validate(ranks, design, ids, seeded_resamples(len(ranks), "report", replicates), permutations=20)


def simulated(queries: int = 60) -> Integers:
    random = np.random.default_rng(0)
    noise = random.gamma(2, 0.4, size=(queries, 1, 1))
    scores = random.normal(size=(queries, 1, 12)) + noise * random.normal(size=(queries, 8, 12))
    return (-scores).argsort(axis=-1).argsort(axis=-1).astype(np.int16)


def test_json_holds_every_figure() -> None:
    block = block_of(simulated())
    data = json.loads(json.dumps(as_json(block), allow_nan=False))
    assert (data["bank"], data["probe"], data["target"]) == (list(BANK), ["canonical", "13"], list(BANK[4:]))
    assert (data["queries"], data["replicates"], data["undefined"]) == (60, 200, [])
    assert data["family"] == {"statistics": ["rho_2_minus_0", "rho_0_probe_4_minus_2"], "tests": 2}
    assert list(data["statistics"]) == list(block.findings)
    contrast, found = data["statistics"]["rho_2_minus_0"], block.findings["rho_2_minus_0"]
    assert found.mechanical is not None
    assert contrast == {
        "estimate": found.interval.estimate,
        "low": found.interval.low,
        "high": found.interval.high,
        "n": 60,
        "reason": None,
        "undefined_replicates": 0,
        "chance": found.chance,
        "p": found.p_value,
        "p_holm": found.p_holm,
        "mechanical": {
            "mean": found.mechanical.mean,
            "low": found.mechanical.low,
            "high": found.mechanical.high,
            "permutations": 20,
            "reason": None,
        },
    }
    assert data["statistics"]["rho_0"]["p_holm"] is data["statistics"]["rho_0"]["mechanical"] is None
    assert data["reliability"]["ranking"] == [
        {"calls": 2, "rho": "ranking_rho_0", "gain": None},
        {"calls": 3, "rho": "ranking_rho_0_probe_3", "gain": "ranking_rho_0_probe_3_minus_2"},
        {"calls": 4, "rho": "ranking_rho_0_probe_4", "gain": "ranking_rho_0_probe_4_minus_2"},
    ]


def test_tables_show_each_figure_with_its_interval_and_levels() -> None:
    block = block_of(simulated())
    lines = format_validity(block)
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for name in ("rho_0", "ranking_rho_2", "r2_gain", "jaccard_probe_2_and_4", "rho_0_probe_4_minus_2"):
        interval = block.findings[name].interval
        assert f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]" in text
    contrast = block.findings["rho_2_minus_0"]
    row = next(line for line in lines if line.startswith("two reused less none"))
    assert row.split()[-3:] == [
        f"{contrast.chance:.3f}",
        f"{contrast.p_value:.3f}",
        f"({contrast.p_holm:.3f})",
    ]
    level = block.findings["rho_2"].mechanical
    assert level is not None
    after = lines[next(place for place, line in enumerate(lines) if line.startswith("rho, two reused")) + 1]
    assert after == f"mechanical, 20 permuted     {level.mean:.3f} [{level.low:.3f}, {level.high:.3f}]"
    assert text.count("mechanical, 20 permuted") == 4
    assert "60 queries; probe canonical, 13; fresh target 23, 29, 31," in text
    assert "undefined" not in text
    assert re.search(r"^calls +rho with fresh target +more than with 2 +p \(Holm\)$", text, re.MULTILINE)
    assert [line.split()[0] for line in lines if re.match(r"[234] ", line)] == ["2", "3", "4"] * 2


def test_figures_of_any_size_fit_into_80_columns() -> None:
    names = tuple(f"a view with a long name {number}" for number in range(26))
    design = Design(names, names[:11], names[20:], (11, 12, 14))
    random = np.random.default_rng(1)
    ranks = random.random((40, 26, 5)).argsort(axis=-1).astype(np.int16)
    block = block_of(ranks, design, 20)
    wide = {
        name: replace(
            found,
            interval=replace(found.interval, estimate=-0.8888, low=-0.9999, high=-0.7777),
            p_value=0.0001,
            p_holm=0.0002,
        )
        for name, found in block.findings.items()
    }
    lines = format_validity(replace(block, findings=wide))
    assert max(map(len, lines)) <= 80
    assert "<0.001 (<0.001)" in "\n".join(lines)


def test_what_is_undefined_has_its_reason_in_words() -> None:
    single = format_validity(block_of(simulated(), Design(BANK, BANK[:1], BANK[4:], (1, 2))))
    words = "undefined, because one view alone has no spread; give the probe two or more: rho, no"
    assert words in re.sub(r"\s+", " ", " ".join(single))
    assert next(line for line in single if line.startswith("1 ")).split()[1] == "undefined"
    assert next(line for line in single if line.startswith("2 ")).split()[1].startswith("0.")
    one = " ".join(format_validity(block_of(simulated(), Design(BANK, BANK[:2], BANK[4:], (1, 2)))))
    assert "give the probe two or more: rho with 1; 1 more than 2 " in re.sub(r"\s+", " ", one)
    same = block_of(np.repeat(simulated()[:, :1], 8, axis=1))
    lines = format_validity(same)
    assert max(map(len, lines)) <= 80
    assert "undefined, because a probe or the target is the same for every query:" in "\n".join(lines)
    data = json.loads(json.dumps(as_json(same), allow_nan=False))
    assert data["undefined"] == list(same.findings)
    assert data["statistics"]["rho_0"]["estimate"] is None
    assert data["statistics"]["rho_0"]["reason"] == "constant_values"
    assert data["statistics"]["rho_2"]["mechanical"]["mean"] is None


def test_an_estimate_may_stand_without_its_interval() -> None:
    ranks = np.repeat(simulated(40)[:, :1], 8, axis=1)
    ranks[:2] = np.random.default_rng(2).random((2, 8, 12)).argsort(axis=-1)
    block = block_of(ranks)
    assert not math.isnan(block.findings["rho_0"].interval.estimate)
    text = "\n".join(format_validity(block))
    assert re.search(r"^rho, no probe view reused +-?\d\.\d{3} \[undefined\]", text, re.MULTILINE)
    assert "no value in more than 5% of the resamples: rho, no probe view reused;" in re.sub(
        r"\s+", " ", text
    )


@pytest.mark.parametrize("value", [-0.0001, 0.0001])
def test_no_sign_without_a_digit(value: float) -> None:
    block = block_of(simulated())
    interval = replace(block.findings["rho_0"].interval, estimate=value)
    findings = dict(block.findings) | {"rho_0": replace(block.findings["rho_0"], interval=interval)}
    assert " 0.000 [" in "\n".join(format_validity(replace(block, findings=findings)))
