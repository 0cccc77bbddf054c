"""--invari-save and --invari-compare: what is stored, what is compared, and what fails."""

from __future__ import annotations

import json
import statistics
import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING, Any

import pytest

from tests.session.conftest import write_tasks

if TYPE_CHECKING:
    from tests.baseline.conftest import Gated

LOC = "small::loc[mine:rank-tasks-K6]"
EXPOSURE = "small::exposure_deviation@3[mine:rank-tasks-K6]"
both_ways = pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)], ids=["alone", "workers"]
)


def values(entry: Any) -> list[Any]:
    return [entry["queries"][f"q{number}"] for number in range(32)]


def largest_deviation(pairs: list[tuple[list[int], int]]) -> float:
    """P1, section 3.5, of lists of 6 and the top 3, query after query and position after position."""
    views = sum(total for _, total in pairs)
    shares = [sum(counts[place] for counts, _ in pairs) / views for place in range(6)]
    return max(abs(share - 3 / 6) for share in shares)


def test_the_same_reranker_is_the_same(gated: Gated) -> None:
    gated.save()
    result = gated.compare("--invari-strict")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "SAME *loc@baseline?mine:rank-tasks-K6?*",
            "SAME *hr@2@baseline*",
            "baseline mine.json: 6 same",
        ]
    )


@both_ways
def test_a_worse_reranker_regresses_and_a_better_one_improves(gated: Gated, workers: tuple[str, ...]) -> None:
    gated.save(*workers)
    gated.make_noise(0.9)
    worse = gated.changes(*workers)
    assert (worse["loc"]["outcome"], worse["gpi"]["outcome"]) == ("regressed", "regressed")
    # Calls have not changed, and so the reranker is not worse in that.
    assert worse["calls"]["outcome"] == "same"
    result = gated.compare(*workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED small::loc@baseline?mine:rank-tasks-K6? - regressed: -0.*"])
    gated.make_noise(0.1)
    better = gated.changes(*workers)
    assert (better["loc"]["outcome"], better["gpi"]["outcome"]) == ("improved", "improved")


def test_a_difference_is_the_mean_of_the_queries_differences(gated: Gated) -> None:
    old = gated.save()["entries"]
    gated.make_noise(0.7)
    found = gated.changes()
    (gated.path).rename(gated.path.with_name("old.json"))
    new = gated.save()["entries"]
    before, now = values(old[LOC]), values(new[LOC])
    loc = found["loc"]
    assert loc["difference"] == pytest.approx(
        statistics.fmean(b - a for a, b in zip(before, now, strict=True))
    )
    assert loc["before"] == pytest.approx(statistics.fmean(before))
    assert loc["now"] == pytest.approx(statistics.fmean(now))
    assert loc["low"] < loc["difference"] < loc["high"] < 0
    exposure = found["exposure_deviation@3"]
    ends = [largest_deviation(values(each[EXPOSURE])) for each in (old, new)]
    assert [exposure["before"], exposure["now"]] == pytest.approx(ends)
    assert exposure["difference"] == pytest.approx(ends[1] - ends[0])


def test_an_interval_is_that_of_two_rerankers_compared_in_one_run(gated: Gated) -> None:
    suite = gated.project.path / "small.invari.toml"
    suite.write_text(suite.read_text().replace('baseline = "random"', 'baseline = "mine:before"'))
    code = (gated.project.path / "mine.py").read_text()
    before = code.replace("def rank", "def before").replace("noise.txt", "noise_before.txt")
    gated.project.write("mine.py", code + before)
    (gated.project.path / "noise_before.txt").write_text("0.4")
    gated.save()
    gated.make_noise(0.7)
    gated.run("--invari-compare=mine.json", "--invari-json=report.json")
    report = json.loads((gated.project.path / "report.json").read_text())
    criteria = {each["criterion"]: each for each in report["criteria"]}
    changes = {each["criterion"]: each for each in report["changes"]}
    for stored, at_once in (("estimate", "difference"), ("low", "low"), ("high", "high")):
        assert criteria["loc_vs_baseline"][stored] == changes["loc"][at_once]


@pytest.mark.parametrize("given", ["suite", "option"])
def test_a_margin_allows_for_a_loss(gated: Gated, given: str) -> None:
    gated.save()
    gated.make_noise(0.7)
    assert gated.changes()["loc"]["outcome"] == "regressed"
    if given == "suite":
        suite = gated.project.path / "small.invari.toml"
        suite.write_text(
            suite.read_text().replace("at_least = 0.75", "at_least = 0.75\nregression_margin = 1")
        )
        found = gated.changes()
        assert found["gpi"]["margin"] == 0
    else:
        found = gated.changes("--invari-margin=1")
        assert found["gpi"]["margin"] == 1
    assert (found["loc"]["outcome"], found["loc"]["margin"]) == ("same", 1)


def test_too_few_queries_are_undecided(gated: Gated) -> None:
    gated.save("--invari-queries=8")
    gated.make_noise(0.9)
    result = gated.compare("--invari-queries=8")
    result.stdout.fnmatch_lines(
        ["UNDECIDED loc@baseline*", "*fewer than*", "baseline mine.json: * undecided*"]
    )
    assert result.ret == 0
    result = gated.compare("--invari-queries=8", "--invari-strict")
    result.stdout.fnmatch_lines(
        ["undecided: *; undecided fails under --invari-strict", "FAILED small::loc@baseline*"]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_queries_without_a_relevant_candidate_do_not_count_as_undefined(gated: Gated) -> None:
    lines = (gated.project.path / "tasks.jsonl").read_text().splitlines()
    more = [json.loads(line) for line in lines[:8]]
    for row in more:
        row["query_id"] += " without"
        for candidate in row["candidates"]:
            candidate["relevance"] = 0.0
    (gated.project.path / "tasks.jsonl").write_text("\n".join([*lines, *map(json.dumps, more)]) + "\n")
    gated.make_noise(0.0)
    gated.save("--invari-queries=40")
    gated.make_noise(1.0)
    change = gated.changes("--invari-queries=40")["hr@2"]
    assert (change["n"], change["undefined"]) == (32, 8)
    assert change["outcome"] == "regressed"


def test_an_entry_that_is_missing_fails_its_item(gated: Gated) -> None:
    content = gated.save()
    del content["entries"][LOC]
    gated.write(content)
    result = gated.compare()
    result.assert_outcomes(passed=5, failed=2)
    result.stdout.fnmatch_lines(
        [
            "missing: mine.json has no entry small::loc?mine:rank-tasks-K6?; add it with --invari-save=*",
            "MISSING   loc@baseline*",
            "FAILED small::loc@baseline*",
        ]
    )


def test_what_could_not_be_measured_fails_and_is_not_stored(gated: Gated) -> None:
    gated.save()
    kept = gated.path.read_bytes()
    (gated.project.path / "noise.txt").write_text("not a number")
    result = gated.run("--invari-save=mine.json", "-k", "loc")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result = gated.compare("--invari-save=other.json")
    result.stdout.fnmatch_lines(["MISSING   loc@baseline*", "*could not convert*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert gated.path.read_bytes() == kept
    assert not (gated.project.path / "other.json").exists()


def test_the_ids_of_changes_work_as_those_of_checks(gated: Gated) -> None:
    gated.save()
    gated.make_noise(0.9)
    wanted = "small.invari.toml::loc@baseline[mine:rank-tasks-K6]"
    given = ("--invari-compare=mine.json", "--junitxml=junit.xml")
    result = gated.project.pytest(wanted, *given)
    result.assert_outcomes(failed=1)
    case = ElementTree.parse(gated.project.path / "junit.xml").getroot().find(".//testcase")
    assert case is not None
    assert case.get("name") == "loc@baseline[mine:rank-tasks-K6]"
    found = {each.get("name"): each.get("value") for each in case.iter("property")}
    assert (found["invari_outcome"], found["invari_margin"]) == ("regressed", "0.0")
    gated.project.pytest("small.invari.toml::loc", "--reranker=mine:rank", *given).assert_outcomes(failed=1)
    gated.run("--lf", *given).assert_outcomes(failed=2)


def test_the_id_of_a_change_needs_a_baseline(gated: Gated) -> None:
    result = gated.project.pytest("small.invari.toml::loc@baseline[mine:rank-tasks-K6]")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: small::loc@baseline* compares with a stored baseline: add --invari-c*"]
    )


def test_margins_need_a_baseline(gated: Gated) -> None:
    result = gated.run("--invari-margin=0.1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --invari-margin needs --invari-compare=FILE*"])


@pytest.mark.parametrize("margin", ["-0.1", "nan", "inf", "much"])
def test_a_margin_is_a_number(gated: Gated, margin: str) -> None:
    result = gated.run("--invari-compare=mine.json", f"--invari-margin={margin}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --invari-margin: '{margin}' is not a number of at least 0"])


def test_a_finding_of_an_analysis_is_left_out(gated: Gated) -> None:
    write_tasks(gated.project.path / "tasks.jsonl", queries=32, k=12)
    gated.project.write(
        "bank.invari.toml",
        """
        [suite]
        name = "bank"
        [profile.quick]
        datasets = ["tasks.jsonl"]
        k = 12
        bank = ["canonical", 1, 2, 3, 4, 5, 6, 7]
        probe = ["canonical", 1]
        target = [4, 5, 6, 7]
        [[criterion]]
        name = "loc"
        metric = "loc"
        at_least = 0.1
        [[criterion]]
        name = "rho"
        metric = "rho_0"
        at_least = -0.9
        """,
    )
    asked = ("--invari-suite=bank.invari.toml", "--reranker=mine:rank")
    gated.project.pytest(*asked, "--invari-save=mine.json")
    assert list(gated.content()["entries"]) == ["bank::loc[mine:rank-tasks-K12]"]
    result = gated.project.pytest(*asked, "--invari-compare=mine.json")
    result.stdout.fnmatch_lines(["SAME * loc@baseline*", "LEFT OUT  rho@baseline*a finding of an analysis*"])


def test_rankings_that_are_replayed_are_compared_and_stored_as_those_of_a_model(gated: Gated) -> None:
    stored = gated.save("--invari-records=records")
    (gated.project.path / "noise.txt").unlink()
    result = gated.compare("--invari-records=records", "--invari-replay", "--invari-save=again.json")
    result.stdout.fnmatch_lines(["baseline mine.json: 6 same", "saved: 5 metrics in again.json"])
    assert json.loads((gated.project.path / "again.json").read_text()) == stored


@pytest.mark.parametrize("rule", ["strict", "drop"])
def test_rankings_that_fail_are_compared_by_the_suites_rule(gated: Gated, rule: str) -> None:
    suite = gated.project.path / "small.invari.toml"
    suite.write_text(suite.read_text().replace('name = "small"', f'name = "small"\non_failure = "{rule}"', 1))
    gated.save()
    code = (gated.project.path / "mine.py").read_text()
    faulty = "    if texts[0] == 'Film 3':\n        raise RuntimeError('no answer')\n    return [score"
    gated.project.write("mine.py", code.replace("    return [score", faulty, 1))
    found = gated.changes()["loc"]
    assert found["outcome"] == ("missing" if rule == "strict" else "undecided")
    assert "rankings failed" in found["reason"] if rule == "strict" else found["undefined"] < 32


def test_a_reranker_that_cannot_say_what_it_is_is_not_stored(gated: Gated) -> None:
    gated.project.write(
        "mine.py",
        """
        from pytest_invari.protocol import Ranking

        class Rank:
            def rank(self, request):
                return Ranking(request.ids)

            def fingerprint(self):
                raise RuntimeError("which am I?")
        """,
    )
    result = gated.project.run("--invari-save=mine.json", "-k", "calls", reranker="mine:Rank")
    result.stdout.fnmatch_lines(["nothing to store in a baseline: *fingerprint() raised*which am I?*"])
    result.stdout.fnmatch_lines(["criteria: 0 passed, 1 failed, 0 undecided"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not gated.path.exists()


def test_a_criterion_must_not_take_the_name_of_a_reported_metric(gated: Gated) -> None:
    suite = gated.project.path / "small.invari.toml"
    suite.write_text(suite.read_text().replace('name = "calls"', 'name = "ppi"').replace('"gpi"]', '"ppi"]'))
    gated.save()
    result = gated.compare()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: small.invari.toml:*: criterion 'ppi' has the name of a metric under report; rename it"]
    )
