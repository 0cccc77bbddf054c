"""Pass, fail and undecided as pytest shows them, and the options that depend on what failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project


def test_a_failure_is_one_line_that_begins_with_the_figure(project: Project) -> None:
    result = project.run("-k", "gpi", reranker="input_order")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*= FAILURES =*",
            "*_ gpi?input_order-tasks-K6? _*",
            "0.3* [[]0.3*, 0.*[]] n=32: gpi must be at most 0.2",
            "*= invari =*",
        ],
        consecutive=True,
    )
    result.stdout.fnmatch_lines(["FAILED small::gpi?input_order-tasks-K6? - 0.3* [[]0.3*"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*Captured*")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_undecided_is_an_outcome_of_its_own(project: Project) -> None:
    project.write_suite("open", loc="at_least = 0.001")
    result = project.pytest("open.invari.toml", "--reranker=random")
    result.stdout.fnmatch_lines(["open u *", "*= 1 undecided in *"])
    assert result.ret == 0


def test_undecided_has_a_word_in_verbose_output(project: Project) -> None:
    project.write_suite("open", loc="at_least = 0.001")
    project.pytest("open.invari.toml", "--reranker=random", "-v").stdout.fnmatch_lines(
        ["open::loc?random-tasks-K6? UNDECIDED*"]
    )


def test_an_undecided_line_says_how_many_queries_would_decide(project: Project) -> None:
    project.write_suite("open", loc="at_least = 0.001")
    project.pytest("open.invari.toml", "--reranker=random").stdout.re_match_lines(
        [r"UNDECIDED loc\[random-tasks-K6\] .* n=32:.*", r".*about [\d,]+ queries.*"]
    )


@pytest.mark.parametrize("option", ["-x", "--maxfail=1"])
def test_stopping_at_the_first_failure(project: Project, option: str) -> None:
    result = project.run(option, reranker="random")
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*gpi?random*")


def test_lf_runs_what_failed_again(project: Project) -> None:
    project.run(reranker="random").assert_outcomes(passed=1, failed=2)
    result = project.run("--lf", reranker="random")
    result.assert_outcomes(failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_lf_sees_that_a_failure_is_fixed(project: Project) -> None:
    project.write("mine.py", "def rank(context, texts):\n    return [float(i) for i in range(len(texts))]\n")
    project.run("-k", "gpi", reranker="mine:rank").assert_outcomes(failed=1)
    project.write("mine.py", "def rank(context, texts):\n    return [float(hash(t) % 97) for t in texts]\n")
    result = project.pytester.runpytest_subprocess(
        "--invari-suite=small.invari.toml", "--reranker=mine:rank", "--lf"
    )
    result.assert_outcomes(passed=1)
    assert len(project.ids("--invari-suite=small.invari.toml", "--reranker=mine:rank", "--lf")) == 4


def test_lf_among_ordinary_tests(project: Project) -> None:
    project.write("test_mine.py", "def test_good(): pass\ndef test_bad(): assert 0")
    project.run("test_mine.py", reranker="random").assert_outcomes(passed=2, failed=3)
    project.run("test_mine.py", "--lf", reranker="random").assert_outcomes(failed=3)


@pytest.mark.parametrize("option", ["--ff", "--nf", "--sw"])
def test_the_other_cache_options_keep_the_verdicts(project: Project, option: str) -> None:
    project.run(reranker="random")
    assert project.run(option, reranker="random").ret != 0


def test_nothing_measured_fails(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        import pytest

        @pytest.hookimpl(optionalhook=True)
        def pytest_invari_rerankers(config):
            def broken(context, texts):
                raise RuntimeError("no answer")
            return {"broken": broken}
        """,
    )
    result = project.run("-k", "loc and not baseline", reranker="broken")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["no figure: loc must be at least 0.75; *"])


def test_fewer_queries_than_a_verdict_needs_leave_it_undecided(project: Project) -> None:
    result = project.run("--invari-queries=7", "-k", "gpi")
    result.stdout.fnmatch_lines(["*= 3 deselected, 1 undecided in *"])
    result.stdout.fnmatch_lines(["UNDECIDED gpi*", "*7 queries have a value, fewer than the 30*"])
    assert result.ret == 0


def test_pdb_is_entered_for_failures_only(project: Project) -> None:
    project.write_suite("open", loc="at_least = 0.001")
    assert project.pytest("open.invari.toml", "--reranker=random", "--pdb").ret == 0


def test_a_metric_without_any_value_says_why(project: Project) -> None:
    project.write_suite("short", bucket_agreement_gap="at_most = 0.2")
    result = project.pytest("short.invari.toml", "--reranker=first_stage", "--invari-k=3", "-q")
    text = " ".join(result.stdout.str().split())
    assert (
        "nothing measured: none of 32 queries has a value: no_views_in_one_cell (no two views show two items "
        "in the same two buckets, as in lists of 2 or 3: use longer lists, or more views)"
    ) in text
