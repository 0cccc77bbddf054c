"""--invari-profile, -dataset, -k, -views, -queries, -seed and -baseline: how much is measured, on what."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project


ASKED = ("--invari-suite=small.invari.toml", "--reranker=first_stage")


def subjects(project: Project, *arguments: str, reranker: str = "first_stage") -> Any:
    project.run("--invari-json=report.json", *arguments, reranker=reranker)
    return json.loads((project.path / "report.json").read_text())["subjects"]


def test_a_profile_chooses_the_lengths(project: Project) -> None:
    names = project.ids(*ASKED, "--invari-profile=wide", "-k", "gpi")
    assert names == ["small::gpi[first_stage-tasks-K4]", "small::gpi[first_stage-tasks-K6]"]


def test_an_unknown_profile_is_refused(project: Project) -> None:
    result = project.run("--invari-profile=wid")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: suite 'small': unknown profile 'wid'. Did you mean 'wide'? Known: quick, wide."]
    )


def test_k_views_and_queries_replace_the_profiles(project: Project) -> None:
    first = subjects(project, "--invari-k=4", "--invari-views=3", "--invari-queries=31")[0]
    assert (first["k"], first["views"], first["queries"]) == (4, 3, 31)


@pytest.mark.parametrize(
    "more",
    [(), pytest.param(("-n1",), marks=pytest.mark.xdist), ("--invari-replay",)],
    ids=["alone", "workers", "replay"],
)
def test_the_header_says_where_a_data_set_has_fewer_queries(project: Project, more: tuple[str, ...]) -> None:
    run = ("--invari-records=kept", "-k", "calls")
    project.run(*run, "--invari-queries=32")
    for queries, told in (
        (1000, "1,000 queries); 4 checks; tasks has only 32 queries"),
        (32, "32 queries); 4 checks"),
    ):
        result = project.run(*run, f"--invari-queries={queries}", *more)
        result.assert_outcomes(passed=1)
        assert f"invari: small (quick: 5 views of {told}" in result.outlines


def test_several_lengths_are_separated_by_commas_or_repeated(project: Project) -> None:
    expected = [f"small::gpi[first_stage-tasks-K{k}]" for k in (3, 5, 6)]
    assert project.ids(*ASKED, "--invari-k=3,5", "--invari-k=6,5", "-k", "gpi") == expected


def test_the_ini_keys_are_the_defaults(project: Project) -> None:
    project.write(
        "pytest.ini", "[pytest]\ninvari_k = 4\ninvari_views = 3\ninvari_queries = 31\ninvari_seed = 9\n"
    )
    first = subjects(project)[0]
    assert (first["k"], first["views"], first["queries"]) == (4, 3, 31)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--invari-k=ten", "--invari-k: 'ten' is not a whole number of at least 1"),
        ("--invari-k=0", "--invari-k: '0' is not a whole number of at least 1"),
        ("--invari-k=4,,5", "--invari-k: '' is not a whole number of at least 1"),
        ("--invari-views=1", "--invari-views: '1' is not a whole number of at least 2"),
        ("--invari-queries=0", "--invari-queries: '0' is not a whole number of at least 1"),
        ("--invari-queries=-3", "--invari-queries: '-3' is not a whole number of at least 1"),
        ("--invari-seed=x", "--invari-seed: 'x' is not a whole number of at least 0"),
        ("--invari-device=tpu", "--invari-device: 'tpu' is not one of auto, cpu, cuda, cuda:N"),
        ("--invari-dtype=int8", "--invari-dtype: 'int8' is not one of auto, float32, bfloat16, float16"),
        ("--invari-batch-tokens=x", "--invari-batch-tokens: 'x' is not a whole number of at least 1"),
        ("--invari-k=", "--invari-k: '' is not a whole number of at least 1"),
        ("--invari-seed=", "--invari-seed: '' is not a whole number of at least 0"),
        ("--invari-dtype=", "--invari-dtype: '' is not one of auto, float32, bfloat16, float16"),
        ("--invari-device=", "--invari-device: '' is not one of auto, cpu, cuda, cuda:N"),
        ("--invari-profile=", "--invari-profile: the value is empty"),
        ("--invari-dataset=", "--invari-dataset: the value is empty"),
        ("--invari-baseline= ", "--invari-baseline: the value is empty"),
        ("--invari-model=", "--invari-model: the value is empty"),
        ("--invari-records=", "--invari-records: the value is empty"),
        ("--invari-json=", "--invari-json: the value is empty"),
        ("--invari-k=7", "*tasks*q0*6 candidates*7*"),
        ("--invari-k=2", "*query 'q0'*5 views asked for, but 2 candidates have only 1 order *"),
        ("--invari-dataset=missing.jsonl", "data set 'missing.jsonl': there is no such file or folder"),
        ("--invari-dataset=movielens_smal", "unknown data set*Did you mean 'movielens_small'*"),
        ("--invari-baseline=rando", "*unknown reranker 'rando'. Did you mean 'random'*"),
    ],
)  # fmt: skip
def test_an_impossible_value_is_one_line_and_exit_4(project: Project, option: str, message: str) -> None:
    result = project.run(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert not [line for line in result.errlines[1:] if line.strip()]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("invari_k = ten", "ini key invari_k: 'ten' is not*"),
        ("invari_strict = maybe", "ini key invari_strict: *maybe*"),
    ],
)
def test_a_bad_ini_value_names_its_key(project: Project, line: str, message: str) -> None:
    project.write("pytest.ini", f"[pytest]\n{line}\n")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_a_cutoff_beyond_the_list_is_refused_with_its_place(project: Project) -> None:
    result = project.pytest(
        "--invari-suite=recsys26", "--reranker=constant", "--invari-dataset=tasks.jsonl", "--invari-k=4"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.re_match_lines(
        [r"ERROR: --invari-k=4: criterion 'exposure' \(.*recsys26\.toml:\d+\) looks at the top 5; .*"]
    )


def test_data_sets_are_named_by_the_stem_of_their_path(project: Project) -> None:
    (project.path / "films.jsonl").write_text((project.path / "tasks.jsonl").read_text())
    names = project.ids(*ASKED, "--invari-dataset=films.jsonl", "--invari-dataset=./tasks.jsonl", "-k", "gpi")
    assert names == ["small::gpi[first_stage-films-K6]", "small::gpi[first_stage-tasks-K6]"]


def test_two_data_sets_that_look_the_same_in_ids_are_refused(project: Project) -> None:
    project.write("other/tasks.jsonl", (project.path / "tasks.jsonl").read_text())
    result = project.run("--invari-dataset=tasks.jsonl", "--invari-dataset=other/tasks.jsonl")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: data sets 'tasks.jsonl' and 'other/tasks.jsonl' would both be shown*"]
    )


def test_a_seed_draws_other_views_and_the_same_ones_again(project: Project) -> None:
    def figures(seed: int) -> Any:
        return subjects(project, f"--invari-seed={seed}", reranker="input_order")[0]["metrics"]["loc"]

    assert figures(1) == figures(1)
    assert figures(1) != figures(2)


def test_the_baseline_is_replaced(project: Project) -> None:
    result = project.run("--invari-baseline=constant", "-k", "vs_baseline")
    result.stdout.fnmatch_lines(["*loc minus constant's must be above 0*", "*1 undecided in *"])


def test_a_reranker_is_not_compared_with_itself(project: Project) -> None:
    result = project.run(reranker="random")
    result.stdout.fnmatch_lines(["LEFT OUT*loc_vs_baseline*random is itself the baseline"])


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("tasks.jsonl", "task.jsonl", 8, "data set 'task.jsonl': there is no such file or folder"),
        (
            "tasks.jsonl",
            "movielens_smal",
            8,
            "unknown data set 'movielens_smal'. Did you mean 'movielens_small'*",
        ),
        ('"random"', '"randm"', 5, "[[]suite]: baseline: unknown reranker 'randm'. Did you mean 'random'*"),
        (
            '"random"',
            '"biased:beta=x"',
            5,
            "[[]suite]: baseline: reranker 'biased:beta=x': option 'beta' must be*",
        ),
        (
            '= "baseline"',
            '= "orcale"',
            30,
            "criterion 'loc_vs_baseline': unknown reranker 'orcale'*'oracle'*",
        ),
        (
            '= "baseline"',
            '= "sgs:base=x"',
            30,
            "criterion 'loc_vs_baseline': reranker 'sgs:base=x': unknown*",
        ),
    ],
)
def test_what_a_suite_names_and_nobody_knows_is_told_with_its_line(
    project: Project, old: str, new: str, line: int, message: str
) -> None:
    path = project.path / "small.invari.toml"
    path.write_text(path.read_text().replace(old, new, 1))
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: small.invari.toml:{line}: {message}"])
    assert not [line for line in result.errlines[1:] if line.strip()]


def test_a_suite_without_a_baseline_names_the_option(project: Project) -> None:
    text = (project.path / "small.invari.toml").read_text().replace('baseline = "random"\n', "", 1)
    (project.path / "small.invari.toml").write_text(text)
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.re_match_lines(
        [r"ERROR: .*small\.invari\.toml:\d+: criterion 'loc_vs_baseline' needs a baseline; .*"]
    )
    project.run("--invari-baseline=random").assert_outcomes(passed=4)


def test_criteria_of_another_profile_or_number_of_views_are_left_out_and_said(project: Project) -> None:
    asked = ["--invari-suite=recsys26", "--reranker=constant", "--invari-baseline=random"]
    asked += ["--invari-dataset=tasks.jsonl", "--invari-k=6"]
    result = project.pytest(*asked)
    result.stdout.fnmatch_lines(["LEFT OUT  ppi*its bound is for exactly 20 views*", "*this run has 6"])
    names = project.ids(*asked, "--invari-views=20")
    assert "recsys26::ppi[constant-tasks-K6]" in names
