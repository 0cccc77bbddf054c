"""Kinds of criteria that a conftest's hook names: what they judge, and what is refused."""

# ruff: noqa: E501  # a table reads better with a case a line

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.suitefile.reader import read_suite
from tests.criteria.kinds import HEAD, MOSTLY, WITNESS, calls, entries, own, run, write_conftest, write_suite

if TYPE_CHECKING:
    from tests.session.conftest import Project


def test_a_kind_of_ones_own_is_judged_by_a_replay(project: Project) -> None:
    write_conftest(project, HEAD, "dict(stable_head=stable_head)")
    write_suite(project, own())
    ranked = entries(project, "--invari-records=records")["head"]
    (project.path / "calls.txt").unlink()
    assert entries(project, "--invari-records=records", "--invari-replay")["head"] == ranked
    assert not (project.path / "calls.txt").exists()


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
        ("pytest.xfail('known bug')", "no figure; hook pytest_invari_criteria: kind 'mine': the function raised XFailed: known bug*conftest.py*"),
        ("study.assert_at_least('loc', 0.5); pytest.fail('not ok')", "not ok"),
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
