"""Kinds of criteria: witnesses of order dependence, and kinds that a conftest's hook names."""

# ruff: noqa: E501  # a table reads better with a case a line

from __future__ import annotations

import json
import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from pytest_invari.criteria.suite import read_suite
from pytest_invari.errors import InvariError

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

# The first candidate of a list of four or more wins; each call leaves a line in calls.txt.
RERANKERS = """
import random
import pytest

def note(texts):
    with open({folder!r} + "/calls.txt", "a") as file:
        print(len(texts), file=file)

def crowded(context, texts):
    note(texts)
    return [len(text) + 0.5 * hash_of(text) + (99.0 if len(texts) > 3 and place == 0 else 0.0)
            for place, text in enumerate(texts)]

def sound(context, texts):
    note(texts)
    return [hash_of(text) for text in texts]

def hash_of(text):
    return sum(map(ord, text)) / 7.0

class Noisy:
    '''Draws each ranking anew.'''
    def __init__(self):
        self.count = 0
    def rank(self, request):
        from pytest_invari.protocol import Ranking
        self.count += 1
        order = random.Random(self.count).sample(sorted(request.ids), len(request.ids))
        return Ranking.from_order(request, order)

class Failing:
    '''Fails where the first candidate shown is among the first of the alphabet.'''
    def rank(self, request):
        from pytest_invari.protocol import Ranking
        if request.ids[0] == min(request.ids):
            raise ValueError("no such index")
        return Ranking.from_order(request, sorted(request.ids))

@pytest.hookimpl(optionalhook=True)
def pytest_invari_rerankers(config):
    return dict(crowded=crowded, sound=sound, noisy=Noisy, failing=Failing)
"""

KINDS = """

@pytest.hookimpl(optionalhook=True)
def pytest_invari_criteria(config):
    return {kinds}
"""


def write_conftest(project: Project, functions: str = "", kinds: str = "{}") -> None:
    text = RERANKERS.replace("{folder!r}", repr(str(project.path))) + textwrap.dedent(functions)
    (project.path / "conftest.py").write_text(text + KINDS.replace("{kinds}", kinds), encoding="utf-8")


def write_suite(project: Project, *criteria: str, head: str = "", profile: str = "") -> Path:
    text = f'[suite]\nname = "kinds"\n{head}\n[profile.quick]\ndatasets = ["tasks.jsonl"]\nk = 6\nviews = 4\n'
    text += profile + "\n"
    for lines in criteria:
        text += f"[[criterion]]\n{lines}\n"
    return project.write("kinds.invari.toml", text)


WITNESS = 'name = "order"\nkind = "witness"'


def run(project: Project, *arguments: str | Path, reranker: str = "crowded") -> pytest.RunResult:
    return project.pytest("--invari-suite=kinds.invari.toml", f"--reranker={reranker}", *arguments)


def calls(project: Project) -> list[int]:
    """The lengths of the lists that the functions were given."""
    return [int(line) for line in (project.path / "calls.txt").read_text().split()]


def entries(project: Project, *arguments: str | Path, reranker: str = "crowded") -> dict[str, Any]:
    """The criteria of the JSON report by their names."""
    run(project, "--invari-json=report.json", *arguments, reranker=reranker)
    report = json.loads((project.path / "report.json").read_text())
    return {entry["criterion"]: entry for entry in report["criteria"]}


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


def test_a_kind_of_ones_own_is_judged_by_a_replay(project: Project) -> None:
    write_conftest(project, HEAD, "dict(stable_head=stable_head)")
    write_suite(project, own())
    ranked = entries(project, "--invari-records=records")["head"]
    (project.path / "calls.txt").unlink()
    assert entries(project, "--invari-records=records", "--invari-replay")["head"] == ranked
    assert not (project.path / "calls.txt").exists()


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


MOSTLY = """
class Mostly:
    '''Fails in all views of the queries from q{first} on; ranks the others as its rule says.'''
    def rank(self, request):
        from pytest_invari.protocol import Ranking
        if int(request.ids[0][1:].partition("i")[0]) >= {first}:
            raise ValueError("no such index")
        return Ranking.from_order(request, {rule})

@pytest.hookimpl(optionalhook=True, specname="pytest_invari_rerankers")
def pytest_invari_more(config):
    return dict(mostly=Mostly)
"""


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


LOOKS = """
def looks(study):
    {body}
"""


@pytest.mark.parametrize(
    ("body", "queries", "reason"),
    [
        ("assert study.interval('loc').estimate > 0.5", 4, "4 queries have rankings, fewer than the 30 that a verdict needs"),
        ("assert study.frame('loc')['loc'].mean() > 0.5", 4, "4 queries have rankings, fewer than the 30 that a verdict needs"),
        ("assert study.measured.query_ids", 1, "1 query has rankings, fewer than the 30 that a verdict needs"),
        ("assert study.interval('loc').estimate > 0.5", 32, "loc: 28 queries have a value, fewer than the 30 that a verdict needs"),
        ("assert study.frame('loc')['loc'].mean() > 0.5", 32, "loc: 28 queries have a value, fewer than the 30 that a verdict needs"),
    ],
)  # fmt: skip
def test_a_look_at_a_figure_of_few_queries_leaves_a_pass_open(
    project: Project, body: str, queries: int, reason: str
) -> None:
    functions = MOSTLY.format(first=28, rule="sorted(request.ids)") + LOOKS.format(body=body)
    write_conftest(project, functions, "dict(looks=looks)")
    write_suite(project, own(kind="looks"), head='on_failure = "drop"')
    asked = ("--reranker=mostly", "--invari-strict", f"--invari-queries={queries}")
    result = run(project, *asked, reranker="mostly")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [f"kind 'looks' is content *; {reason}; undecided fails under --invari-strict"]
    )


def test_a_look_that_finds_a_fault_in_few_queries_fails(project: Project) -> None:
    body = "assert study.interval('loc').estimate > 2, 'not more than 2'"
    write_conftest(project, LOOKS.format(body=body), "dict(looks=looks)")
    write_suite(project, own(kind="looks"))
    assert entries(project, "--invari-queries=4", reranker="sound")["head"]["verdict"] == "fail"


def test_a_look_at_too_many_undefined_values_leaves_a_pass_open(project: Project) -> None:
    functions = MOSTLY.format(first=28, rule="sorted(request.ids)")
    functions += LOOKS.format(body="assert study.interval('loc').n == 28")
    write_conftest(project, functions, "dict(looks=looks)")
    write_suite(project, own(kind="looks"), head='on_failure = "drop"\nmin_queries = 20')
    found = entries(project, reranker="mostly")["head"]
    assert found["verdict"] == "undecided"
    assert found["reason"] == "loc: 4 of 32 queries have no value, more than max_undefined = 0.05"


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


HEAD = """
def stable_head(study, at_least=0.8):
    study.assert_at_least("loc", at_least)
"""


def own(options: str = "", kind: str = "stable_head") -> str:
    return f'name = "head"\nkind = "{kind}"\n{options}'


def test_a_kind_of_ones_own_judges_what_the_suite_measured(project: Project) -> None:
    write_conftest(project, HEAD, "dict(stable_head=stable_head)")
    write_suite(project, own("options = {at_least = 0.75}"), WITNESS)
    found = entries(project, reranker="sound")
    assert found["head"]["verdict"] == "pass"
    assert found["head"]["text"].endswith("n=32: loc must be at least 0.75")
    [said] = found["head"]["details"]["assertions"]
    assert (said["metric"], said["bound"], said["verdict"]) == ("loc", 0.75, "pass")
    assert calls(project) == [6] * 32 * 4
    failed = entries(project, reranker="input_order")["head"]
    assert failed["verdict"] == "fail"
    assert re.match(r"-?0\.\d+ \[.*\] n=32: loc must be at least 0.75$", failed["text"])


def test_it_is_the_line_of_the_item(project: Project) -> None:
    write_conftest(project, HEAD, "dict(stable_head=stable_head)")
    write_suite(project, own())
    result = run(project, reranker="input_order")
    result.stdout.re_match_lines([r"FAILED kinds::head\[input_order-tasks-K6\] - -?0\.\d+ \["])


def test_an_undecided_assertion_leaves_the_item_undecided(project: Project) -> None:
    write_conftest(project, HEAD, "dict(stable_head=stable_head)")
    write_suite(project, own(), head="min_queries = 33")
    result = run(project, "-v", reranker="sound")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["kinds::head* UNDECIDED*"])
    result.stdout.fnmatch_lines(["UNDECIDED head* n=32: loc must*"])
    strict = run(project, "--invari-strict", reranker="sound")
    assert strict.ret == 1
    strict.stdout.fnmatch_lines(
        ["*n=32: loc must be at least 0.8; 32 queries*undecided fails under --invari-strict"]
    )


def test_a_failure_after_an_undecided_assertion_fails(project: Project) -> None:
    functions = """
    def both(study):
        study.assert_at_least("loc", 0.9)
        assert study.interval("loc").estimate > 2, "1.0: not more than 2\\nand more of it"
    """
    write_conftest(project, functions, "dict(both=both)")
    write_suite(project, own(kind="both"), head="min_queries = 33")
    result = run(project, reranker="sound")
    result.stdout.fnmatch_lines(["1.0: not more than 2", "*and more of it"])
    result.stdout.fnmatch_lines(["FAILED kinds::head* - 1.0: not more than 2"])


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("pass", "no figure; nothing measured: kind 'mine' has looked at no figure of the study"),
        ("study.name", "no figure; nothing measured: kind 'mine' has looked at no figure of the study"),
        ("return study.interval('loc').estimate > 2", "no figure; hook pytest_invari_criteria: kind 'mine': it returned False; *"),
        ("1 / 0", "no figure; hook pytest_invari_criteria: kind 'mine': the function raised ZeroDivisionError: *conftest.py*"),
        ("pytest.skip('later')", "no figure; hook pytest_invari_criteria: kind 'mine': the function raised Skipped: later*"),
        ("study.assert_at_least('lok', 1)", "no figure; hook pytest_invari_criteria: kind 'mine': unknown metric 'lok'.*"),
        ("raise AssertionError", "an assertion failed without a message"),
        ("assert 0.5 > len([1]), ''", "assert 0.5 > 1"),
    ],
)  # fmt: skip
def test_what_a_function_must_not_do_fails_in_one_line(project: Project, body: str, text: str) -> None:
    write_conftest(project, f"def mine(study):\n    {body}\n", "dict(mine=mine)")
    write_suite(project, own(kind="mine"))
    result = run(project, reranker="sound")
    assert result.ret == 1
    result.stdout.fnmatch_lines([text])
    assert "Traceback" not in result.stdout.str()


def test_failed_rankings_are_the_assertions_to_judge(project: Project) -> None:
    functions = """
    def mine(study):
        study.assert_at_most("invalid_view_rate", 0.9)

    def theirs(study):
        study.assert_at_least("loc", 0.5)
    """
    write_conftest(project, functions, "dict(mine=mine, theirs=theirs)")
    write_suite(project, own(kind="mine"), own(kind="theirs").replace("head", "other"))
    found = entries(project, reranker="failing")
    assert found["head"]["verdict"] == "pass"
    assert found["other"]["verdict"] == "fail"
    assert "nothing measured: " in found["other"]["text"]


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        (own(kind="stable_heat"), "kinds.invari.toml:11: criterion 'head': unknown kind 'stable_heat'. Did you mean 'stable_head'?*"),
        (own(kind="witnes"), "*:11: criterion 'head': unknown kind 'witnes'. Did you mean 'witness'? Known: metric, needy, stable_head, witness."),
        (own("options = {at_last = 0.8}"), "*:12: criterion 'head': kind 'stable_head': options: unknown option 'at_last'. Did you mean 'at_least'?*"),
        (own("options = {at_least = 'x'}"), "*:12: criterion 'head': kind 'stable_head': options: option 'at_least' must be a number*"),
        (own(kind="needy"), "*: criterion 'head': kind 'needy': options: needs a value for option 'bound'"),
        (own("options = 3"), "*:12: criterion 'head': options must be a table, as in options = {at_least = 0.8}, not 3"),
        (own("at_least = 3"), "*:12: criterion 'head': at_least goes with kind 'metric', not with 'stable_head'"),
        (f"{WITNESS}\nat_least = 0.5", "*:12: criterion 'order': at_least goes with kind 'metric', not with 'witness'"),
        (f"{WITNESS}\nmetric = 'loc'", "*:12: criterion 'order': metric goes with kind 'metric', not with 'witness'"),
        (f"{WITNESS}\noptions = {{}}", "*:12: criterion 'order': options goes with a kind of your own, not with 'witness'"),
        (f"{WITNESS}\nmax_calls = -1", "*:12: criterion 'order': max_calls must be a whole number of at least 0, not -1"),
        ("name = 'loc'\nmetric = 'loc'\nat_least = 0.5\nmax_calls = 3", "*:13: criterion 'loc': max_calls goes with kind 'witness', not with 'metric'"),
    ],
)  # fmt: skip
def test_mistakes_in_a_suite_are_told_before_anything_runs(
    project: Project, criterion: str, message: str
) -> None:
    functions = f"{HEAD.replace('at_least=0.8', 'at_least: float = 0.8')}\ndef needy(study, bound): pass\n"
    write_conftest(project, functions, "dict(stable_head=stable_head, needy=needy)")
    write_suite(project, criterion)
    result = run(project)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert not (project.path / "calls.txt").exists()


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ("{'metric': print}", "hook pytest_invari_criteria: 'metric' is a kind of pytest-invari's own; choose another name"),
        ("{'a b': print}", "hook pytest_invari_criteria: 'a b' is not a possible name of a kind"),
        ("{'a': 3}", "hook pytest_invari_criteria: kind 'a' is 3, not a function check(study, …)"),
        ("{'a': lambda: None}", "hook pytest_invari_criteria: kind 'a': the function must take the study as its first parameter"),
        ("[1]", "hook pytest_invari_criteria returned list; it must return a mapping of names to functions"),
        ("1 / 0", "hook pytest_invari_criteria raised ZeroDivisionError: division by zero (*"),
    ],
)  # fmt: skip
def test_mistakes_of_the_hook_are_told_in_one_line(project: Project, kinds: str, message: str) -> None:
    write_conftest(project, kinds=kinds)
    write_suite(project, WITNESS)
    result = run(project)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}".replace("[", "[[]")])


def test_a_kind_that_two_hooks_name_is_refused(project: Project) -> None:
    write_conftest(
        project,
        f"""
{HEAD}
@pytest.hookimpl(optionalhook=True, specname="pytest_invari_criteria")
def pytest_invari_more(config):
    return dict(stable_head=stable_head)
""",
        "dict(stable_head=stable_head)",
    )
    write_suite(project, own())
    result = run(project)
    result.stderr.fnmatch_lines(
        ["*hook pytest_invari_criteria: 'stable_head' is given by two implementations"]
    )


def test_runs_without_a_suite_do_not_ask_for_kinds(project: Project) -> None:
    write_conftest(project, kinds="1 / 0")
    project.write("test_one.py", "def test_one(): pass")
    assert project.pytest("test_one.py").ret == 0


@pytest.mark.xdist
def test_both_kinds_work_under_xdist(project: Project) -> None:
    write_conftest(project, HEAD, "dict(stable_head=stable_head)")
    write_suite(project, own(), WITNESS)
    here = entries(project, "--reranker=sound")
    spread = entries(project, "--reranker=sound", "-n1")
    assert {name: (each["id"], each["text"], each["details"]) for name, each in here.items()} == {
        name: (each["id"], each["text"], each["details"]) for name, each in spread.items()
    }


def test_a_kind_is_unknown_where_no_hook_names_it(project: Project) -> None:
    write_suite(project, own())
    with pytest.raises(InvariError, match=r"unknown kind 'stable_head'\. Known: metric, witness"):
        read_suite(project.path / "kinds.invari.toml")


def test_the_self_check_leaves_them_out(project: Project) -> None:
    write_conftest(project, HEAD, "dict(stable_head=stable_head)")
    write_suite(project, own(), WITNESS, 'name = "loc"\nmetric = "loc"\nat_least = 0.5')
    ids = project.ids("--invari-selfcheck", "--invari-suite=kinds.invari.toml")
    assert {re.sub(r"\[.*", "", each) for each in ids} == {"selfcheck::kinds.loc"}
