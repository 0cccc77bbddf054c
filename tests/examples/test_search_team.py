"""The example project, copied elsewhere and run as its README says."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.docs.test_documentation import ROOT, commands
from tests.session.conftest import QUIET

EXAMPLE = ROOT / "examples" / "search_team"
GATE = "--invari-suite=search.invari.toml"
COMPARED = "--invari-compare=baseline.json"
VERDICTS = "criteria: 7 passed, 0 failed, 0 undecided"
ENDS = {
    "pytest": ["*3 passed*"],
    COMPARED: [VERDICTS, "baseline baseline.json: 6 same"],
    "2": ["invari: search (nightly: 12 views of all queries); 7 checks", VERDICTS],
    "--reranker=literal": ["PASS*ndcg?literal-tasks-K8?*", VERDICTS],
    "--invari-save=baseline.json": [VERDICTS, "saved: 5 metrics in baseline.json"],
}
"""What a command of the README shows, by its last word."""
IN_THIS_PROCESS = {"--reranker=literal", "--invari-save=baseline.json", "--invari-json=alone.json"}


@pytest.fixture
def copied(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A copy without what a run in place may have left."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    unwanted = shutil.ignore_patterns("__pycache__", ".*", "*.pyc")
    shutil.copytree(EXAMPLE, pytester.path, ignore=unwanted, dirs_exist_ok=True)
    return pytester


def typed(pytester: pytest.Pytester, arguments: list[str]) -> pytest.RunResult:
    """Run pytest in a process of its own; where it would only be a repetition, in this one."""
    if IN_THIS_PROCESS & set(arguments):
        return pytester.runpytest_inprocess(*QUIET, *arguments)
    return pytester.run(sys.executable, "-m", "pytest", *arguments)


@pytest.mark.xdist
def test_the_readme_runs_and_workers_change_no_figure(copied: pytest.Pytester) -> None:
    run = [shlex.split(command) for command in commands(EXAMPLE / "README.md")]
    assert [command[-1] for command in run] == list(ENDS)
    stored = values(copied.path / "baseline.json")
    for program, *arguments in run:
        assert program == "pytest"
        report = ["--invari-json=workers.json"] if "-n" in arguments else []
        result = typed(copied, [*arguments, *report])
        assert result.ret == 0, result.stdout.str()
        result.stdout.fnmatch_lines(ENDS[[program, *arguments][-1]])
    assert values(copied.path / "baseline.json") == stored
    assert typed(copied, [GATE, "--invari-profile=nightly", "--invari-json=alone.json"]).ret == 0
    alone = figures(copied.path / "alone.json")
    assert alone == figures(copied.path / "workers.json")
    assert alone["loc"][0] == 1.0
    assert alone["loc_vs_previous"][1] > 0.3
    assert alone["page"][0] == 0.0
    assert alone["calls"] == (1.0, 1.0, 1.0)


def values(baseline: Path) -> dict[str, object]:
    """Each entry's values by query, and of what it was made the keys alone: versions may be others here."""
    entries = json.loads(baseline.read_text(encoding="utf-8"))["entries"]
    return {name: (sorted(entry["made"]), entry["queries"]) for name, entry in entries.items()}


def figures(report: Path) -> dict[str, tuple[float, float, float]]:
    """Estimate and interval of each criterion."""
    criteria = json.loads(report.read_text(encoding="utf-8"))["criteria"]
    return {each["criterion"]: (each["estimate"], each["low"], each["high"]) for each in criteria}


def test_a_worse_reranker_turns_the_gate_red(copied: pytest.Pytester) -> None:
    module = copied.path / "team_search.py"
    rule = "len(wanted.intersection(title))"
    text = module.read_text(encoding="utf-8")
    assert text.count(rule) == 1
    module.write_text(text.replace(rule, "0.0"), encoding="utf-8")
    result = copied.runpytest_inprocess(*QUIET, GATE, COMPARED)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*REGRESSED ndcg@baseline*"])
