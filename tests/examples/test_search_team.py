"""The example project, copied elsewhere and run as its README says."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.docs.test_documentation import ROOT, commands

EXAMPLE = ROOT / "examples" / "search_team"
GATE = "--invari-suite=search.invari.toml"
VERDICTS = "criteria: 4 passed, 0 failed, 0 undecided"


@pytest.fixture
def copied(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A copy without what a run in place may have left."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    unwanted = shutil.ignore_patterns("__pycache__", ".*", "*.pyc")
    shutil.copytree(EXAMPLE, pytester.path, ignore=unwanted, dirs_exist_ok=True)
    return pytester


def figures(pytester: pytest.Pytester, *arguments: str) -> list[tuple[str, float, float, float]]:
    """The criteria of a run in a process of its own, which must pass."""
    result = pytester.run(sys.executable, "-m", "pytest", GATE, "--invari-json=report.json", *arguments)
    assert result.ret == 0, result.stdout.str()
    report = json.loads((pytester.path / "report.json").read_text(encoding="utf-8"))
    return [(each["criterion"], each["estimate"], each["low"], each["high"]) for each in report["criteria"]]


def test_the_readme_runs_from_top_to_bottom(copied: pytest.Pytester) -> None:
    ends = {
        "pytest": ["*3 passed*"],
        "--invari-compare=baseline.json": [VERDICTS, "baseline baseline.json: 4 same"],
        "2": ["*invari: search (nightly: 24 views of all queries); 4 checks", VERDICTS],
        "--reranker=literal": ["PASS*ndcg?literal-tasks-K8?*", VERDICTS],
        "--invari-save=baseline.json": [VERDICTS, "saved: 3 metrics in baseline.json"],
    }
    run = [shlex.split(command) for command in commands(EXAMPLE / "README.md")]
    assert [command[-1] for command in run] == list(ends)
    before = values(copied.path / "baseline.json")
    for command in run:
        assert command[0] == "pytest"
        result = copied.run(sys.executable, "-m", *command)
        assert result.ret == 0, result.stdout.str()
        result.stdout.fnmatch_lines(ends[command[-1]])
    assert values(copied.path / "baseline.json") == before


def values(baseline: Path) -> dict[str, object]:
    """Each entry's values by query, without the versions that they were measured with."""
    entries = json.loads(baseline.read_text(encoding="utf-8"))["entries"]
    return {name: entry["queries"] for name, entry in entries.items()}


def test_figures_do_not_depend_on_the_number_of_processes(copied: pytest.Pytester) -> None:
    alone = figures(copied)
    assert alone == figures(copied, "-n", "2")
    by_name = {name: (estimate, low) for name, estimate, low, _ in alone}
    assert by_name["loc"][0] == 1.0
    assert by_name["loc_vs_previous"][1] > 0.3
    assert by_name["calls"] == (1.0, 1.0)


def test_a_worse_reranker_turns_the_gate_red(copied: pytest.Pytester) -> None:
    module = copied.path / "team_search.py"
    rule = "len(wanted.intersection(title))"
    assert module.read_text(encoding="utf-8").count(rule) == 1
    module.write_text(module.read_text(encoding="utf-8").replace(rule, "0.0"), encoding="utf-8")
    result = copied.run(sys.executable, "-m", "pytest", GATE, "--invari-compare=baseline.json")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*REGRESSED ndcg@baseline*"])
