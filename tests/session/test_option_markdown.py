"""--invari-markdown: the report for people, in which untrusted text stays text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pytest_invari.reports.markdown import shortened
from pytest_invari.reports.markup import code, fenced, plain, table
from tests.baseline.conftest import Gated, gated
from tests.reports.test_schema import checked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it.token import Token

    from tests.session.conftest import Project


__all__ = ["gated"]

RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
# What a report of ours is made of; anything else came out of untrusted text.
OURS = {
    "heading",
    "paragraph",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "strong",
    "bullet_list",
    "list_item",
}
TEXT = {"text", "code_inline", "fence", "softbreak", "inline"}
# What a host makes a link or a mention of, outside of code.
LINK = re.compile(r"://|www\.|(?<![\w.])@\w|\w@\w+\.|#\d")


def tokens(text: str) -> Iterator[Token]:
    for token in RENDERER.parse(text):
        yield token
        yield from token.children or []


def kinds(text: str) -> set[str]:
    return {re.sub("_(open|close)$", "", token.type) for token in tokens(text)}


def shown(text: str) -> str:
    """What can be read outside of code."""
    return "\n".join(token.content for token in tokens(text) if token.type == "text")


def tables(text: str) -> list[list[list[str]]]:
    """The cells of each table, as they are read."""
    found: list[list[list[str]]] = []
    for token, inner in zip(parsed := RENDERER.parse(text), parsed[1:], strict=False):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type in ("td_open", "th_open"):
            found[-1][-1].append("".join(each.content for each in inner.children or []))
    return found


def report(project: Project, *arguments: str, reranker: str = "random") -> str:
    project.run("--invari-markdown=report.md", *arguments, reranker=reranker)
    return (project.path / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
def test_it_tells_verdicts_measurements_and_how_it_was_made(project: Project, workers: Sequence[str]) -> None:
    text = report(project, "--invari-seed=3", *workers)
    assert text.startswith("## invari: 1 passed, 2 failed, 0 undecided\n")
    assert "Suite `small`: A small suite (profile `quick`, 5 views of 32 queries, seed 3)" in text
    criteria, measured = tables(text)
    assert criteria[0] == ["verdict", "criterion", "figure [95% interval]", "demand", "reason"]
    verdict, name, figure, *rest = criteria[1]
    assert (verdict, name) == ("FAIL", "small::loc[random-tasks-K6]")
    assert re.fullmatch(r"-?0\.\d{4} \[-?0\.\d{4}, 0\.\d{4}\] n=32", figure)
    assert rest == ["loc must be at least 0.75", "why: users notice when a page is reordered"]
    assert [row[0] for row in criteria[1:]] == ["FAIL", "FAIL", "pass"]
    assert "- `loc_vs_baseline` of `random-tasks-K6`: random is itself the baseline" in text
    assert measured[0] == ["metric", "random"]
    assert "measured: 1 subject, 160 rankings, 160 calls" in text
    chosen = ["--invari-suite=small.invari.toml", "--reranker=random", "--invari-markdown=report.md"]
    command = " ".join([*QUIETLY, *chosen, "--invari-seed=3", *workers, "--invari-no-audit"])
    assert text.endswith(f"```text\npytest {command}\n```\n")
    assert kinds(text) <= OURS | TEXT


QUIETLY = (
    *("-p", "no:hypothesispytest", "-p", "no:anyio"),
    *("-W", "error", "--strict-markers", "--strict-config"),
)


def test_its_rows_are_those_of_the_terminal(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "132")
    lines = project.run("--invari-markdown=report.md", "--reranker=constant").outlines
    measured = tables((project.path / "report.md").read_text())[-1]
    assert measured[0] == ["metric", "first_stage", "random", "constant"]
    start = next(index for index, line in enumerate(lines) if line.startswith("----"))
    rows = [re.split(r"\s{2,}", line) for line in lines[start + 1 :]]
    assert [[cell.replace("⁠", "") for cell in row] for row in measured[1:]] == rows[: len(measured) - 1]


def test_comparisons_have_a_table_of_their_own(gated: Gated) -> None:
    gated.save()
    gated.make_noise(0.9)
    gated.compare("--invari-markdown=report.md")
    text = (gated.project.path / "report.md").read_text()
    assert "\n\nbaseline mine.json: " in text
    rows = next(rows for rows in tables(text) if rows[0][0] == "outcome")
    found = {row[1]: row for row in rows[1:]}
    outcome, _, told = found["small::loc@baseline[mine:rank-tasks-K6]"]
    assert outcome == "REGRESSED"
    assert re.match(
        r"-0\.\d+ \[-0\.\d+, -0\.\d+\] n=32: loc was 0\.\d+ and is 0\.\d+ \(higher is better\)", told
    )


def test_what_is_undefined_has_its_reason(project: Project) -> None:
    tasks = project.path / "tasks.jsonl"
    tasks.write_text(tasks.read_text().replace('"relevance": 1.0', '"relevance": null'))
    assert "\n\nundefined (no_relevant_candidate): HR@5, nDCG@5\n\n" in report(project)


HOSTILE = (
    "<img src=x onerror=alert(1)> <script>alert(2)</script> [click](http://evil.example) ![pic](//evil/x)"
    " | another cell | `code` **bold** ~~gone~~ @everyone mail@evil.example www.evil.example &lt;b&gt; #12"
    " <http://evil.example> \\[escaped](x) _emphasis_ $x$"
)


def test_hostile_text_stays_text(project: Project) -> None:
    path = project.path / "small.invari.toml"
    hostile = HOSTILE.replace("\\", "\\\\")
    suite = path.read_text().replace("A small suite", hostile + "\\n# Heading\\n\\n- item")
    suite = suite.replace("users notice when a page is reordered", hostile + "\\n```\\n<b>out</b>")
    path.write_text(suite)
    project.write(
        "mine_evil.py",
        f"def rank(context, texts):\n    raise RuntimeError({HOSTILE + chr(10) + HOSTILE!r})\n",
    )
    odd = "mine_odd:Odd:text=<b>|`x`[a](b)"
    project.write(
        "mine_odd.py",
        """
        from pytest_invari.protocol import Ranking

        class Odd:
            def __init__(self, text: str = "") -> None:
                self.text = text

            def rank(self, request):
                return Ranking.from_order(request, request.ids)
        """,
    )
    text = report(project, f"--reranker={odd}", reranker="mine_evil:rank")
    assert kinds(text) <= OURS | TEXT
    assert not LINK.search(shown(text))
    html = RENDERER.render(text)
    assert not re.search(r"<(a|img|script|b|s|em|del)\b", html)
    # It can still be read: cells are as many as headings, and nothing of a name is lost.
    found = tables(text)
    assert {len(row) for rows in found for row in rows} == {5, len(found[-1][0])}
    assert odd in found[-1][0]
    assert "[click](http:⁠//evil.example)" in shown(text)


texts = st.text(st.sampled_from("ab1 <>&;#|`*_~[](){}!@:/.w-+=\\$'\"\n\tx‮é"), max_size=30)


@given(texts)
@settings(max_examples=300, deadline=None)
def test_any_text_is_shown_as_it_is_and_makes_no_markup(text: str) -> None:
    for written in (f"x {plain(text)}", f"x {code(text)}", table(["h", "x"], [[plain(text), code(text)]])):
        assert kinds(written) <= {"paragraph", "table", "thead", "tbody", "tr", "th", "td"} | TEXT
        assert not LINK.search(shown(written))
    escaped = text.replace("\n", "\\n").replace("\t", "\\t").replace("‮", "\\u202e")
    [[_, cells]] = tables(table(["h", "x"], [[plain(text), code(text)]]))
    assert [cell.replace("⁠", "").strip() for cell in cells] == [escaped.strip()] * 2


@given(st.lists(texts, min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_fenced_lines_end_where_they_end(lines: list[str]) -> None:
    found = [token for token in RENDERER.parse(f"{fenced(lines)}\n\nafter") if token.nesting >= 0]
    assert [token.type for token in found] == ["fence", "paragraph_open", "inline"]
    assert found[-1].content == "after"


@given(st.integers(0, 700))
@settings(deadline=None)
def test_a_shortened_report_fits_says_so_and_is_whole_markdown(size: int) -> None:
    rows = [[f"row {number}", "é" * number] for number in range(8)]
    blocks = ["## head", table(["a", "b"], rows), fenced(["inside"] * 9), "the end"]
    whole = shortened(blocks, 10_000)
    text = shortened(blocks, size)
    assert len(text.encode()) <= size
    if len(whole.encode()) <= size:
        assert text == whole
    elif text:
        kept, note = text.removesuffix("\n").split("\n\n")[:-1], text.rstrip().rpartition("\n\n")[2]
        assert note.startswith("Shortened")
        assert whole.startswith("\n\n".join(kept))
        assert kinds(text) <= OURS | TEXT
        assert shown(text).endswith("writes the whole.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--invari-markdown="], "--invari-markdown: the value is empty"),
        (["--invari-json="], "--invari-json: the value is empty"),
        (["--invari-markdown=no/where.md"], "--invari-markdown=no/where.md: there is no folder no"),
        (["--invari-markdown=."], "--invari-markdown=.: that is a folder"),
        (
            ["--invari-json=r", "--invari-markdown=./sub/../r"],
            "--invari-markdown=sub/../r: --invari-json names the same file; give each one of its own",
        ),
        (
            ["--invari-save=b.json", "--invari-json=b.json"],
            "--invari-json=b.json: --invari-save names the same file; give each one of its own",
        ),
        (
            ["--invari-compare=b.json", "--invari-save=./sub/../b.json"],
            "--invari-save=sub/../b.json would replace the baseline that it is compared with; save to *",
        ),
    ],
)
def test_a_place_that_cannot_be_is_refused_before_anything_runs(
    project: Project, arguments: list[str], message: str
) -> None:
    (project.path / "sub").mkdir()
    result = project.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_the_ini_key_writes_it_too_and_secrets_stay_out(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\ninvari_markdown = ini.md\n")
    project.write("mine_key.py", "class Keyed:\n    def __init__(self, api_key): pass\n    rank = None\n")
    project.write(
        "mine_key.py",
        """
        from pytest_invari.protocol import Ranking

        class Keyed:
            def __init__(self, api_key: str) -> None:
                pass

            def rank(self, request):
                return Ranking.from_order(request, request.ids)
        """,
    )
    project.run(reranker="mine_key:Keyed:api_key=sk-verysecret")
    text = (project.path / "ini.md").read_text()
    assert "verysecret" not in text
    assert "--reranker=mine_key:Keyed:api_key=(hidden)" in text


WITNESS = """
[suite]
name = "seen"
[profile.quick]
datasets = ["tasks.jsonl"]
k = 6
views = 5
[[criterion]]
name = "invariant"
kind = "witness"
"""


def test_a_witness_stands_in_lines_of_its_own(project: Project) -> None:
    tasks = project.path / "tasks.jsonl"
    tasks.write_text(tasks.read_text().replace("Film 5", "Film ``` <b>5</b>"))
    project.write("seen.invari.toml", WITNESS)
    run = ("--invari-suite=seen.invari.toml", "--reranker=input_order", "--invari-markdown=report.md")
    project.pytest(*run, "--invari-json=report.json")
    text = (project.path / "report.md").read_text()
    [[_, criterion], _] = tables(text)
    assert criterion[:2] == ["FAIL", "seen::invariant[input_order-tasks-K6]"]
    assert criterion[2].startswith("32 of 32 queries are ranked differently in another order")
    assert criterion[3] == "no ranking may depend on the order"
    lines, _ = (token.content.splitlines() for token in tokens(text) if token.type == "fence")
    assert re.match(r"query 'q\d+': 2 candidates in two orders that differ at 2 positions", lines[0])
    assert sum(" is ranked [" in line for line in lines) == 2
    assert kinds(text) <= OURS | TEXT
    [entry] = checked(project)["criteria"]
    assert (entry["kind"], entry["metric"], entry["bound"]) == ("witness", None, None)
    assert len(entry["details"]["witness"]["orders"]) == 2
