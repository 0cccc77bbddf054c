"""The fixture ``invari`` in ordinary tests."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.testing.conftest import QUIET

if TYPE_CHECKING:
    from tests.testing.conftest import Own

HEAVY = {"numpy", "torch", "transformers", "pandas", "scipy", "pyarrow", "pytest_invari.testing"}


def test_the_same_arguments_are_measured_once_in_the_session(own: Own) -> None:
    result = own.run(
        """
        calls = []

        def counted(context, texts):
            calls.append(texts)
            return longest(context, texts)

        class Ranker:
            def score(self, context, texts):
                return counted(context, texts)

        RANKER = Ranker()

        @pytest.mark.parametrize("again", range(3))
        def test_function(invari, again):
            study = invari.study(counted, "tasks.jsonl", 5)
            study.assert_at_least("loc", 0.8)
            assert len(calls) == 5 * 32

        @pytest.mark.parametrize("again", range(3))
        def test_method(invari, again):
            invari.study(RANKER.score, "tasks.jsonl", 5).assert_at_least("loc", 0.8)
            assert len(calls) == 2 * 5 * 32

        def test_other_views(invari):
            invari.study(counted, "tasks.jsonl", 5, seed=1).assert_at_least("loc", 0.8)
            assert len(calls) == 3 * 5 * 32
        """
    )
    result.assert_outcomes(passed=7)


def test_two_functions_of_one_name_and_the_name_of_a_control_are_kept_apart(own: Own) -> None:
    result = own.run(
        """
        def make(sign):
            def random(context, texts):
                return [sign * place * 1.5 for place, _ in enumerate(texts)]
            return random

        def test_it(invari):
            names = [invari.study(make(sign), "tasks.jsonl", 5).reranker for sign in (1, -1)]
            assert names == ["random_2", "random_3"]
            assert invari.study("random", "tasks.jsonl", 5).reranker == "random"
        """
    )
    result.assert_outcomes(passed=1)


def test_tasks_of_all_kinds_and_what_is_no_list_of_tasks(own: Own) -> None:
    result = own.run(
        """
        from pathlib import Path
        from pytest_invari.data.taskfile import read_tasks

        TASKS = read_tasks("tasks.jsonl")

        @pytest.mark.parametrize("tasks", [Path("tasks.jsonl"), TASKS, list(TASKS.tasks)])
        def test_kinds(invari, tasks):
            invari.study(longest, tasks, 5).assert_at_least("loc", 0.8)

        def test_two_sets_of_one_name(invari):
            head = invari.study(longest, TASKS.head(4), 5)
            assert len(head.measured.query_ids) == 4
            assert len(invari.study(longest, TASKS, 5).measured.query_ids) == 32

        def test_a_set_may_be_called_as_a_data_set_is(invari):
            named = TaskSet.of("movielens_small", TASKS.tasks)
            assert invari.study(longest, named, 5).name.startswith("longest on movielens_small-")

        def test_the_name_of_a_set_that_was_handed_over_names_nothing(invari):
            with pytest.raises(InvariError, match="unknown data set 'tasks'"):
                invari.study(longest, "tasks", 5, k=6)

        def test_a_relative_path_is_looked_up_anew(invari, tmp_path, monkeypatch):
            lines = Path("tasks.jsonl").read_text().splitlines(keepends=True)
            (tmp_path / "tasks.jsonl").write_text("".join(lines[:3]))
            monkeypatch.chdir(tmp_path)
            assert len(invari.study(longest, "tasks.jsonl", 5).measured.query_ids) == 3

        @pytest.mark.parametrize(
            ("tasks", "said"),
            [
                ("missing.jsonl", "there is no such file"),
                ("movielens_small", "say how long its lists shall be"),
                ([1], "not 1"),
                ([], "has no queries"),
                ([Task("a", Context(), (Candidate("i", ""),)), Task("b", Context(), ())], "0 to 1 candid"),
            ],
        )
        def test_mistakes(invari, tasks, said):
            with pytest.raises(InvariError, match=said):
                invari.study(longest, tasks, 5)
        """
    )
    result.assert_outcomes(passed=12)


def test_mistakes_are_told_at_the_line_of_the_test(own: Own) -> None:
    result = own.run(
        """
        def study(invari, **settings):
            return invari.study(longest, "tasks.jsonl", 5, **settings)

        @pytest.mark.parametrize(
            ("mistake", "said"),
            [
                (lambda invari: invari.study("longset", "tasks.jsonl", 5), "unknown reranker 'longset'"),
                (lambda invari: invari.study(longest, "tasks.jsonl", 1), "views must be .* at least 2"),
                (lambda invari: invari.study(longest, "tasks.jsonl", 720), "only 719 orders"),
                (lambda invari: study(invari, queries=0), "queries must be .* at least 1, not 0"),
                (lambda invari: study(invari, seed=0.5), "seed must be a whole number"),
                (lambda invari: study(invari, k=True), "k must be a whole number"),
                (lambda invari: study(invari, ties="haf"), "ties must be one of broken, half, not 'haf'"),
                (lambda invari: study(invari, max_undefined=1), "max_undefined must be from 0 to below 1"),
                (lambda invari: study(invari).assert_at_least("lok", 1), "unknown metric 'lok'"),
                (lambda invari: study(invari).assert_at_least("ndcg@7", 1), "top 7, but the lists have 6"),
                (lambda invari: study(invari).assert_at_least("loc", "1"), "the bound must be a number"),
                (lambda invari: study(invari).assert_better_than(study(invari), "loc", by=-1), "negative"),
                (
                    lambda invari: study(invari).assert_better_than(study(invari, seed=3), "loc"),
                    "differ in view_seed; compare studies that differ in the reranker alone",
                ),
                (lambda invari: study(invari).assert_at_least("loc", 1.9), "loc: at_least = 1.9 cannot be"),
                (lambda invari: study(invari).assert_at_least("loc", -1), "at_least = -1 demands nothing"),
                (lambda invari: study(invari).assert_at_least("loc", -0.5), "-0.5 demands nothing: of"),
                (lambda invari: study(invari).assert_at_most("loc", 1), "at_most = 1 demands nothing"),
                (
                    lambda invari: study(invari).assert_not_worse_than(study(invari), "loc", margin=2),
                    "margin = 2 cannot be meant: loc lies between -1 and 1",
                ),
                (
                    lambda invari: study(invari).assert_better_than(study(invari), "loc", by=2.5),
                    "by = 2.5 cannot be meant: loc lies between -1 and 1",
                ),
                (lambda invari: study(invari).assert_at_least(study(invari), 1), "is text, .*, not <study"),
                (lambda invari: study(invari).interval(None), "name is text, as in 'loc', not None"),
                (lambda invari: study(invari).assert_at_most("loc", None), "must be a number, not None"),
                (lambda invari: study(invari).assert_at_least("loc", 0, strict=1), "strict must be True"),
                (
                    lambda invari: study(invari).assert_better_than("random", "loc"),
                    "^assert_better_than compares with another study, not with 'random'; give it one",
                ),
                (
                    lambda invari: study(invari).assert_not_worse_than(None, "loc", margin=0.1),
                    "^assert_not_worse_than compares with another study, not with None",
                ),
                (lambda invari: study(invari).frame("exposure_deviation@2"), "no value per query"),
            ],
        )
        def test_mistakes(invari, mistake, said):
            with pytest.raises(InvariError, match=said):
                mistake(invari)

        def test_shown(invari):
            study(invari).assert_at_least("lok", 1)
        """
    )
    result.assert_outcomes(passed=26, failed=1)
    result.stdout.re_match_lines([r">       study\(invari\).assert_at_least\(\"lok\", 1\)"])
    assert "pytest_invari/" not in result.stdout.str()


def test_a_bound_that_a_suite_hands_to_a_kind_of_ones_own_is_checked_as_well(own: Own) -> None:
    (own.path / "conftest.py").write_text(
        "def steady(study, at_least):\n"
        "    study.assert_at_least('loc', at_least)\n"
        "def pytest_invari_criteria(config):\n"
        "    return {'steady': steady}\n"
    )
    (own.path / "small.invari.toml").write_text(
        '[suite]\nname = "small"\n[profile.quick]\ndatasets = ["tasks.jsonl"]\nk = 6\nviews = 5\n'
        '[[criterion]]\nname = "calm"\nkind = "steady"\noptions = {at_least = 1.9}\n'
    )
    result = own.pytester.runpytest_inprocess(*QUIET, "small.invari.toml", "--reranker=constant")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["no figure; *kind 'steady': loc: at_least = 1.9 cannot be meant: loc lies between -1 and 1"]
    )


def test_a_study_says_what_it_is_and_measures_nothing_for_it(own: Own) -> None:
    own.run(
        """
        def test_it(invari):
            study = invari.study(lambda context, texts: 1 / 0, "tasks.jsonl", 5)
            said = "<study of lambda on tasks, 5 views of lists of 6; see interval(metric) and frame()>"
            assert repr(study) == said
        """
    ).assert_outcomes(passed=1)


UNUSED = """
    @pytest.fixture(scope="module")
    def shared(invari):
        return invari.study("constant", "tasks.jsonl", 5)

    def test_first(shared):
        pass

    def test_forgetful(invari):
        invari.study(front, "tasks.jsonl", 5)

    def test_second(shared):
        shared.assert_at_least("loc", 0.8)

    def test_compared(invari):
        other = invari.study(longest, "tasks.jsonl", 5)
        invari.study("constant", "tasks.jsonl", 5).assert_not_worse_than(other, "loc", margin=0.2)

    def test_asked(invari):
        assert invari.study(longest, "tasks.jsonl", 5).interval("loc").estimate > 0.8

    @pytest.mark.xfail(strict=True)
    def test_ended(invari):
        invari.study(front, "tasks.jsonl", 5)
        assert False
"""


@pytest.mark.parametrize("workers", [(), pytest.param(("-n2", "--dist=loadfile"), marks=pytest.mark.xdist)])
def test_a_study_that_nothing_is_asked_of_is_told(own: Own, workers: tuple[str, ...]) -> None:
    result = own.run(UNUSED, *workers)
    result.assert_outcomes(passed=5, xfailed=1, warnings=1)
    result.stdout.fnmatch_lines(
        [
            "test_mine.py::test_forgetful",
            "*test_mine.py:*: InvariUnusedWarning: the study of front on tasks, 5 views of lists of 6 was "
            "made, and nothing was asserted of it or asked of it",
        ]
    )


def test_a_bad_default_is_told_in_one_line(own: Own) -> None:
    result = own.run("def test_it(invari): pass", "-o", "invari_k=none")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["E * ini key invari_k: *"])


def test_the_assertion_of_invariance_shows_the_line_of_the_test_and_the_witness(own: Own) -> None:
    result = own.run(
        """
        TASK = Task("q", Context(), tuple(Candidate(text, text) for text in ("a", "bb", "ccc")))

        def test_witness():
            assert_permutation_invariant(front, [TASK])

        def test_mistake():
            assert_permutation_invariant("frnt", [TASK])

        def test_failed():
            assert_permutation_invariant(lambda context, texts: 1 / 0, [TASK])
        """
    )
    result.assert_outcomes(failed=3)
    result.stdout.re_match_lines(
        [
            r">       assert_permutation_invariant\(front, \[TASK\]\)",
            r"E +OrderDependentError: query 'q': 2 candidates in two orders that differ at 2 positions",
            r"E +\['bb', 'ccc'\] is ranked \['bb', 'ccc'\]",
            r">       assert_permutation_invariant\(\"frnt\", \[TASK\]\)",
            r">       assert_permutation_invariant\(lambda context",
            r"E +AssertionError: no ranking of query 'q' in order \['a', .*ZeroDivisionError: .* by zero",
        ]
    )
    assert "pytest_invari/" not in result.stdout.str()


def test_the_assertion_of_invariance_takes_a_path_too(own: Own) -> None:
    own.run(
        """
        from pathlib import Path

        @pytest.mark.parametrize("tasks", ["tasks.jsonl", Path("tasks.jsonl")])
        def test_it(invari, tasks):
            invari.assert_permutation_invariant(longest, tasks, queries=9)
            with pytest.raises(OrderDependentError):
                invari.assert_permutation_invariant(front, tasks, k=4)

        def test_no_such_path(invari):
            with pytest.raises(InvariError, match="there is no such file"):
                invari.assert_permutation_invariant(longest, "task.jsonl")
        """
    ).assert_outcomes(passed=3)


def test_a_frame_has_a_row_a_query_and_a_column_a_metric(own: Own) -> None:
    result = own.run(
        """
        def test_it(invari):
            study = invari.study(front, "tasks.jsonl", 5)
            frame = study.frame("loc", "ndcg@2")
            assert list(frame.columns) == ["loc", "ndcg@2"]
            assert list(frame.index) == [f"q{number}" for number in range(32)]
            assert frame["loc"].mean() == pytest.approx(study.interval("loc").estimate)
            assert {"ppi", "loc", "ndcg@5"} <= set(study.frame().columns)

        def test_without_pandas(invari, monkeypatch):
            import sys

            monkeypatch.setitem(sys.modules, "pandas", None)
            with pytest.raises(InvariError, match="needs pandas: pip install 'pytest-invari.analysis.'"):
                invari.study(front, "tasks.jsonl", 5).frame()
        """
    )
    result.assert_outcomes(passed=2)


def test_a_fixture_of_a_module_may_hold_a_study_and_conftests_name_rerankers(own: Own) -> None:
    (own.path / "conftest.py").write_text(
        "def pytest_invari_rerankers(config):\n"
        "    return {'shortest': lambda context, texts: [-float(len(text)) for text in texts]}\n"
    )
    result = own.run(
        """
        @pytest.fixture(scope="module")
        def study(invari):
            made = invari.study("shortest", "tasks.jsonl", 5)
            made.assert_at_least("loc", 0.8)
            return made

        def test_one(study):
            study.assert_at_least("loc", 0.5)

        def test_other(study):
            study.assert_at_most("ppi", 0.2)
        """,
        "-rP",
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "*Captured invari setup*",
            "pass: shortest on tasks,*: loc must be at least 0.8",
            "*Captured invari call*",
            "pass: shortest on tasks,*: loc must be at least 0.5",
            "*Captured invari call*",
            "pass: shortest on tasks,*: ppi must be at most 0.2",
        ]
    )


@pytest.mark.xdist
def test_it_works_in_the_workers_of_xdist(own: Own) -> None:
    result = own.run(
        """
        def test_it(invari):
            invari.study(front, tasks="tasks.jsonl", views=5).assert_at_least("loc", 0.8)

        def test_other(invari):
            invari.study(longest, tasks="tasks.jsonl", views=5).assert_at_least("loc", 0.8)
        """,
        "-n2",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.re_match_lines([r"FAILED test_mine.py::test_it - -?0\.\d+ \[.*n=32: loc must be at least"])


def test_it_costs_nothing_where_it_is_not_used(own: Own) -> None:
    (own.path / "conftest.py").write_text(
        "import sys\ndef pytest_unconfigure():\n    print('loaded:', *sys.modules)\n"
    )
    (own.path / "test_other.py").write_text("def test_it(): pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_other.py"],
        cwd=own.path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    [line] = [line for line in done.stdout.splitlines() if line.startswith("loaded:")]
    assert "pytest_invari.plugin" in line.split()
    assert not HEAVY & set(line.split())


def test_strategies_draw_at_once_in_a_new_folder(own: Own) -> None:
    (own.path / "test_drawn.py").write_text(
        "import time\n"
        "from hypothesis import HealthCheck, given, settings\n"
        "from pytest_invari.testing import strategies\n"
        "MADE = strategies.tasks()\n"
        "STARTED = time.process_time()\n"
        "@settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck))\n"
        "@given(MADE)\n"
        "def test_it(tasks):\n"
        "    assert time.process_time() - STARTED < 0.8\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *QUIET[2:], "test_drawn.py"],
        cwd=own.path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
