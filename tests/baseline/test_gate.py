"""--invari-save and --invari-compare: what is stored, what is compared, and what fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.baseline.conftest import Gated


def test_the_same_reranker_is_the_same(gated: Gated) -> None:
    gated.save()
    result = gated.compare()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["SAME *loc@baseline?mine:rank-tasks-K6?*", "baseline mine.json: 6 same"])
