"""The tutorial, typed from top to bottom: its files, its commands, and the outputs that it shows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.docs.test_documentation import BLOCK, FILE_NAME, ROOT
from tests.session.conftest import QUIET

PAGE = ROOT / "docs" / "tutorial.md"
INSTALLATION = "python -m pip install ./pytest-invari"
LEFT_OUT = "…"


def has(output: str, shown: str) -> bool:
    """Whether the lines *shown* stand in the output one after another; ``…`` stands for anything.

    On a line of its own it stands for lines, within a line for the rest of a word, or of the line at its end.
    """
    lines = [re.escape(line).replace(LEFT_OUT, ".*") for line in shown.splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if line == ".*" else rf"{line}[ ]*\n" for line in lines)
    return re.search(f"^{pattern}", output, re.MULTILINE) is not None


def test_left_out_lines_and_words_are_the_only_differences_that_count_for_nothing() -> None:
    came = "one\ntwo 2\nthree\nfour 0.5 s\n"
    assert has(came, "one\n…\nfour … s\n")
    assert has(came, "two 2\nthree\n")
    assert not has(came, "one\nthree\n")
    assert not has(came, "two 3\n")
    assert not has(came, "wo 2\n")


def test_every_step_does_what_the_page_shows(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    output, statuses, compared = "", [], 0
    for kind, body in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "text":
            assert has(output, body), f"the page shows\n{body}\nand this came\n{output}"
            compared += 1
        elif kind == "console":
            command = body.removeprefix("$ ").strip()
            assert "\n" not in command
            if command != INSTALLATION:
                result = typed(pytester, command)
                output = result.stdout.str() + "\n"
                statuses.append(int(result.ret))
        else:
            name = FILE_NAME.match(body)
            assert name is not None, f"a block of {kind} is no file: {body}"
            (pytester.path / name[1]).write_text(body, encoding="utf-8")
    assert statuses == [0, 1, 1, 0, 1]
    assert compared == 4


def typed(pytester: pytest.Pytester, command: str) -> pytest.RunResult:
    program, *arguments = shlex.split(command)
    if program == "python":
        return pytester.run(sys.executable, *arguments)
    assert program == "pytest"
    # The page shows the items in their own order.
    return pytester.runpytest_inprocess(*QUIET, "-p", "no:randomly", "-W", "error", *arguments)


@pytest.mark.packaging
def test_the_installation_works_beside_a_clone(tmp_path: Path) -> None:
    assert INSTALLATION in PAGE.read_text(encoding="utf-8")
    unwanted = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    shutil.copytree(ROOT, tmp_path / "pytest-invari", symlinks=True, ignore=unwanted)
    venv.create(tmp_path / "environment", with_pip=False)
    python = tmp_path / "environment" / "bin" / "python"
    [packages] = (tmp_path / "environment").glob("lib/python*/site-packages")
    # pip and what the package needs are found in the environment that we run in, and nothing is fetched.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    settings = {"NO_INDEX": "1", "NO_DEPS": "1", "NO_BUILD_ISOLATION": "0", "IGNORE_INSTALLED": "1"}
    offline = {f"PIP_{name}": value for name, value in settings.items()}
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}
    command = [str(python), *shlex.split(INSTALLATION)[1:]]
    subprocess.run(command, cwd=tmp_path, env=ours | offline, check=True, capture_output=True)
    told = subprocess.run(
        [str(python), "-c", "import pytest_invari.plugin as plugin; print(plugin.__file__)"],
        cwd=tmp_path,
        env=ours,
        check=True,
        capture_output=True,
        text=True,
    )
    assert Path(told.stdout.strip()) == packages / "pytest_invari" / "plugin.py"
