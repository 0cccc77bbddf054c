"""Every example in the README and in docs/ runs as it stands there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_invari.criteria.suite import read_suite
from pytest_invari.records.jsonl import read_rankings, write_rankings
from pytest_invari.rerankers.language_model.prompts import read_template

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# The tutorial changes its files on the way: its own tests type it from top to bottom.
IN_ONE_FOLDER = [page for page in PAGES if page.name != "tutorial.md"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The server that the pages ask is one of the tests' own.
CHAT_SERVER = "chat://localhost:8000"
# The first line of an example that is a file of its own, or goes on with one.
FILE_NAME = re.compile(r"# ([\w.]+\.(?:py|toml))(, continued)?\n")


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def named_files(page: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for body in blocks(page, "python") + blocks(page, "toml"):
        if match := FILE_NAME.match(body):
            found[match[1]] = found[match[1]] + body if match[2] else body
    return found


def commands(page: Path) -> list[str]:
    """The commands of a page, which one types after one another in one folder."""
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines]


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with every file that the pages name, and a task file of the README's form."""
    for page in IN_ONE_FOLDER:
        write_files(page, pytester.path)
    row = json.loads(blocks(ROOT / "README.md", "json")[0])
    lines = [json.dumps(row | {"query_id": f"q{number}"}) for number in range(40)]
    (pytester.path / "tasks.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    # The suite recsys26 looks at the top 5, so its lists must be longer.
    more = [{"id": f"more{number}", "text": "x" * number} for number in range(1, 6)]
    longer = [
        json.dumps(row | {"query_id": f"q{number}", "candidates": row["candidates"] + more})
        for number in range(40)
    ]
    (pytester.path / "longer.jsonl").write_text("\n".join(longer) + "\n", encoding="utf-8")
    (pytester.path / "controlled.jsonl").write_text("\n".join(map(controlled, range(40))), encoding="utf-8")
    return pytester


def write_files(page: Path, folder: Path) -> None:
    for name, body in named_files(page).items():
        (folder / name).write_text(body, encoding="utf-8")


@pytest.fixture(scope="module")
def chat_server() -> Iterator[str]:
    """The address of a chat server that is really there."""
    command = [sys.executable, str(ROOT / "tests" / "served" / "chat_server.py")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"chat://127.0.0.1:{int(process.stdout.readline())}/vllm"
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def controlled(number: int) -> str:
    """A list with relevant head and tail candidates, as one line of a task file."""
    candidates = [
        {
            "id": f"c{(7 * item + number) % 12:02}",
            "text": "x" * (item + 1),
            "group": "head" if item < 6 else "tail",
            "relevance": 1.0 if item in (0, 11, number % 12) else None,
        }
        for item in range(12)
    ]
    row = {"query_id": f"q{number}", "text": "films", "stratum": "controlled", "candidates": candidates}
    return json.dumps(row)


def test_pages_have_the_examples_these_tests_look_for() -> None:
    assert sum(len(commands(page)) for page in PAGES) >= 14
    assert len([name for page in PAGES for name in named_files(page)]) >= 6


@pytest.mark.parametrize("page", [*filter(commands, IN_ONE_FOLDER)], ids=lambda page: page.name)
def test_commands_do_what_the_page_says(
    project: pytest.Pytester, page: Path, request: pytest.FixtureRequest
) -> None:
    # Where two pages name a file alike, each means its own.
    write_files(page, project.path)
    for command in commands(page):
        if CHAT_SERVER in command:
            command = command.replace(CHAT_SERVER, request.getfixturevalue("chat_server"))
        program, *arguments = shlex.split(command)
        if program == "python":
            done = project.run(sys.executable, *arguments)
            assert done.ret == 0, f"{command}: {done.stderr.str()}"
        else:
            assert program == "pytest"
            if all(argument.endswith(".py") for argument in arguments):
                assert project.runpytest_subprocess(*arguments, "-W", "error").ret == 0
            else:
                measures_and_reports(project, command, arguments)


def measures_and_reports(project: pytest.Pytester, command: str, arguments: list[str]) -> None:
    if any(argument == "--invari-suite=recsys26" for argument in arguments):
        # The same command on the page's own small task file, so that no model or data is needed.
        arguments += ["--invari-dataset=longer.jsonl", "--invari-k=8", "--invari-views=3"]
    if any(argument.endswith(("=independent_views", "=routing")) for argument in arguments):
        arguments += ["--invari-dataset=controlled.jsonl", "--invari-k=12"]
        arguments = [each.replace("=zero_shot", "=biased:noise=0.7") for each in arguments]
    result = project.runpytest_subprocess(*arguments)
    assert result.ret in (0, 1), f"{command}: {result.stderr.str()}"
    is_selfcheck = "--invari-selfcheck" in arguments
    measured = ["*= invari =*", "*criteria:*", "measured:*"]
    result.stdout.fnmatch_lines(["*= invari self-check =*", "misses:*"] if is_selfcheck else measured)
    assert "raised" not in result.stdout.str()
    for argument in arguments:
        if argument.startswith("--invari-html="):
            page = project.path / argument.partition("=")[2]
            assert page.read_text(encoding="utf-8").count("<svg") > 10
    if "--invari-replay" in arguments:
        rankings = "[1-9]*"
        result.stdout.fnmatch_lines(
            [f"records: {rankings} of {rankings} rankings came from records in records"]
        )


def test_the_example_of_a_ranking_can_be_read(tmp_path: Path) -> None:
    [line] = blocks(ROOT / "docs" / "replay.md", "json")
    (tmp_path / "mine.jsonl").write_text(line, encoding="utf-8")
    [read] = read_rankings(tmp_path / "mine.jsonl")
    assert read.seen.shown == ("c", "a", "b")
    write_rankings(tmp_path / "again.jsonl", [read.seen])
    assert (tmp_path / "again.jsonl").read_text(encoding="utf-8") == line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_run(page: Path) -> None:
    namespace: dict[str, object] = {}
    for body in blocks(page, "python"):
        if not FILE_NAME.match(body):
            exec(compile(body, f"{page.name} example", "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).is_file(), target


def test_toml_examples_are_toml() -> None:
    for page in PAGES:
        for body in blocks(page, "toml"):
            tomllib.loads(body)


def test_architecture_names_every_module_of_the_harness() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    package = ROOT / "pytest_invari"
    modules = {path.name for path in package.glob("*.py")}
    modules |= {f"{path.name}/" for path in package.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert "criteria/" in modules
    helpers = {"errors.py", "cache.py"}
    assert {name for name in modules if f"`{name}`" not in text} == helpers


def test_packaged_suite_and_prompts_read() -> None:
    for path in (ROOT / "suites").glob("*.toml"):
        read_suite(path)
    for path in (ROOT / "rerankers" / "language_model" / "prompts").glob("*.toml"):
        assert read_template(path.stem) == read_template(str(path))
