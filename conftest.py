"""Keep the checkout off sys.path: ./datasets and ./rerankers must not answer for the PyPI packages."""

import sys
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]

# The same examples in every run; --hypothesis-profile=default draws others.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")

pytest_plugins = ["pytester"]
