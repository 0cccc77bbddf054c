"""The public names: which they are, that each is documented, and that importing the package costs nothing."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import pytest_invari

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "api.md"

NAMES = [
    "Candidate",
    "Context",
    "Cost",
    "CriterionNotMetError",
    "CustomMetric",
    "HistoryEntry",
    "InvariError",
    "InvariUndecidedWarning",
    "OrderDependentError",
    "RankedLists",
    "Ranking",
    "RankingError",
    "Request",
    "Reranker",
    "Studies",
    "Study",
    "Task",
    "TaskSet",
    "__version__",
    "assert_permutation_invariant",
]


def test_these_are_the_public_names() -> None:
    assert sorted(pytest_invari.__all__) == NAMES
    assert set(NAMES) <= set(dir(pytest_invari))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "__version__"])
def test_each_name_has_its_own_words(name: str) -> None:
    thing = getattr(pytest_invari, name)
    assert thing.__name__ == name
    words = inspect.getdoc(thing) or ""
    # Dataclasses without a docstring have their signature there.
    assert words
    assert not words.startswith(f"{name}(")


def test_the_page_of_names_has_each_of_them_once() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(name for name, _ in rows) == NAMES


def test_names_are_the_same_things_as_in_their_modules() -> None:
    import pytest_invari.metrics.custom
    import pytest_invari.protocol
    import pytest_invari.testing

    for module in (pytest_invari.metrics.custom, pytest_invari.protocol, pytest_invari.testing):
        for name in set(NAMES) & set(vars(module)):
            assert getattr(pytest_invari, name) is getattr(module, name)
    assert pytest_invari.__version__ == version("pytest-invari")


def test_a_misspelt_name_is_an_attribute_error() -> None:
    misspelt = "Candidat"
    with pytest.raises(AttributeError, match="module 'pytest_invari' has no attribute 'Candidat'"):
        getattr(pytest_invari, misspelt)
    with pytest.raises(ImportError, match="cannot import name 'Candidat'"):
        exec("from pytest_invari import Candidat")


def loaded_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has after this code."""
    program = f"import sys, json\n{code}\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_the_package_loads_no_module_of_it() -> None:
    loaded = loaded_after("import pytest_invari")
    assert "pytest_invari" in loaded
    assert not {name for name in loaded if name.startswith("pytest_invari.")}


def test_what_a_reranker_needs_loads_nothing_heavy() -> None:
    loaded = loaded_after("from pytest_invari import Candidate, Ranking, Request, Task, InvariError")
    assert "pytest_invari.protocol" in loaded
    assert not {"numpy", "scipy", "pyarrow", "pandas", "torch", "transformers", "pytest"} & loaded
