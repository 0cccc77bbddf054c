"""The suites of a bank of views: what a run reports, shares with another, refuses and replays."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project

K, QUERIES = 12, 32
NOISY = "biased:noise=0.7"


@pytest.fixture
def lists(project: Project) -> str:
    """Controlled lists: a relevant head and tail candidate in each."""
    draw = random.Random(11)
    lines = []
    for query in range(QUERIES):
        candidates = [
            {
                "id": f"q{query}i{item:02}",
                "text": f"Film {item}",
                "group": "head" if item < K // 2 else "tail",
                "relevance": 1.0 if item in (0, K - 1) or draw.random() < 0.2 else None,
            }
            for item in range(K)
        ]
        draw.shuffle(candidates)
        row = {"query_id": f"q{query}", "text": "films", "stratum": "controlled", "candidates": candidates}
        lines.append(json.dumps(row))
    project.write("controlled.jsonl", "\n".join(lines) + "\n")
    return "controlled.jsonl"


def run(project: Project, suite: str, *arguments: str, reranker: str = NOISY) -> pytest.RunResult:
    return project.pytest(
        f"--invari-suite={suite}",
        f"--reranker={reranker}",
        "--invari-dataset=controlled.jsonl",
        f"--invari-k={K}",
        "--invari-json=report.json",
        *arguments,
    )


def report(project: Project) -> Any:
    return json.loads((project.path / "report.json").read_text())


@pytest.mark.usefixtures("lists")
def test_validity_is_shown_with_its_chance_levels_in_80_columns(project: Project) -> None:
    result = run(project, "independent_views")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            f"{NOISY} on controlled",
            f"independent views: {QUERIES} queries; probe canonical, 13; fresh target 23, 29, 31, 41;",
            "exposure variance *chance*p (Holm)",
            "rho, no probe view reused * 0.000 *",
            "rho, two reused * 0.544 *",
            "mechanical, 200 permuted *",
            "calls *rho with fresh target*",
            "1 - mean Kendall tau *",
        ]
    )
    begins = next(place for place, line in enumerate(result.outlines) if "= invari =" in line)
    assert max(map(len, result.outlines[begins:])) <= 80
    (subject,) = report(project)["subjects"]
    found = subject["analyses"]["independent_views"]["statistics"]["rho_0"]
    (criterion,) = report(project)["criteria"]
    assert (criterion["estimate"], criterion["low"]) == (found["estimate"], found["low"])
    assert "tables" not in subject


@pytest.mark.usefixtures("lists")
def test_the_second_suite_ranks_nothing_again(project: Project) -> None:
    run(project, "independent_views", "--invari-records=records")
    result = run(project, "routing", "--invari-records=records")
    result.stdout.fnmatch_lines(
        [
            "L_F canonical *",
            "V2@0.25 *",
            "always_aggregate *",
            f"*records: {8 * QUERIES} of {8 * QUERIES} rankings came from records*",
        ]
    )
    (subject,) = report(project)["subjects"]
    points = {each["name"]: each for each in subject["analyses"]["routing"]["points"]}
    assert points["V2@0.25"]["views"] == 3.0
    assert points["entropy@0.25"]["views"] == 2.0
    verdicts = {each["criterion"]: each for each in report(project)["criteria"]}
    assert verdicts["not_dominated"]["estimate"] == float(bool(points["V2@0.25"]["dominators"]))


@pytest.mark.xdist
@pytest.mark.usefixtures("lists")
@pytest.mark.parametrize("suite", ["independent_views", "routing"])
def test_records_and_workers_give_the_same_report(project: Project, suite: str) -> None:
    def found(*arguments: str) -> Any:
        run(project, suite, *arguments)
        whole = report(project)
        del whole["environment"]
        for subject in whole["subjects"]:
            del subject["rankings_from_records"]
        return whole

    live = found("--invari-records=records")
    assert found("--invari-records=records", "--invari-replay") == live
    assert found("--invari-records=records", "-n1") == live


@pytest.mark.usefixtures("lists")
def test_a_policy_without_scores_is_named_and_left_out(project: Project) -> None:
    project.write("mine_ids.py", "def rank(context, texts):\n    return [str(each) for each in []]\n")
    result = run(project, "routing", reranker="random")
    result.stdout.fnmatch_lines(["*entropy*no*scores*"])
    assert "entropy@0.25" not in result.stdout.str()
    assert "V2@0.25" in result.stdout.str()


@pytest.mark.usefixtures("lists")
def test_a_constant_instability_has_no_correlation_and_fails_with_its_reason(project: Project) -> None:
    result = run(project, "independent_views", reranker="oracle")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*undefined: constant_values*"])


def test_lists_that_are_not_controlled_have_no_signed_outcome(project: Project, lists: str) -> None:
    text = (project.path / lists).read_text()
    (project.path / lists).write_text(text.replace('"stratum": "controlled", ', ""))
    result = run(project, "routing")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = " ".join(line.strip() for line in result.outlines)
    assert "is defined on controlled lists only" in text
    assert "INTERNALERROR" not in text
    assert report(project)["subjects"][0]["analyses"] == {}


BANK = """
bank = ["canonical", 13, 17, 19, 23, 29, 31, 41]
probe = ["canonical", 13]
target = [23, 29, 31, 41]
"""


@pytest.mark.parametrize(
    ("profile", "criterion", "message"),
    [
        ("views = 6", 'metric = "rho_0"\nat_least = 0.1', "has no bank with a probe and a target"),
        (BANK, 'metric = "rho_0"\nbetter_than = "random"', "it is a finding about one reranker"),
        (BANK, 'metric = "rho_2"\nat_least = 0.1', "use rho_0, or say allow_overlap = true"),
        (BANK.replace("[23, 29, 31, 41]", "[23, 29]"), 'metric = "rho_0"\nat_least = 0.1', "in the target"),
        (BANK, 'metric = "v2_dominated"\nat_most = 0', "write 'v2_dominated@5'"),
    ],
)
def test_mistakes_are_told_with_file_and_line(
    project: Project, profile: str, criterion: str, message: str
) -> None:
    project.write(
        "views.invari.toml",
        f'[suite]\nname = "views"\n[profile.quick]\ndatasets = "tasks.jsonl"\nk = 6\n{profile}\n'
        f'[[criterion]]\nname = "one"\n{criterion}\n',
    )
    result = project.pytest("--invari-suite=views.invari.toml", f"--reranker={NOISY}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [each for each in result.errlines if each.startswith("ERROR")]
    assert message in line
    assert "views.invari.toml:" in line


@pytest.mark.usefixtures("lists")
def test_a_reused_target_is_shown_beside_the_level_that_reuse_alone_gives(project: Project) -> None:
    project.write(
        "views.invari.toml",
        f'[suite]\nname = "views"\n[profile.quick]\ndatasets = "controlled.jsonl"\nk = {K}\n{BANK}\n'
        'allow_overlap = true\n[[criterion]]\nname = "reused"\nmetric = "rho_2"\nat_least = 0.9\n',
    )
    result = run(project, "views.invari.toml")
    text = " ".join(line.strip() for line in result.outlines)
    assert "reusing views alone would give 0." in text


@pytest.mark.usefixtures("lists")
def test_two_suites_over_the_same_views_report_what_each_of_them_analyses(project: Project) -> None:
    run(project, "independent_views", "--invari-suite=routing")
    [subject] = report(project)["subjects"]
    assert list(subject["analyses"]) == ["independent_views", "routing"]
