"""The section invari: tables that fit, one entry a criterion, and nothing that a terminal would obey."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_invari.reports.terminal import format_tables
from pytest_invari.reports.text import figure, number, printable

if TYPE_CHECKING:
    from tests.plugin.conftest import Project


def section(result: pytest.RunResult) -> list[str]:
    lines = result.outlines
    start = next(index for index, line in enumerate(lines) if "= invari =" in line)
    stop = next(index for index, line in enumerate(lines) if index > start and line.startswith("=="))
    return lines[start + 1 : stop]


@pytest.mark.parametrize("columns", [60, 80, 132])
@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_every_line_fits_the_terminal(
    project: Project, monkeypatch: pytest.MonkeyPatch, columns: int, workers: tuple[str, ...]
) -> None:
    if workers:
        pytest.importorskip("xdist")
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = section(project.run("--reranker=biased:beta=0.5,noise=0.1", *workers))
    assert max(map(len, lines)) <= columns
    tables = [line for line in lines if line.startswith("---")]
    assert len(tables) == {60: 3, 80: 2, 132: 1}[columns]


def test_the_table_has_the_papers_metrics_and_the_cost(project: Project) -> None:
    rows = [line.split("  ")[0] for line in section(project.run())]
    wanted = ["PPI", "GPI", "LOC", "exposure dev.@5", "HR@5", "nDCG@5"]
    wanted += ["calls", "depth", "tokens in", "tokens cached", "tokens out", "seconds"]
    start = rows.index("PPI")
    assert rows[start : start + len(wanted)] == wanted


def test_cells_are_estimate_interval_and_n(project: Project) -> None:
    result = project.run()
    result.stdout.fnmatch_lines(["LOC *1.000 [[]0.782, 1.000[]] n=32 * 0.*[[]-0.*, 0.*[]] n=32"])


def test_each_criterion_has_a_verdict_its_figure_and_its_bound(project: Project) -> None:
    result = project.run(reranker="input_order")
    result.stdout.re_match_lines(
        [
            r"FAIL      loc\[input_order-tasks-K6\]  .*",
            r"          .*at least 0\.75",
            r"          why: users notice when a page is reordered",
            r"FAIL      gpi\[.*",
            r"PASS      calls\[.*",
            r"criteria: 1 passed, 3 failed, 0 undecided",
            r"measured: 2 subjects, 320 rankings, 320 calls, .*",
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


def test_labels_longer_than_their_column_are_wrapped() -> None:
    value = {"estimate": 0.5, "low": 0.4, "high": 0.6, "n": 30}
    label = "shop.search.rerankers:make_reranker:temperature=0,window=20,base=zero_shot"
    subject = {"reranker": label, "dataset": "d", "k": 10, "views": 6, "metrics": {"loc": value}}
    (table,) = format_tables([subject], 60)
    assert max(map(len, table)) <= 60
    assert label.replace(" ", "") in "".join(line.split("  ")[-1].strip() for line in table)


def test_subjects_on_different_data_have_tables_of_their_own() -> None:
    value = {"estimate": 0.5, "low": 0.4, "high": 0.6, "n": 30}
    subjects = [
        {"reranker": "r", "dataset": dataset, "k": k, "views": 6, "metrics": {"loc": value}}
        for dataset in ("a", "b")
        for k in (10, 25)
    ]
    assert [table[0].split(",")[0] for table in format_tables(subjects, 80)] == [
        "a: lists of 10", "a: lists of 25", "b: lists of 10", "b: lists of 25"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.81234, "0.8123"),
        (-0.00001, "-0.0000"),
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


def test_printable_keeps_text_and_escapes_the_rest() -> None:
    assert printable("Amélie, 千と千尋") == "Amélie, 千と千尋"
    assert printable("a\x1b[31m\n\u202eb\udcff") == "a\\x1b[31m\\n\\u202eb\\udcff"
