"""What a run was asked to compare and has not: it is told, and fails under --invari-strict."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.baseline.conftest import Gated

FAILED = pytest.ExitCode.TESTS_FAILED
SUBJECT = "[mine:rank-tasks-K6]"
COMPARISONS = f"small::@baseline{SUBJECT}"


def run(gated: Gated, *arguments: str) -> pytest.RunResult:
    return gated.run("--invari-compare=mine.json", "--invari-json=report.json", *arguments)


def unjudged(gated: Gated) -> dict[str, str]:
    report: Any = json.loads((gated.project.path / "report.json").read_text(encoding="utf-8"))
    return {each["id"]: each["reason"] for each in report["unjudged"]}


@pytest.mark.parametrize(
    "selection",
    [
        ("-k", "not baseline"),
        pytest.param(("-k", "not baseline", "-n1"), marks=pytest.mark.xdist),
    ],
    ids=["k", "workers"],
)
def test_a_subject_none_of_whose_comparisons_is_selected_fails(
    gated: Gated, selection: tuple[str, ...]
) -> None:
    gated.make_noise(0.0)
    gated.save()
    assert run(gated, *selection).ret == 0
    reason = "none of its 6 comparisons with mine.json was selected (-k, -m, --deselect, --lf or a hook)"
    assert unjudged(gated) == {COMPARISONS: reason}
    result = run(gated, "--invari-strict", "--junitxml=junit.xml", *selection)
    assert result.ret == FAILED
    result.stdout.fnmatch_lines(
        ["UNJUDGED  small::@baseline?mine:rank*", "FAILED small::@baseline?mine:rank*"]
    )
    assert unjudged(gated) == {COMPARISONS: reason}
    assert f"not judged: {reason}" in (gated.project.path / "junit.xml").read_text()


def test_some_comparisons_of_each_subject_are_a_selection(gated: Gated) -> None:
    gated.save()
    assert run(gated, "--invari-strict", "-k", "gpi and baseline").ret == 0
    # Who names ids has said what is to be compared.
    assert run(gated, "--invari-strict", "small::calls[mine:rank-tasks-K6]").ret == 0


def forget_gpi(gated: Gated) -> None:
    """Delete the criterion of a metric, and the metric from the report."""
    text = (gated.project.path / "small.invari.toml").read_text()
    text = text.replace('[[criterion]]\nname = "gpi"\nmetric = "gpi"\nat_most = 0.2\n', "")
    (gated.project.path / "small.invari.toml").write_text(text.replace(', "gpi"]', "]"))


def other_entries(gated: Gated) -> None:
    """Put entries of other suites, rerankers, data sets and lengths beside those of this run."""
    content = gated.content()
    entry = content["entries"][f"small::gpi{SUBJECT}"]
    others = ("big::gpi[mine:rank-tasks-K6]", "small::gpi[mine:rank-tasks-K7]", "small::gpi[sgs-tasks-K6]")
    content["entries"] |= dict.fromkeys(others, entry)
    gated.write(content)


def test_values_that_the_suite_asks_for_no_more_are_told_and_fail_under_the_gate(gated: Gated) -> None:
    gated.make_noise(0.0)
    gated.save()
    other_entries(gated)
    assert run(gated, "--invari-strict").ret == 0
    forget_gpi(gated)
    result = run(gated)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["LEFT OUT  gpi@baseline?mine:rank-tasks-K6?  mine.json has values of it*"])
    [left] = json.loads((gated.project.path / "report.json").read_text())["left_out"]
    assert (left["criterion"], left["subject"]) == ("gpi@baseline", SUBJECT.strip("[]"))
    result = run(gated, "--invari-strict")
    assert result.ret == FAILED
    result.stdout.fnmatch_lines(
        ["FAILED small::gpi@baseline?mine:rank-tasks-K6? - not judged: mine.json has*"]
    )
    assert list(unjudged(gated)) == [f"small::gpi@baseline{SUBJECT}"]


def test_a_new_baseline_drops_what_the_suite_asks_for_no_more(gated: Gated) -> None:
    gated.save()
    other_entries(gated)
    before = set(gated.content()["entries"])
    forget_gpi(gated)
    result = gated.run("--invari-save=mine.json", "-k", "calls")
    result.stdout.fnmatch_lines(["saved: * in mine.json; 1 that the suite asks for no more dropped"])
    assert before - set(gated.content()["entries"]) == {f"small::gpi{SUBJECT}"}


def test_comparisons_may_be_left_out_at_a_desk(gated: Gated, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "BUILD_NUMBER", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    gated.make_noise(0.0)
    gated.save()
    gated.project.write("pytest.ini", "[pytest]\ninvari_strict = true\ninvari_compare = mine.json\n")
    result = gated.run("-k", "not baseline")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["invari: this selection leaves out the comparisons of 1 subject, which you*"]
    )
    monkeypatch.setenv("CI", "1")
    assert gated.run("-k", "not baseline").ret == FAILED
