"""The rows of the architecture hold, and the page that shows them says what is there."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def contracts() -> list[dict[str, object]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[dict[str, object]] = settings["tool"]["importlinter"]["contracts"]
    return found


def rows() -> list[set[str]]:
    layers = contracts()[0]["layers"]
    assert isinstance(layers, list)
    return [set(map(str.strip, layer.split("|"))) for layer in layers]


def test_imports_go_down_the_rows_and_in_no_circle() -> None:
    code = "from importlinter.cli import lint_imports; exit(lint_imports(no_cache=True, no_logo=True))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_contract_lets_an_import_pass() -> None:
    for contract in contracts():
        assert not contract.keys() & {"ignore_imports", "skip_descendants", "depth"}


def test_the_contract_has_every_module_and_folder_in_one_row() -> None:
    package = ROOT / "pytest_invari"
    names = {path.stem for path in package.glob("*.py")} - {"__init__"}
    names |= {path.name for path in package.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    listed = [name for row in rows() for name in row]
    assert sorted(listed) == sorted(names)


def test_the_page_has_the_rows_of_the_contract_from_above() -> None:
    block = PAGE.partition("```text\n")[2].partition("```")[0]
    shown = [set(re.split(r" {2,}|, | · ", line.strip())) for line in block.strip().splitlines()]
    assert shown == rows()


def test_the_way_of_a_list_has_at_most_20_stations_and_each_is_there() -> None:
    stations = re.findall(r"^\d+\. `([\w/.]+)\.py`: `([\w.]+)", PAGE, re.MULTILINE)
    assert 10 <= len(stations) <= 20
    for path, name in stations:
        thing: object = import_module(f"pytest_invari.{path.replace('/', '.')}")
        for part in name.split("."):
            thing = getattr(thing, part)
