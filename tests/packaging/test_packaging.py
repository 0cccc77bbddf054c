"""The distributions install one top-level name, and live beside packages that are called like our folders.

Two import packages on the package index are called ``rerankers`` (AnswerDotAI) and ``datasets`` (Hugging
Face, which transformers looks for). The folders of those names in the checkout must never answer for them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).resolve().parents[2]
LINKED = ("datasets", "rerankers", "suites")
NEIGHBOURS = ("datasets", "rerankers")
HEAVY = {"numpy", "torch", "pandas", "scipy", "pyarrow", "transformers", "matplotlib", "jinja2"}
NOT_COPIED = ("__pycache__", "*.egg-info", "build", "dist", "*.pyc")


def run(command: Sequence[str | Path], cwd: Path, **environment: str) -> str:
    """Run a command that must succeed, and return what it printed."""
    # Bytecode and the caches of pytest stay out of the copy; so do settings of the run that we are part of.
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "PYTHON", "INVARI_"))
    }
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=inherited | {"PYTHONDONTWRITEBYTECODE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout, in which building may leave its files."""
    copy = tmp_path_factory.mktemp("copy") / "checkout"
    copy.mkdir()
    for entry in ROOT.iterdir():
        if entry.name.startswith(".") or entry.name in NOT_COPIED:
            continue
        if entry.is_dir():
            shutil.copytree(
                entry, copy / entry.name, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED)
            )
        else:
            shutil.copy2(entry, copy / entry.name)
    return copy


@dataclass(frozen=True)
class Built:
    """What was built: the sdist, the wheel made from it, and the wheel made from the checkout."""

    sdist: Path
    wheel_from_sdist: Path
    wheel: Path


@pytest.fixture(scope="session")
def built(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The distributions, built with the setuptools of this environment."""
    pytest.importorskip("build")
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir"]
    run([*build, out / "both", checkout], out)
    run([*build, out / "direct", "--wheel", checkout], out)
    (sdist,) = (out / "both").glob("*.tar.gz")
    (wheel_from_sdist,) = (out / "both").glob("*.whl")
    (wheel,) = (out / "direct").glob("*.whl")
    return Built(sdist, wheel_from_sdist, wheel)


@dataclass(frozen=True)
class Environment:
    """A fresh virtual environment, which finds pytest and the other dependencies in the one we run in."""

    python: Path
    site_packages: Path

    @classmethod
    def make(cls, folder: Path, install: Sequence[Path]) -> Environment:
        venv.create(folder, with_pip=False)
        python = folder / "bin" / "python"
        (site_packages,) = folder.glob("lib/python*/site-packages")
        # Comes after the environment's own packages, so what is installed below is found first; and an
        # editable install of ours that is there is not followed, because only a site folder's own .pth are.
        (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        pip: list[str | Path] = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "-q",
            "--ignore-installed",
        ]
        run([*pip, "--no-deps", "--no-index", "--no-build-isolation", *install], folder)
        return cls(python, site_packages)

    def pytest(self, command: str) -> list[Path | str]:
        """How to start pytest; ``python -m pytest`` puts the current folder first on the path."""
        if command == "python -m pytest":
            return [self.python, "-m", "pytest"]
        script = self.python.with_name("pytest")
        script.write_text("import sys\nimport pytest\n\nsys.exit(pytest.console_main())\n")
        return [self.python, script]


@pytest.fixture(scope="session")
def alone(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel, without any package called datasets or rerankers."""
    return Environment.make(tmp_path_factory.mktemp("alone"), [built.wheel])


@pytest.fixture(scope="session")
def beside(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel beside distributions called datasets and rerankers, each with an import package of that name.

    They stand for Hugging Face's and AnswerDotAI's, of which only the names matter here.
    """
    projects = tmp_path_factory.mktemp("neighbours")
    for name in NEIGHBOURS:
        package = projects / name / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f'OWNER = "the other {name}"\n')
        (projects / name / "pyproject.toml").write_text(
            '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
            f'[project]\nname = "{name}"\nversion = "99"\n[tool.setuptools]\npackages = ["{name}"]\n'
        )
    return Environment.make(
        tmp_path_factory.mktemp("beside"), [built.wheel, *(projects / name for name in NEIGHBOURS)]
    )


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def harness_files(folder: Path) -> set[str]:
    """Every file of the harness below *folder*, with the linked folders followed."""
    found = set()
    for place, folders, files in os.walk(folder / "pytest_invari", followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found |= {(Path(place) / file).relative_to(folder).as_posix() for file in files}
    return {name for name in found if not name.endswith(".pyc")}


def test_wheel_installs_one_top_level_name(built: Built) -> None:
    names = {name.partition("/")[0] for name in names_in(built.wheel)}
    (metadata,) = (name for name in names if re.fullmatch(r"pytest_invari-[\w.]+\.dist-info", name))
    assert names == {"pytest_invari", metadata}


def test_wheel_holds_every_file_of_the_harness(built: Built, checkout: Path) -> None:
    expected = harness_files(checkout)
    assert {
        "pytest_invari/py.typed",
        "pytest_invari/plugin.py",
        "pytest_invari/suites/recsys26.toml",
        "pytest_invari/suites/suite.schema.json",
        "pytest_invari/reports/report.schema.json",
        "pytest_invari/reports/selfcheck.schema.json",
        "pytest_invari/rerankers/sgs.py",
        "pytest_invari/datasets/movielens.py",
    } <= expected
    assert {name for name in names_in(built.wheel) if ".dist-info/" not in name} == expected


def test_entry_points_lead_to_modules_in_the_wheel(built: Built, checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    names = names_in(built.wheel)
    targets = [target for group in project["entry-points"].values() for target in group.values()]
    modules = {target.partition(":")[0].replace(".", "/") for target in targets}
    absent = {module for module in modules if not {f"{module}.py", f"{module}/__init__.py"} & names}
    assert not absent


def test_wheel_from_the_sdist_is_the_same(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as direct, zipfile.ZipFile(built.wheel_from_sdist) as from_sdist:
        assert sorted(direct.namelist()) == sorted(from_sdist.namelist())
        different = {name for name in direct.namelist() if direct.read(name) != from_sdist.read(name)}
    assert not different


def test_sdist_holds_files_where_the_checkout_has_links(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        assert not [member.name for member in archive if member.issym() or member.islnk()]


def test_top_folders_are_linked_and_are_no_packages() -> None:
    for name in LINKED:
        assert not (ROOT / name / "__init__.py").exists(), f"{name}/__init__.py would shadow the other {name}"
        assert (ROOT / "pytest_invari" / name).readlink() == Path("..") / name


PROBE = """
import importlib.util
import pytest_invari.datasets.movielens, pytest_invari.rerankers.sgs

def test_owner():
    for name in ("datasets", "rerankers"):
        # transformers asks in this way whether Hugging Face datasets is there.
        spec = importlib.util.find_spec(name)
        if {present}:
            assert __import__(name).OWNER == "the other " + name
        elif spec is not None:
            # Only where the environment that runs the project's tests has the real package.
            assert spec.origin is not None, list(spec.submodule_search_locations)
"""


@pytest.mark.parametrize("command", ["pytest", "python -m pytest"])
@pytest.mark.parametrize("mode", ["importlib", "prepend"])
@pytest.mark.parametrize("place", ["root", "elsewhere"])
@pytest.mark.parametrize("present", [True, False], ids=["beside", "alone"])
def test_folders_of_the_checkout_do_not_answer_for_other_packages(
    present: bool,
    place: str,
    mode: str,
    command: str,
    checkout: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    environment: Environment = request.getfixturevalue("beside" if present else "alone")
    folder = checkout / "tests" / "probe" if place == "root" else tmp_path
    folder.mkdir(exist_ok=True)
    (folder / "test_probe.py").write_text(PROBE.format(present=present))
    options = ["-q", "-p", "no:cacheprovider", f"--override-ini=addopts=--import-mode={mode}"]
    output = run(
        [*environment.pytest(command), *options, folder / "test_probe.py"],
        checkout if place == "root" else tmp_path,
    )
    assert "1 passed" in output


def test_installed_wheel_is_what_runs_outside_the_checkout(alone: Environment, tmp_path: Path) -> None:
    code = (
        "import pytest_invari, pytest_invari.datasets.split as s; print(pytest_invari.__file__, s.__file__)"
    )
    for file in run([alone.python, "-c", code], tmp_path).split():
        assert Path(file).is_relative_to(alone.site_packages)


def test_loading_the_plugin_imports_nothing_heavy() -> None:
    output = run([sys.executable, "-X", "importtime", "-c", "import pytest_invari.plugin"], ROOT.parent)
    loaded = {
        line.rpartition("|")[2].strip() for line in output.splitlines() if line.startswith("import time:")
    }
    assert "pytest_invari.plugin" in loaded
    assert not {name for name in loaded if name.partition(".")[0] in HEAVY}


def test_the_installed_package_is_typed_for_users(alone: Environment, tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests" / "typing" / "user_code.py", tmp_path)
    # Its lines that must be refused are marked so, and a mark that nothing calls for is an error too.
    strict = ["--strict", f"--python-executable={alone.python}", f"--cache-dir={tmp_path / 'cache'}"]
    output = run([sys.executable, "-m", "mypy", *strict, "user_code.py"], tmp_path)
    assert "no issues found in 1 source file" in output
