"""Keep the checkout off sys.path: ./datasets and ./rerankers must not answer for the PyPI packages."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]

pytest_plugins = ["pytester"]
