"""The project that a user might have, with a suite that also reports a metric and a pooled one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.session.conftest import SUITE, Project, project

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Gated", "gated", "project"]

NAME = 'name = "small"'
# Scores that can be made worse or better by a file beside them: 0 is all relevant first, 1 is by chance.
MINE = """
import hashlib, pathlib

def rank(context, texts):
    noise = float(pathlib.Path("noise.txt").read_text())
    def score(place, text):
        digest = hashlib.sha256(f"{context} {place} {text}".encode()).digest()
        return -float(text.split()[-1]) * (1 - noise) + 6 * noise * digest[0] / 255
    return [score(place, text) for place, text in enumerate(texts)]
"""


class Gated:
    """A project whose reranker ``mine:rank`` is worse the more noise it is given."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.path = project.path / "mine.json"
        project.write("mine.py", MINE)
        project.write(
            "small.invari.toml",
            SUITE.replace(NAME, f'{NAME}\nreport = ["exposure_deviation@3", "hr@2", "gpi"]'),
        )
        self.make_noise(0.4)

    def make_noise(self, noise: float) -> None:
        (self.project.path / "noise.txt").write_text(str(noise))

    def run(self, *arguments: str) -> pytest.RunResult:
        return self.project.run(*arguments, reranker="mine:rank")

    def save(self, *arguments: str) -> Any:
        """Measure and save, and give what the file holds."""
        self.run("--invari-save=mine.json", *arguments)
        return self.content()

    def compare(self, *arguments: str) -> pytest.RunResult:
        return self.run("--invari-compare=mine.json", "-k", "baseline", *arguments)

    def changes(self, *arguments: str) -> Mapping[str, Any]:
        """Compare, and give the part of the report, by criterion."""
        self.compare("--invari-json=report.json", *arguments)
        report = json.loads((self.project.path / "report.json").read_text(encoding="utf-8"))
        return {each["criterion"]: each for each in report["changes"]}

    def content(self) -> Any:
        return json.loads(self.path.read_text(encoding="utf-8"))

    def write(self, content: object) -> None:
        self.path.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def gated(project: Project) -> Gated:
    return Gated(project)
