"""What an assertion of a study says: it passes, fails in one line, or is undecided and warns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from tests.testing.conftest import Own


def test_an_invariant_reranker_passes(own: Own) -> None:
    result = own.run(
        """
        def test_it(invari):
            study = invari.study(longest, tasks="tasks.jsonl", views=5)
            study.assert_at_least("loc", 0.8)
            study.assert_at_most("gpi", 0.2)
            constant = invari.study("constant", tasks="tasks.jsonl", views=5)
            study.assert_not_worse_than(constant, "loc", margin=0.2)
            study.assert_better_than(invari.study(front, tasks="tasks.jsonl", views=5), "loc", by=0.1)
        """
    )
    result.assert_outcomes(passed=1, warnings=0)


def test_a_failure_is_one_line_that_begins_with_the_figure_at_the_line_of_the_test(own: Own) -> None:
    result = own.run(
        """
        def test_it(invari):
            study = invari.study(front, tasks="tasks.jsonl", views=5)
            study.assert_at_least("loc", 0.8)
        """,
        "--junitxml=junit.xml",
    )
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r'>       study.assert_at_least\("loc", 0.8\)',
            r"E       -?0\.\d+ \[.*\] n=32: loc must be at least 0.8$",
            r"test_mine.py:\d+: CriterionNotMetError",
            r"-+ Captured invari call -+",
            r"fail: front on tasks, 5 views of lists of 6: .* n=32: loc must be at least 0.8",
            r"FAILED test_mine.py::test_it - -?0\.\d+ \[.*\] n=32: loc must be at least 0.8",
        ]
    )
    assert "pytest_invari/" not in result.stdout.str()
    [case] = ElementTree.parse(own.path / "junit.xml").iter("testcase")
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("message", "").endswith("n=32: loc must be at least 0.8")
    [kept] = [each.get("value", "") for each in case.iter("property") if each.get("name") == "invari"]
    values = json.loads(kept)
    assert values["metric"] == "loc"
    assert values["verdict"] == "fail"
    assert values["low"] <= values["estimate"] <= values["high"] < 0.8


def test_a_comparison_that_fails_names_the_other_reranker(own: Own) -> None:
    result = own.run(
        """
        def test_it(invari):
            study = invari.study(front, "tasks.jsonl", 5)
            study.assert_not_worse_than(invari.study(longest, "tasks.jsonl", 5), "loc", margin=0.02)
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"E +-\d\.\d+ \[.*\] n=32: loc minus longest's must be at least -0.02"])


UNDECIDED = """
    def test_it(invari):
        study = invari.study(front, "tasks.jsonl", 5{settings})
        study.assert_at_least("loc", study.interval("loc").estimate{strict})
"""


def test_undecided_passes_with_a_warning_at_the_line_of_the_test(own: Own) -> None:
    result = own.run(UNDECIDED.format(settings="", strict=""))
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.re_match_lines(
        [r".*test_mine.py:\d+: InvariUndecidedWarning: -?0\.\d+ \[.*\] n=32: loc must"]
    )


def test_queries_without_a_relevant_candidate_do_not_count_as_undefined(own: Own) -> None:
    own.run(
        """
        from dataclasses import replace

        def test_ranks(invari):
            tasks = invari.study(longest, tasks="tasks.jsonl", views=5).measured.tasks.tasks
            without = [replace(each, query_id=f"{each.query_id} none", relevance={}) for each in tasks[:8]]
            lists = [*tasks, *without]
            study = invari.study(longest, tasks=lists, views=5)
            assert study.interval("hr@5").undefined == 8
            study.assert_at_least("hr@5", 0.01, strict=True)
            study.assert_not_worse_than(invari.study("constant", tasks=lists, views=5), "hr@5", margin=0.9)
        """
    ).assert_outcomes(passed=1, warnings=0)


def test_undecided_fails_where_it_is_strict(own: Own) -> None:
    for settings, strict, options in (
        ("", ", strict=True", ()),
        (", strict=True", "", ()),
        ("", "", ("--invari-strict",)),
        ("", "", ("-o", "invari_strict=true")),
    ):
        result = own.run(UNDECIDED.format(settings=settings, strict=strict), *options)
        result.assert_outcomes(failed=1)
        result.stdout.re_match_lines([r"E .*undecided fails where it is strict"])


def test_few_queries_leave_it_undecided_unless_the_study_says_otherwise(own: Own) -> None:
    result = own.run(
        """
        def test_few(invari):
            with pytest.warns(InvariUndecidedWarning, match="8 queries have a value, fewer than the 30"):
                invari.study(longest, "tasks.jsonl", 5, queries=8).assert_at_least("loc", 0.8)

        def test_one_has_no_interval(invari):
            with pytest.warns(InvariUndecidedWarning, match="1.0000 n=1: loc must be"):
                invari.study(longest, "tasks.jsonl", 5, queries=1, min_queries=1).assert_at_least("loc", 0.5)

        def test_enough(invari):
            invari.study(longest, "tasks.jsonl", 5, queries=8, min_queries=8).assert_at_least("loc", 0.3)
        """
    )
    result.assert_outcomes(passed=3, warnings=0)


def test_nothing_measured_fails(own: Own) -> None:
    result = own.run(
        """
        def broken(context, texts):
            raise ValueError("no such index")

        def test_it(invari):
            invari.study(broken, "tasks.jsonl", 5).assert_at_least("loc", 0.1)

        def test_tolerant(invari):
            invari.study(broken, "tasks.jsonl", 5, on_failure="drop").assert_at_least("loc", 0.1)
        """
    )
    result.assert_outcomes(failed=2)
    result.stdout.re_match_lines(
        [
            r"E +no figure: loc must be at least 0.1; nothing measured: 160 of 160 rankings of broken "
            r"failed, the first for query 'q0', .*no such index",
            r"E +no figure: loc must be at least 0.1; nothing measured: none of 32 queries has a value",
        ]
    )
