"""Every example in the README and in docs/ runs as it stands there."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path

import pytest

from pytest_invari.records.jsonl import read_rankings, write_rankings
from pytest_invari.rerankers.language_model.prompts import read_template
from pytest_invari.session.fixture import Studies
from pytest_invari.suitefile.keys import SUITE
from pytest_invari.suitefile.reader import read_suite
from tests.rerankers.bridges.conftest import save_cross_encoder

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# The tutorial changes its files on the way: its own tests type it from top to bottom.
IN_ONE_FOLDER = [page for page in PAGES if page.name != "tutorial.md"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The servers and the model that the pages name are the tests' own.
CHAT_SERVER = "chat://localhost:8000"
RERANK_SERVER = "localhost:8080"
MODEL = "models/tiny"
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
    # Of files with one name that of the first page stays: README.md's.
    for page in reversed(IN_ONE_FOLDER):
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


def write_files(page: Path, folder: Path, servers: Mapping[str, str] | None = None) -> None:
    for name, body in named_files(page).items():
        (folder / name).write_text(there(body, servers or {}), encoding="utf-8")


def there(text: str, servers: Mapping[str, str]) -> str:
    """The same text with the addresses of *servers* in place of those that the pages give."""
    for place, address in servers.items():
        text = text.replace(place, address)
    return text


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cross-encoder. It is made before there is a pytester, which would have torch imported twice."""
    return save_cross_encoder(tmp_path_factory.mktemp("tiny"))


@contextmanager
def running(server: str) -> Iterator[int]:
    """The port of a server that is really there."""
    command = [sys.executable, str(ROOT / "tests" / "rerankers" / "served" / server)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


@pytest.fixture
def servers(page: Path) -> Iterator[Mapping[str, str]]:
    """The addresses of the servers that a page names: where it says that they are, and where they are."""
    text = page.read_text(encoding="utf-8")
    with ExitStack() as stack:
        found = {}
        if CHAT_SERVER in text:
            port = stack.enter_context(running("chat_server.py"))
            found[CHAT_SERVER] = f"chat://127.0.0.1:{port}/vllm"
        if RERANK_SERVER in text:
            port = stack.enter_context(running("rerank_server.py"))
            found[RERANK_SERVER] = f"127.0.0.1:{port}/ok"
        yield found


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
    tiny: Path, project: pytest.Pytester, page: Path, servers: Mapping[str, str]
) -> None:
    # Where two pages name a file alike, each means its own.
    write_files(page, project.path, servers)
    shutil.copytree(tiny, project.path / MODEL)
    for command in commands(page):
        program, *arguments = shlex.split(there(command, servers))
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
        arguments += ["--invari-queries=12"]
        if not any(argument.startswith("--invari-baseline") for argument in arguments):
            arguments += ["--invari-baseline=first_stage"]
    if any(argument.endswith(("=independent_views", "=routing")) for argument in arguments):
        arguments += ["--invari-dataset=controlled.jsonl", "--invari-k=12"]
        arguments = [each.replace("=zero_shot", "=biased:noise=0.7") for each in arguments]
    result = project.runpytest_subprocess(*arguments)
    assert result.ret in (0, 1), f"{command}: {result.stderr.str()}"
    is_selfcheck = "--invari-selfcheck" in arguments
    measured = ["*= invari =*", "*criteria:*", "measured:*"]
    result.stdout.fnmatch_lines(["*= invari self-check =*", "misses:*"] if is_selfcheck else measured)
    assert not re.search("raised|rankings failed|nothing measured", result.stdout.str())
    for argument in arguments:
        if argument.startswith("--invari-html="):
            page = project.path / argument.partition("=")[2]
            assert page.read_text(encoding="utf-8").count("<svg") > 10
    if "--invari-replay" in arguments:
        rankings = "[1-9]*"
        result.stdout.fnmatch_lines(
            [f"records: {rankings} of {rankings} rankings came from records in records"]
        )


def test_every_way_to_name_a_reranker_is_understood(tiny: Path, project: pytest.Pytester) -> None:
    page = (ROOT / "docs" / "bring-your-own.md").read_text(encoding="utf-8")
    named = re.findall(r"^\|.*`(--reranker=[^`]+)`", page, re.MULTILINE)
    assert len(named) >= 12
    shutil.copytree(tiny, project.path / MODEL)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OUR_KEY", "any-key-of-ours")
        suite = ("--invari-suite=recsys26", "--invari-dataset=longer.jsonl", "--invari-k=8")
        result = project.runpytest_subprocess("--collect-only", "-q", *suite, "--invari-views=3", *named)
    assert result.ret == 0, result.stderr.str()
    listed = result.stdout.str()
    for option in named:
        assert f"[{option.removeprefix('--reranker=')}-longer-K8]" in listed


def test_what_is_called_in_a_conftest_is_there() -> None:
    page = (ROOT / "docs" / "bring-your-own.md").read_text(encoding="utf-8")
    named = re.findall(r"`(from_\w+)\(.*?\)` of `([\w.]+)`", page)
    assert len(named) == 2
    for function, module in named:
        assert callable(getattr(import_module(module), function))


def test_the_example_of_a_ranking_can_be_read(tmp_path: Path) -> None:
    [line] = blocks(ROOT / "docs" / "replay.md", "json")
    (tmp_path / "mine.jsonl").write_text(line, encoding="utf-8")
    [read] = read_rankings(tmp_path / "mine.jsonl")
    assert read.seen.shown == ("f1", "f0", "f2")
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


def test_packaged_suite_and_prompts_read() -> None:
    for path in (ROOT / "suites").glob("*.toml"):
        read_suite(path)
    for path in (ROOT / "rerankers" / "language_model" / "prompts").glob("*.toml"):
        assert read_template(path.stem) == read_template(str(path))


def test_own_tests_has_every_parameter_of_a_study_with_its_default() -> None:
    page = (ROOT / "docs" / "own-tests.md").read_text(encoding="utf-8")
    section = page.partition("### Parameters of a study")[2]
    rows = dict(re.findall(r"^\| (`\w+`.*?) \| (.*?) \|", section, re.MULTILINE))
    listed = {name: default for names, default in rows.items() for name in re.findall(r"`(\w+)`", names)}
    parameters = dict(list(inspect.signature(Studies.study).parameters.items())[1:])
    assert list(listed) == list(parameters)
    suite = {key.name: key.default for key in SUITE}
    for name, parameter in parameters.items():
        default = suite[name] if name in suite and parameter.default is None else parameter.default
        if default is inspect.Parameter.empty:
            assert listed[name] == "needed"
        elif default is not None:
            assert listed[name].strip("`").strip('"') == str(default)
