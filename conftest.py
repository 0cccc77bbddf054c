"""Keep the checkout off sys.path: ./datasets and ./rerankers must not answer for the PyPI packages."""

import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]

# Test files import helpers from one another by their names from here; old releases of pytest make no package
# of the folders above them.
TESTS = PathFinder.find_spec("tests", [str(ROOT)])
assert TESTS is not None
sys.modules.setdefault("tests", module_from_spec(TESTS))

pytest_plugins = ["pytester"]

# A run of a suite in the checkout loads this file as well, and needs no hypothesis.
if find_spec("hypothesis") is not None:
    from hypothesis import settings

    # Property-based tests draw the same examples in every run; --hypothesis-profile=default draws others.
    settings.register_profile("repeatable", derandomize=True)
    settings.load_profile("repeatable")
