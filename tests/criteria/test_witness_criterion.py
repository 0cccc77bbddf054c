"""The kind of criteria `witness`: no ranking depends on the order, or two orders show that one does."""

# ruff: noqa: E501  # a table reads better with a case a line

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from tests.criteria.kinds import MOSTLY, WITNESS, calls, entries, run, write_conftest, write_suite

if TYPE_CHECKING:
    from tests.session.conftest import Project


@pytest.mark.parametrize("reranker", ["sound", "constant", "oracle"])
def test_a_reranker_that_does_not_depend_on_the_order_passes(project: Project, reranker: str) -> None:
    write_conftest(project)
    write_suite(project, WITNESS)
    result = run(project, "-v", reranker=reranker)
    assert result.ret == 0
    result.stdout.fnmatch_lines([f"kinds::order[[]{reranker}-tasks-K6[]] PASSED*"])
    result.stdout.fnmatch_lines(["PASS * 0 of 32 queries are ranked differently in*"])


@pytest.mark.parametrize("reranker", ["input_order", "biased:beta=1"])
def test_a_reranker_that_depends_on_it_fails_with_two_candidates(project: Project, reranker: str) -> None:
    write_conftest(project)
    write_suite(project, WITNESS)
    entry = entries(project, reranker=reranker)["order"]
    witness = entry["details"]["witness"]
    one, other = witness["orders"]
    assert (entry["verdict"], entry["kind"], entry["metric"], entry["bound"]) == (
        "fail",
        "witness",
        None,
        None,
    )
    assert len(one) == 2
    assert one == other[::-1]
    assert [sorted(order) for order in (one, other)] == [witness["ids"]] * 2
    first, second = witness["rankings"]
    assert first == second[::-1] == [witness["preferred"], witness["other"]]
    assert witness["query_id"] == re.match(r"(q\d+)i", one[0])[1]  # type: ignore[index]
    assert not witness["is_noise"]
    assert 0 < witness["calls"] <= 50
    share = re.match(r"(\d+) of 32 queries are ranked differently in another order: ", entry["text"])
    assert share is not None
    assert int(share[1]) == entry["details"]["differ"] > 0


def test_the_message_begins_with_the_figure_and_shows_the_witness(project: Project) -> None:
    write_conftest(project)
    write_suite(project, WITNESS)
    result = run(project, reranker="input_order")
    assert result.ret == 1
    lines = [
        "32 of 32 queries are ranked differently in another order: no ranking may depend on the order; the "
        "smallest witness found follows (after * further calls)",
        "query 'q*': 2 candidates in two orders that differ at 2 positions, and only one ranking has 'q*i*' above "
        "'q*i*'",
        "  'q*i*': 'Film *'",
        "  'q*i*': 'Film *'",
        "  ['q*i*', 'q*i*'] is ranked ['q*i*', 'q*i*']",
        "  ['q*i*', 'q*i*'] is ranked ['q*i*', 'q*i*']",
    ]
    result.stdout.fnmatch_lines([line.replace("[", "[[]") for line in lines])
    result.stdout.fnmatch_lines(["FAILED kinds::order[[]input_order-tasks-K6[]] - 32 of 32 queries are*"])
    section = result.outlines[
        result.outlines.index(next(line for line in result.outlines if "= invari =" in line)) :
    ]
    assert all(len(line) <= 80 for line in section)
    assert any(line.strip().startswith("'q") for line in section)


def test_only_the_terminal_wraps_a_witness(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    write_conftest(project)
    write_suite(project, f"{WITNESS}\nmax_calls = 0")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path))
    monkeypatch.setenv("COLUMNS", "100")
    result = run(project, "--invari-markdown=report.md", reranker="input_order")
    whole = re.compile(
        r"query 'q\d+': 6 candidates in two orders .* positions, and only one ranking has \S+ above \S+$"
    )
    assert any(map(whole.match, (project.path / "report.md").read_text().splitlines()))
    [annotation] = [line for line in result.outlines if line.startswith("::error")]
    assert any(map(whole.match, annotation.split("%0A")))
    section = result.outlines[result.outlines.index(f"{' invari ':=^100}") + 1 :]
    wrapped = [line for line in section if line.startswith(" " * 10)]
    assert all(len(line) <= 100 for line in wrapped)
    assert any(len(line) > 90 for line in wrapped)


@pytest.mark.parametrize("most", [1, 3, 10, 40])
def test_no_more_calls_are_made_than_allowed_and_all_are_told(project: Project, most: int) -> None:
    write_conftest(project)
    write_suite(project, f"{WITNESS}\nmax_calls = {most}")
    witness = entries(project)["order"]["details"]["witness"]
    made = len(calls(project)) - 32 * 4
    assert made == witness["calls"] <= most
    assert 4 <= len(witness["orders"][0]) <= 6
    assert set(calls(project)[: 32 * 4]) == {6}


def test_enough_calls_show_that_no_shorter_list_depends_on_the_order(project: Project) -> None:
    write_conftest(project)
    write_suite(project, f"{WITNESS}\nmax_calls = 400")
    entry = entries(project)["order"]
    witness = entry["details"]["witness"]
    assert len(witness["orders"][0]) == 4
    assert witness["is_smallest"]


TWICE = """
class Twice:
    '''Takes two calls for a ranking, and depends on the order.'''
    def rank(self, request):
        from pytest_invari.protocol import Cost, Ranking
        return Ranking.from_order(request, request.ids, cost=Cost(calls=2, depth=1))

@pytest.hookimpl(optionalhook=True, specname="pytest_invari_rerankers")
def pytest_invari_more(config):
    return dict(twice=Twice)
"""


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
def test_what_witnesses_took_is_told(project: Project, workers: tuple[str, ...]) -> None:
    write_conftest(project, TWICE)
    again = WITNESS.replace("order", "again")
    write_suite(project, WITNESS, 'name = "calls"\nmetric = "calls"\nat_most = 9', f"{again}\nmax_calls = 3")
    result = run(project, "--invari-json=report.json", *workers, reranker="twice")
    report = json.loads((project.path / "report.json").read_text())
    found = {each["criterion"]: each["details"] for each in report["criteria"]}
    made = found["order"]["witness"]["calls"] + found["again"]["witness"]["calls"]
    [subject] = report["subjects"]
    assert subject["witness_rankings"] == made > 3
    assert subject["witness_cost"] == {
        **dict.fromkeys(("tokens_in", "tokens_cached", "tokens_out", "seconds")),
        "seconds": subject["witness_cost"]["seconds"],
        "calls": 2 * made,
        "depth": made,
    }
    assert subject["total_cost"]["calls"] == 32 * 4 * 2
    section = " ".join(line.strip() for line in result.outlines)
    said = f"128 rankings, 256 calls, 0.0 s of reranking; and for witnesses {made} rankings, {2 * made} calls, 0.0 s"
    assert said in section


def test_without_calls_the_two_most_alike_of_the_measured_orders_are_shown(project: Project) -> None:
    write_conftest(project)
    write_suite(project, f"{WITNESS}\nmax_calls = 0")
    result = run(project, "--invari-json=report.json")
    assert calls(project) == [6] * 32 * 4
    result.stdout.fnmatch_lines(["*the two most alike of the measured orders follow (no calls were made)"])
    [entry] = json.loads((project.path / "report.json").read_text())["criteria"]
    witness = entry["details"]["witness"]
    assert (len(witness["ids"]), witness["calls"]) == (6, 0)
    one, other = witness["orders"]
    assert nearest_flip(project) == sum(map(str.__ne__, one, other))


def nearest_flip(project: Project) -> int:
    """The fewest positions that differ between two orders of a query that were ranked differently."""
    run(project, "--invari-records=records")
    project.pytester.run(sys.executable, "-m", "pytest_invari.records", "export", "records", "out.jsonl")
    shown: dict[str, list[tuple[list[str], list[str]]]] = {}
    for line in (project.path / "out.jsonl").read_text().splitlines():
        row = json.loads(line)
        shown.setdefault(row["query_id"], []).append((row["input"], row["output"]))
    return min(
        sum(map(str.__ne__, one[0], other[0]))
        for seen in shown.values()
        for one in seen
        for other in seen
        if one[1] != other[1]
    )


def test_a_replay_calls_nothing(project: Project) -> None:
    write_conftest(project)
    write_suite(project, WITNESS)
    ranked = entries(project, "--invari-records=records")["order"]
    (project.path / "calls.txt").unlink()
    replayed = entries(project, "--invari-records=records", "--invari-replay")["order"]
    assert not (project.path / "calls.txt").exists()
    assert replayed["details"]["witness"]["calls"] == 0 < ranked["details"]["witness"]["calls"]
    assert replayed["details"]["differ"] == ranked["details"]["differ"]
    assert "no calls were made" in replayed["text"]


def test_ids_and_texts_cannot_command_a_terminal(project: Project) -> None:
    candidates = [{"id": f"\x1b[3{number}m", "text": f"\x1b]0;{number}\x07"} for number in range(6)]
    row = {"query_id": "\x1b[2J", "text": "films", "candidates": candidates}
    (project.path / "tasks.jsonl").write_text(json.dumps(row) + "\n")
    write_suite(project, WITNESS)
    result = run(project, "--color=no", "--invari-json=report.json", reranker="input_order")
    assert result.ret == 1
    assert not any("\x1b" in line or "\x07" in line for line in result.outlines)
    assert any("\\x1b]0;" in line for line in result.outlines)


LOADED = """
import os

class Loaded:
    def prepare(self):
        if os.path.exists({folder!r} + "/no_disk"):
            raise OSError("the disk is gone")
    def rank(self, request):
        from pytest_invari.errors import ServiceDownError
        from pytest_invari.protocol import Ranking
        if os.path.exists({folder!r} + "/no_service"):
            raise ServiceDownError("the service is away")
        return Ranking.from_order(request, request.ids)

@pytest.hookimpl(optionalhook=True, specname="pytest_invari_rerankers")
def pytest_invari_more(config):
    return {{"loaded": Loaded()}}
"""


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ("no_disk", "reranker 'loaded': Loaded.prepare() raised OSError: the disk is gone"),
        ("no_service", "not judged: the service is away"),
    ],
)
def test_a_search_that_cannot_go_on_fails_in_one_line(project: Project, lost: str, told: str) -> None:
    write_conftest(project, LOADED.format(folder=str(project.path)))
    write_suite(project, WITNESS, 'name = "loc"\nmetric = "loc"\nat_most = 0.9')
    run(project, "--invari-records=records", reranker="loaded").assert_outcomes(failed=1, passed=1)
    project.write(lost, "")
    result = run(project, "--invari-records=records", "-rN", reranker="loaded")
    result.assert_outcomes(failed=1, passed=1)
    assert told in " ".join(result.stdout.str().split())
    assert "Error\n" not in result.stdout.str()
    assert "site-packages" not in result.stdout.str()


def test_calls_of_a_search_are_not_recorded(project: Project) -> None:
    write_conftest(project)
    write_suite(project, WITNESS)
    run(project, "--invari-records=records")
    first = len(calls(project))
    run(project, "--invari-records=records")
    assert first - 32 * 4 == len(calls(project)) - first > 0


def test_noise_is_told_apart(project: Project) -> None:
    write_conftest(project)
    write_suite(project, WITNESS)
    entry = entries(project, reranker="noisy")["order"]
    assert entry["verdict"] == "fail"
    assert entry["details"]["witness"]["is_noise"]
    assert "so this is noise" in entry["text"]


def test_noise_of_repeats_is_seen_without_calls(project: Project) -> None:
    write_conftest(project)
    write_suite(project, f"{WITNESS}\nmax_calls = 0", profile="repeats = 3")
    entry = entries(project, reranker="noisy")["order"]
    assert entry["details"]["witness"]["is_noise"]
    assert "noise (no calls were made)" in entry["text"]


@pytest.mark.parametrize(
    ("on_failure", "verdict", "text"),
    [
        ("strict", "fail", r"no figure: no ranking may depend .* rankings failed, the first for query"),
        ("drop", "pass", r"0 of 32 queries are ranked differently .*on_failure = drop"),
        ("random", "fail", r"\d+ of 32 .*they differ only where failed views count as random orders"),
    ],
)
def test_failed_rankings_count_as_the_suite_says(
    project: Project, on_failure: str, verdict: str, text: str
) -> None:
    write_conftest(project)
    write_suite(project, WITNESS, head=f'on_failure = "{on_failure}"')
    entry = entries(project, reranker="failing")["order"]
    assert entry["verdict"] == verdict
    assert re.match(text, entry["text"])


@pytest.mark.parametrize(
    ("first", "head", "verdict", "reason"),
    [
        (28, "", "undecided", "28 queries have two views to compare, fewer than the 30 that a verdict needs; "),
        (28, "min_queries = 28", "undecided", "4 of 32 queries have no two views to compare, more than max_undefined = 0.05; "),
        (31, "", "pass", ""),
        (28, "min_queries = 28\nmax_undefined = 0.2", "pass", ""),
    ],
)  # fmt: skip
def test_queries_without_two_views_to_compare_leave_a_pass_open(
    project: Project, first: int, head: str, verdict: str, reason: str
) -> None:
    write_conftest(project, MOSTLY.format(first=first, rule="sorted(request.ids)"))
    write_suite(project, WITNESS, head=f'on_failure = "drop"\n{head}')
    entry = entries(project, reranker="mostly")["order"]
    assert (entry["verdict"], entry["n"]) == (verdict, first)
    assert f"no ranking may depend on the order; {reason}{(32 - first) * 4} of 128 rankings" in entry["text"]
    assert entry["n_needed"] == (30 if "fewer" in reason else None)


@pytest.mark.parametrize("first", [1, 31])
def test_a_witness_fails_however_few_queries_have_two_views(project: Project, first: int) -> None:
    write_conftest(project, MOSTLY.format(first=first, rule="request.ids"))
    write_suite(project, WITNESS, head='on_failure = "drop"')
    assert entries(project, reranker="mostly")["order"]["verdict"] == "fail"


def test_nothing_to_compare_fails(project: Project) -> None:
    write_conftest(
        project,
        """
        class Broken:
            def rank(self, request):
                raise ValueError("down")

        @pytest.hookimpl(optionalhook=True, specname="pytest_invari_rerankers")
        def pytest_invari_more(config):
            return dict(broken=Broken)
        """,
    )
    write_suite(project, WITNESS, head='on_failure = "drop"')
    entry = entries(project, reranker="broken")["order"]
    assert (entry["verdict"], entry["n"]) == ("fail", 0)
    assert "nothing measured: no query has two views" in entry["text"]


def test_witnesses_leave_holm_and_baselines_alone(project: Project) -> None:
    write_conftest(project)
    metric = 'name = "loc"\nmetric = "loc"\nat_least = 0.99'
    write_suite(project, metric)
    alone = entries(project, "--invari-save=base.json")["loc"]
    write_suite(project, metric, WITNESS)
    both = entries(project, "--invari-compare=base.json")
    assert {key: both["loc"][key] for key in ("verdict", "p_fail", "reason")} == {
        key: alone[key] for key in ("verdict", "p_fail", "reason")
    }
    report = json.loads((project.path / "report.json").read_text())
    assert [change["criterion"] for change in report["changes"]] == ["loc"]
    left_out = {each["criterion"]: each["reason"] for each in report["left_out"]}
    assert left_out == {"order@baseline": "kind witness has no value for each query"}
    run(project, "--invari-save=base.json")
    assert "order" not in (project.path / "base.json").read_text()


def test_junit_names_the_kind(project: Project) -> None:
    write_conftest(project)
    write_suite(project, WITNESS)
    run(project, "--junitxml=junit.xml")
    cases = ElementTree.parse(project.path / "junit.xml")
    properties = {each.get("name"): each.get("value") for each in cases.iter("property")}
    assert properties["invari_kind"] == "witness"
    assert str(properties["invari_figure"]).endswith("of 32 queries are ranked differently in another order")
    assert "invari_metric" not in properties
    assert "invari_bound" not in properties
