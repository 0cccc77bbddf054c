"""The section invari: tables that fit, one entry a criterion, and nothing that a terminal would obey."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import pytest

from pytest_invari import progress
from pytest_invari.reports.subjects import Summary
from pytest_invari.reports.terminal import format_tables
from pytest_invari.text import figure, number, printable
from tests.reports.summaries import summary

if TYPE_CHECKING:
    from tests.session.conftest import Project


def section(result: pytest.RunResult) -> list[str]:
    lines = result.outlines
    start = next(index for index, line in enumerate(lines) if "= invari =" in line)
    stop = next(index for index, line in enumerate(lines) if index > start and line.startswith("=="))
    return lines[start + 1 : stop]


THREE = ("--reranker=biased:beta=0.5,noise=0.1", "--reranker=constant", "--reranker=mine_flaky:rank")
FLAKY = """
def rank(context, texts):
    if texts[0].endswith("0"):
        raise RuntimeError("busy")
    return [float(text.split()[-1]) for text in texts]
"""


# The dashed lines are those of the tables, each of which holds as many subjects as fit beside each other.
@pytest.mark.parametrize(("columns", "tables"), [(40, 4), (60, 4), (80, 2), (120, 2), (132, 1), (200, 1)])
def test_every_line_fits_the_terminal(
    project: Project, monkeypatch: pytest.MonkeyPatch, columns: int, tables: int
) -> None:
    project.write("mine_flaky.py", FLAKY)
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = section(project.run(*THREE, reranker=None))
    assert max(map(len, lines)) <= columns
    assert len([line for line in lines if line.startswith("---")]) == tables
    # No interval is torn, wherever it stands.
    assert not any(re.search(r"\[-?\d[^]]*$", line) for line in lines)


@pytest.mark.xdist
def test_the_section_fits_where_workers_ran(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, section(project.run("-n1")))) <= 60


def test_the_table_has_the_papers_metrics_and_the_cost(project: Project) -> None:
    rows = [line.split("  ")[0] for line in section(project.run())]
    wanted = ["PPI", "PPI null", "bucket agreement", "GPI", "GPI bound", "LOC"]
    wanted += ["exposure dev.@5", "HR@5", "nDCG@5"]
    wanted += ["calls", "depth", "tokens in", "tokens cached", "tokens out", "seconds"]
    start = rows.index("PPI")
    assert rows[start : start + len(wanted)] == wanted


def test_cells_are_estimate_interval_and_n(project: Project) -> None:
    result = project.run()
    result.stdout.fnmatch_lines(["LOC *1.000 [[]0.864, 1.000[]] n=32 * 0.*[[]-0.*, 0.*[]] n=32"])


def test_each_criterion_has_a_verdict_its_figure_and_its_bound(project: Project) -> None:
    result = project.run(reranker="input_order")
    result.stdout.re_match_lines(
        [
            r"FAIL      loc\[input_order-tasks-K6\]  .*",
            r"          .*at least 0\.75",
            r"          why: users notice when a page is reordered",
            r"FAIL      gpi\[.*",
            r"PASS      calls\[.*",
            r"criteria: 1 passed, 2 failed, 1 undecided",
            r"measured: 2 subjects, 320 rankings, 320 calls, \d+\.\d s of reranking",
        ]
    )


def test_why_is_told_only_of_failures(project: Project) -> None:
    assert "why:" not in project.run().stdout.str()


def test_nothing_is_shown_when_nothing_was_judged(project: Project) -> None:
    project.run("--collect-only").stdout.no_fnmatch_line("*= invari =*")


def test_untrusted_text_is_made_harmless_everywhere(project: Project) -> None:
    path = project.path / "small.invari.toml"
    path.write_text(path.read_text().replace("users notice", "\\u001b[2Jusers \\u202e notice\\r\\n"))
    project.write(
        "mine_evil.py", "def rank(context, texts):\n    raise RuntimeError('\\x1b]0;owned\\x07\\u202e')\n"
    )
    for reranker in ("mine_evil:rank", "input_order"):
        text = project.run(reranker=reranker).stdout.str()
        assert not any(character in text for character in "\x1b\x07\u202e\r")
    project.run(reranker="mine_evil:rank").stdout.fnmatch_lines(["*x1b]0;owned*"])
    project.run(reranker="input_order").stdout.fnmatch_lines(["*x1b[[]2Jusers*"])


def test_failed_views_are_counted_beside_the_figures(project: Project) -> None:
    project.write("mine_flaky.py", FLAKY)
    result = project.run(reranker="mine_flaky:rank")
    [row] = [line for line in section(result) if line.startswith("failed views")]
    count = int(row.removeprefix("failed views").split()[0])
    assert row.split()[2:] == [str(count), "of", "160"]
    result.stdout.fnmatch_lines(
        [f"no figure: loc must be at least 0.75; {count} of 160 rankings failed, the *"]
    )
    # A failure that costs nothing is no ranking of 0 calls.
    result.stdout.fnmatch_lines(["calls  *1 [[]1, 1[]] n=*"])
    assert 0 < count < 160


def test_nothing_is_said_of_failed_views_where_none_failed(project: Project) -> None:
    assert "failed views" not in project.run().stdout.str()


def test_a_cost_that_is_not_reported_is_a_dash(project: Project) -> None:
    project.write(
        "mine_costs.py",
        """
        from pytest_invari.protocol import Cost, Ranking

        class Silent:
            def rank(self, request):
                return Ranking.from_order(request, sorted(request.ids), cost=Cost())

        class Telling:
            def rank(self, request):
                return Ranking.from_order(request, sorted(request.ids), cost=Cost(2, 1, 1200, 0, 3, 0.25))
        """,
    )
    result = project.run(
        "--reranker=mine_costs:Silent", "--reranker=mine_costs:Telling", "-k", "gpi", reranker=None
    )
    rows = {line[:13].strip(): re.split(r"\s{2,}", line)[1:] for line in section(result)}
    told = "1,200 [1,200, 1,200] n=32"
    assert {name: rows[name] for name in ("calls", "depth", "tokens in", "tokens cached", "tokens out")} == {
        "calls": ["-", "2 [2, 2] n=32"],
        "depth": ["-", "1 [1, 1] n=32"],
        "tokens in": ["-", told],
        "tokens cached": ["-", "0 [0, 0] n=32"],
        "tokens out": ["-", "3 [3, 3] n=32"],
    }
    assert re.fullmatch(r"\de-0\d \[\de-0\d, \de-0\d\] n=32", rows["seconds"][0])
    result.stdout.fnmatch_lines(
        [
            "measured: 2 subjects, 320 rankings, 320 calls, 192,000 tokens in (0 of them*",
            "*480 out, 40.0 s of*",
        ]
    )


def test_a_short_run_leaves_pytests_line_of_dots_whole(project: Project) -> None:
    lines = project.run("--reranker=constant").outlines
    assert [line for line in lines if line.startswith("small")] == [f"{'small ........':<73}[100%]"]
    start = next(index for index, line in enumerate(lines) if "= invari =" in line)
    assert lines[start + 1].startswith("tasks: lists of 6")


def test_a_long_run_without_a_terminal_tells_how_far_it_is(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SPARSE_SECONDS", 0.1)
    project.write(
        "mine_slow.py",
        """
        import time

        def rank(context, texts):
            time.sleep(0.01)
            return [float(len(text)) for text in texts]
        """,
    )
    result = project.run("-k", "gpi", reranker="mine_slow:rank")
    told = [line for line in result.errlines if line.startswith("mine_slow:rank on tasks, K=6: ")]
    assert len(told) > 3
    for line in told:
        assert re.search(r" \d+/160 \[\d\d:\d\d<\d\d:\d\d, +\d+\.\d+ call/s\]$", line), line
    lines = [line for line in result.outlines if line.startswith("small")]
    assert [line.strip() for line in lines] == ["small", f"{'small .':<73}[100%]"]


NOISY = """
import os, sys, time

def rank(context, texts):
    time.sleep(0.008)
    print("said on stdout")
    print("said on stderr", file=sys.stderr)
    os.write(1, b"written on descriptor 1\\n")
    return [float(len(text)) for text in texts]
"""
SAID = ("said on stdout", "said on stderr", "written on descriptor 1")


def test_what_a_reranker_prints_is_captured_and_progress_is_shown(project: Project) -> None:
    project.write("mine_noisy.py", NOISY)
    run = ("--invari-suite=small.invari.toml", "--reranker=mine_noisy:rank", "-k", "calls")
    result = project.pytester.runpytest_subprocess(*run)
    result.assert_outcomes(passed=1)
    assert not any(said in result.stdout.str() + result.stderr.str() for said in SAID)
    [told] = [line for line in result.errlines if line.strip()]
    assert re.match(r"mine_noisy:rank on tasks, K=6: 100%.* 160/160 ", told)
    assert [line.strip() for line in result.outlines if line.startswith("small")] == [
        "small", f"{'small .':<73}[100%]"
    ]  # fmt: skip


@pytest.mark.parametrize("item", ["calls and not base", "calls and base"])
def test_judging_is_shown_as_well(project: Project, item: str, monkeypatch: pytest.MonkeyPatch) -> None:
    project.run("--invari-save=base.json")
    monkeypatch.setattr(progress, "NOTABLE_SECONDS", 0.0)
    result = project.run("--invari-compare=base.json", "-k", item)
    told = [line for line in result.errlines if line.startswith("judging ")]
    assert len(told) == 1
    assert re.match(r"judging first_stage on tasks, K=6: 100%.* (\d+)/\1 \[.* figure/s\]$", told[0])


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)], ids=["alone", "workers"]
)
def test_what_a_reranker_prints_stands_in_the_report_of_the_item_that_measured(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.write("mine_noisy.py", NOISY.replace("0.008", "0"))
    project.write_suite("open", calls="at_most = 0.5")
    run = ("--invari-suite=open.invari.toml", "--reranker=mine_noisy:rank", *workers)
    text = project.pytest(*run).stdout.str()
    for stream, said in (("stdout", SAID[0]), ("stdout", SAID[2]), ("stderr", SAID[1])):
        told = text.partition(f"- Captured {stream} call -")[2].partition("\n----")[0]
        assert told.count(said) == 160


def test_without_capture_a_reranker_prints_as_it_goes(project: Project) -> None:
    project.write("mine_noisy.py", NOISY.replace("0.008", "0"))
    result = project.run("-s", "-k", "gpi", reranker="mine_noisy:rank")
    assert result.outlines.count("said on stdout") >= 159
    assert result.errlines.count("said on stderr") == 160


@pytest.mark.parametrize("columns", [40, 80])
def test_what_is_undefined_has_its_reason_below_the_table(
    project: Project, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    tasks = project.path / "tasks.jsonl"
    tasks.write_text(tasks.read_text().replace('"relevance": 1.0', '"relevance": null'))
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = section(project.run("--reranker=constant", "-k", "gpi"))
    assert max(map(len, lines)) <= columns
    assert "undefined (no_relevant_candidate): HR@5, nDCG@5" in " ".join(line.strip() for line in lines)


def test_a_reason_that_not_all_subjects_share_says_whose_it_is() -> None:
    nothing = {"estimate": math.nan, "low": math.nan, "high": math.nan, "n": 0, "reason": "failed_views"}
    gone = subject("gone", metrics={"loc": nothing, "bucket_agreement_gap": nothing}, position_p_value=None)
    both = {"loc": VALUE, "bucket_agreement_gap": VALUE}
    (table,) = format_tables([gone, subject("there", metrics=both)], 80)
    assert table[-1] == "undefined (failed_views): LOC, bucket agreement, position p; of gone"
    (table,) = format_tables([gone], 80)
    assert table[-1] == "undefined (failed_views): LOC, bucket agreement, position p"


VALUE = {"estimate": 0.5, "low": 0.4, "high": 0.6, "n": 30, "reason": None}


def subject(reranker: str = "r", **changed: Any) -> Summary:
    size = {"views": 6, "rankings": 180, "metrics": {"loc": VALUE}, "position_p_value": 0.5}
    return summary(reranker=reranker, **(size | changed))


LONG = "shop.search.rerankers:make_reranker:temperature=0,window=20,base=zero_shot"


def test_names_longer_than_their_column_are_broken_before_their_options() -> None:
    (table,) = format_tables([subject(LONG)], 40)
    assert max(map(len, table)) <= 40
    rule = next(index for index, line in enumerate(table) if line.startswith("---"))
    lines = [line.strip() for line in table[:rule] if line.startswith(" ")]
    assert "".join(lines) == LONG
    assert len(lines) > 1
    assert all(line.endswith((":", ",")) for line in lines[:-1])


def test_names_are_whole_where_there_is_room() -> None:
    names = ["my_rerankers:shortest_first", "first_stage", LONG]
    (table,) = format_tables([subject(name) for name in names], 150)
    assert re.split(r"\s{2,}", table[1].strip()) == names
    # What room there is goes to the first; the last name is broken.
    (table,) = format_tables([subject(name) for name in names], 95)
    assert re.split(r"\s{2,}", table[1].strip())[:2] == names[:2]
    assert max(map(len, table)) <= 95


@pytest.mark.parametrize("width", range(40, 140, 7))
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_no_letter_of_a_name_is_lost(width: int, count: int) -> None:
    names = [f"{number}{LONG}" for number in range(count)]
    tables = format_tables([subject(name) for name in names], width)
    assert max(len(line) for table in tables for line in table) <= width
    found = []
    for table in tables:
        rule = next(line for line in table if line.startswith("---"))
        heading = [line for line in table[: table.index(rule)] if line.startswith(" ")]
        for column in list(re.finditer("-+", rule))[1:]:
            found.append("".join(line[column.start() : column.end()].strip() for line in heading))
    assert found == names


def test_subjects_on_different_data_have_tables_of_their_own() -> None:
    subjects = [subject(dataset=dataset, k=k) for dataset in ("a", "b") for k in (10, 25)]
    assert [table[0].split(",")[0] for table in format_tables(subjects, 80)] == [
        "a: lists of 10", "a: lists of 25", "b: lists of 10", "b: lists of 25"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.81234, "0.8123"),
        (-0.00001, "0.0000"),
        (-0.00006, "-0.0001"),
        (12.345, "12.3"),
        (1234.5, "1,234"),
        (float("nan"), "undefined"),
    ],
)
def test_numbers_have_a_readable_precision(value: float, shown: str) -> None:
    assert number(value) == shown


def test_counts_are_whole_when_they_are() -> None:
    assert figure(10.0, 10.0, 10.0, 30, counted=True) == "10 [10, 10] n=30"
    assert figure(9.5, 9.0, 10.0, 30, 3, counted=True) == "9.500 [9, 10] n=30"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (3.4e-5, "3e-05"), (0.00096, "1e-03"), (0.0012, "0.001"), (0.25, "0.250")],
)
def test_a_cost_that_is_not_0_is_not_shown_as_0(value: float, shown: str) -> None:
    assert number(value, 3, counted=True) == shown


def test_printable_keeps_text_and_escapes_the_rest() -> None:
    assert printable("Amélie, 千と千尋") == "Amélie, 千と千尋"
    assert printable("a\x1b[31m\n\u202eb\udcff") == "a\\x1b[31m\\n\\u202eb\\udcff"
