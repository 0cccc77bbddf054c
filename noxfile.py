"""The plugin as it is installed, on the oldest and the newest pytest, with and without pytest-xdist.

``nox`` builds the wheel once and installs it into a fresh environment for each pytest, beside the releases of
constraints.txt; only pytest and pluggy differ. The checkout is never on the path of these environments.
"""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import nox
from packaging.requirements import Requirement

nox.options.reuse_existing_virtualenvs = False
nox.options.error_on_missing_interpreters = True

ROOT = Path(__file__).parent
# Of the two that pytest depends on, others' releases being the same on both sides.
HOSTS = ("pytest", "pluggy")
PLUGIN = ("tests/api", "tests/session", "tests/criteria", "tests/suitefile", "tests/testing")
# Of these, where pytest's own releases differ most: collection, outcomes, reports, and the gate.
TOUCHY = (
    "tests/api",
    "tests/session/test_collection.py",
    "tests/session/test_junit.py",
    "tests/session/test_option_strict.py",
    "tests/session/test_outcomes.py",
    "tests/session/test_xdist.py",
    "tests/session/fixture/test_study_assertions.py",
)
# Of these, more that workers have a part in.
SHARED = ("tests/session/test_gate.py", "tests/session/fixture/test_fixture.py")
# What tests read reports with, and another plugin that reports.
READERS = ("jsonschema", "markdown-it-py", "pytest-github-actions-annotate-failures")
# No language model and no data set is installed here, and nothing is built in these environments.
WITHOUT_MODELS = "not model and not packaging"
IS_THE_WHEEL = """
import sys
from importlib.util import find_spec

origin = find_spec("pytest_invari").origin
assert origin.startswith(sys.prefix), f"{origin} is not the wheel's"
assert find_spec("torch") is None
"""


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the wheel that the other sessions install, by way of the source distribution."""
    shutil.rmtree(_dist(session), ignore_errors=True)
    session.install("-c", "constraints.txt", "build", "setuptools")
    session.run("python", "-m", "build", "--no-isolation", "--outdir", str(_dist(session)), silent=True)


@nox.session(requires=["wheel"])
@nox.parametrize("pytest", ["oldest", "newest"])
def tests(session: nox.Session, pytest: str) -> None:
    """Run what depends on pytest most, without pytest-xdist and with it.

    ``nox -s tests -- all`` runs all of the plugin's tests instead, which takes ten minutes.
    """
    wanted = PLUGIN if "all" in session.posargs else TOUCHY
    (built,) = _dist(session).glob("*.whl")
    hosts = _lowest() if pytest == "oldest" else HOSTS
    pinned = _constraints(session, without=HOSTS if pytest == "oldest" else ())
    session.install("-c", pinned, f"{built}[analysis,hypothesis,report]", *READERS, *hosts)
    session.run("python", "-I", "-c", IS_THE_WHEEL)
    session.run("pytest", "-q", "-m", f"{WITHOUT_MODELS} and not xdist", *wanted)
    session.install("-c", pinned, "pytest-xdist", *hosts)
    session.run("pytest", "-q", "-n", "2", "-m", f"{WITHOUT_MODELS} and xdist", *wanted, *SHARED)


def _dist(session: nox.Session) -> Path:
    return Path(session.cache_dir) / "dist"


def _lowest() -> list[str]:
    """The lowest releases of the hosts that the project's metadata promise to work with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {each.name: each for each in map(Requirement, project["dependencies"])}
    return [
        f"{name}=={bound.version}"
        for name in HOSTS
        for bound in required[name].specifier
        if bound.operator == ">="
    ]


def _constraints(session: nox.Session, without: tuple[str, ...]) -> str:
    """The path of the constraints without those of some packages."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    # Not in the session's own temporary folder, which then is that of its tests as well, within the checkout.
    path = _dist(session) / f"without-{'-'.join(without) or 'none'}.txt"
    path.write_text(
        "".join(line for line in lines if line.partition("==")[0] not in without), encoding="utf-8"
    )
    return str(path)
