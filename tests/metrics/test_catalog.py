"""Metric words: what is known, what each declares, and how a wrong one is reported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.metrics import built_in_metrics, metric_names, parse_metric


@pytest.mark.parametrize(
    ("word", "family", "k", "direction", "kind"),
    [
        ("loc", "loc", None, "higher", "per_query"),
        ("ppi", "ppi", None, "lower", "per_query"),
        ("ndcg@5", "ndcg", 5, "higher", "per_query"),
        ("ndcg_candidates@10", "ndcg_candidates", 10, "higher", "per_query"),
        ("exposure_deviation@3", "exposure_deviation", 3, "lower", "pooled"),
        ("exposure_deviation_mean@3", "exposure_deviation_mean", 3, "lower", "pooled"),
        ("tokens_cached", "tokens_cached", None, "higher", "per_query"),
    ],
)
def test_words_name_metrics(word: str, family: str, k: int | None, direction: str, kind: str) -> None:
    metric = parse_metric(word)
    assert (metric.name, metric.family, metric.k, metric.direction, metric.kind) == (
        word,
        family,
        k,
        direction,
        kind,
    )


def test_every_declared_metric_is_complete_and_parses_under_its_own_name() -> None:
    for word, description in metric_names().items():
        metric = parse_metric(word.replace("@k", "@5"))
        assert description == metric.description
        assert metric.low < metric.high
        assert metric.source
        assert built_in_metrics()[metric.family].name == word
    assert list(metric_names()) == sorted(metric_names())


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("lok", "unknown metric 'lok'. Did you mean 'loc'"),
        ("nDCG@5", "unknown metric 'nDCG@5'. Did you mean 'ndcg@5'"),
        ("ndgc@10", "Did you mean 'ndcg@10'"),
        ("", "unknown metric ''"),
        ("loc@5", "loc takes no @; write 'loc'"),
        ("ndcg", "whole number from 1, after @; write 'ndcg@5'"),
        ("ndcg@0", "whole number from 1"),
        ("ndcg@-1", "whole number from 1"),
        ("ndcg@5.0", "whole number from 1"),
        ("ndcg@ 5", "whole number from 1"),
        ("hr@٥", "whole number from 1"),
    ],
)
def test_wrong_words_are_refused_with_what_to_write(word: str, message: str) -> None:
    with pytest.raises(InvariError) as caught:
        parse_metric(word, "suite.toml:7")
    assert message in str(caught.value)
    assert str(caught.value).startswith("suite.toml:7: ")
    assert "\n" not in str(caught.value)


def test_the_catalog_loads_without_numpy() -> None:
    code = "import sys, pytest_invari.metrics; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
