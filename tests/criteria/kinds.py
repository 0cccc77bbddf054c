"""Suites with kinds of criteria, and rerankers that depend on the order or do not."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project

# The first candidate of a list of four or more wins; each call leaves a line in calls.txt.
RERANKERS = """
import random
import pytest

def note(texts):
    with open({folder!r} + "/calls.txt", "a") as file:
        print(len(texts), file=file)

def crowded(context, texts):
    note(texts)
    return [len(text) + 0.5 * hash_of(text) + (99.0 if len(texts) > 3 and place == 0 else 0.0)
            for place, text in enumerate(texts)]

def sound(context, texts):
    note(texts)
    return [hash_of(text) for text in texts]

def hash_of(text):
    return sum(map(ord, text)) / 7.0

class Noisy:
    '''Draws each ranking anew.'''
    def __init__(self):
        self.count = 0
    def rank(self, request):
        from pytest_invari.protocol import Ranking
        self.count += 1
        order = random.Random(self.count).sample(sorted(request.ids), len(request.ids))
        return Ranking.from_order(request, order)

class Failing:
    '''Fails where the first candidate shown is among the first of the alphabet.'''
    def rank(self, request):
        from pytest_invari.protocol import Ranking
        if request.ids[0] == min(request.ids):
            raise ValueError("no such index")
        return Ranking.from_order(request, sorted(request.ids))

@pytest.hookimpl(optionalhook=True)
def pytest_invari_rerankers(config):
    return dict(crowded=crowded, sound=sound, noisy=Noisy, failing=Failing)
"""

KINDS = """

@pytest.hookimpl(optionalhook=True)
def pytest_invari_criteria(config):
    return {kinds}
"""


def write_conftest(project: Project, functions: str = "", kinds: str = "{}") -> None:
    text = RERANKERS.replace("{folder!r}", repr(str(project.path))) + textwrap.dedent(functions)
    (project.path / "conftest.py").write_text(text + KINDS.replace("{kinds}", kinds), encoding="utf-8")


def write_suite(project: Project, *criteria: str, head: str = "", profile: str = "") -> Path:
    text = f'[suite]\nname = "kinds"\n{head}\n[profile.quick]\ndatasets = ["tasks.jsonl"]\nk = 6\nviews = 4\n'
    text += profile + "\n"
    for lines in criteria:
        text += f"[[criterion]]\n{lines}\n"
    return project.write("kinds.invari.toml", text)


WITNESS = 'name = "order"\nkind = "witness"'


def run(project: Project, *arguments: str | Path, reranker: str = "crowded") -> pytest.RunResult:
    return project.pytest("--invari-suite=kinds.invari.toml", f"--reranker={reranker}", *arguments)


def calls(project: Project) -> list[int]:
    """The lengths of the lists that the functions were given."""
    return [int(line) for line in (project.path / "calls.txt").read_text().split()]


def entries(project: Project, *arguments: str | Path, reranker: str = "crowded") -> dict[str, Any]:
    """The criteria of the JSON report by their names."""
    run(project, "--invari-json=report.json", *arguments, reranker=reranker)
    report = json.loads((project.path / "report.json").read_text())
    return {entry["criterion"]: entry for entry in report["criteria"]}


MOSTLY = """
class Mostly:
    '''Fails in all views of the queries from q{first} on; ranks the others as its rule says.'''
    def rank(self, request):
        from pytest_invari.protocol import Ranking
        if int(request.ids[0][1:].partition("i")[0]) >= {first}:
            raise ValueError("no such index")
        return Ranking.from_order(request, {rule})

@pytest.hookimpl(optionalhook=True, specname="pytest_invari_rerankers")
def pytest_invari_more(config):
    return dict(mostly=Mostly)
"""


HEAD = """
def stable_head(study, at_least=0.8):
    study.assert_at_least("loc", at_least)
"""


def own(options: str = "", kind: str = "stable_head") -> str:
    return f'name = "head"\nkind = "{kind}"\n{options}'
