"""How checks are collected and chosen: ids, -k, -m, ids as arguments, and what else runs beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project


IDS = [f"small::{name}[first_stage-tasks-K6]" for name in ("loc", "gpi", "loc_vs_baseline", "calls")]
ASKED = ("--invari-suite=small.invari.toml", "--reranker=first_stage")


def test_ids_name_criterion_reranker_data_set_and_length(project: Project) -> None:
    assert project.ids(*ASKED) == IDS


def test_collect_only_shows_the_suite_as_a_tree_and_measures_nothing(project: Project) -> None:
    result = project.run("--collect-only")
    result.stdout.fnmatch_lines(["*<SuiteNode small>*", "*<CheckItem loc?first_stage-tasks-K6?>*"])
    result.stdout.no_fnmatch_line("*= invari =*")
    assert result.ret == 0


def test_all_checks_of_a_consistent_reranker_pass(project: Project) -> None:
    project.run().assert_outcomes(passed=4)


@pytest.mark.parametrize("options", [("-q",), ("-v",), ("-vv",), ("--setup-plan",), ("--fixtures-per-test",)])
def test_output_options_do_not_disturb(project: Project, options: tuple[str, ...]) -> None:
    assert project.run(*options).ret == 0


def test_verbose_output_shows_whole_ids(project: Project) -> None:
    project.run("-v").stdout.fnmatch_lines(
        [f"{name.replace('[', '?').replace(']', '?')} PASSED*" for name in IDS]
    )


@pytest.mark.parametrize(
    ("expression", "count"),
    [("loc", 2), ("loc and not baseline", 1), ("tasks and gpi", 1), ("small", 4), ("first_stage", 4)],
)
def test_k_selects_by_criterion_data_set_reranker_and_suite(
    project: Project, expression: str, count: int
) -> None:
    assert len(project.ids(*ASKED, "-k", expression)) == count


def test_marker_selects_checks_and_not_ordinary_tests(project: Project) -> None:
    project.write("test_mine.py", "def test_mine(): pass")
    assert project.ids(*ASKED, "test_mine.py", "-m", "invari") == IDS
    assert project.ids(*ASKED, "test_mine.py", "-m", "not invari") == ["test_mine.py::test_mine"]


def test_deselect_takes_an_id(project: Project) -> None:
    assert project.ids(*ASKED, "--deselect", IDS[0]) == IDS[1:]


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.xdist)])
def test_deselect_takes_the_path_of_a_suite_as_arguments_do(
    project: Project, workers: tuple[str, ...]
) -> None:
    paths = ("small.invari.toml", str(project.path / "small.invari.toml"))
    deselected = [f"--deselect={path}::{name}" for path, name in zip(paths, ("loc[", "gpi"), strict=True)]
    project.run(*deselected, *workers).assert_outcomes(passed=2, deselected=0 if workers else 2)
    project.write("test_mine.py", "def test_it(): pass")
    both = ("test_mine.py", f"--deselect={paths[0]}", *workers)
    project.run(*both).assert_outcomes(passed=1, deselected=0 if workers else 4)


def test_everything_deselected_is_not_a_success(project: Project) -> None:
    assert project.run("-k", "nothing_of_this_name").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_suite_replaces_the_default_paths(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\ntestpaths = tests\n")
    project.write("tests/test_mine.py", "def test_mine(): pass")
    assert project.ids(*ASKED) == IDS


def test_given_paths_run_beside_the_suite(project: Project) -> None:
    project.write("tests/test_mine.py", "def test_mine(): pass")
    project.run("tests").assert_outcomes(passed=5)


def test_an_id_as_argument_runs_only_that_check(project: Project) -> None:
    assert project.ids(*ASKED, IDS[1]) == [IDS[1]]


def test_an_id_without_brackets_runs_it_for_every_subject(project: Project) -> None:
    assert project.ids(*ASKED, "--reranker=random", "small::gpi") == [IDS[1], "small::gpi[random-tasks-K6]"]


def test_a_pasted_id_of_a_packaged_suite_needs_no_other_option_for_suite_and_reranker(
    project: Project,
) -> None:
    name = "recsys26::loc[sgs:base=random-tasks-K6]"
    assert project.ids("--invari-dataset=tasks.jsonl", "--invari-k=6", name) == [name]


def test_an_id_as_pytest_prints_it_in_a_subfolder_is_understood(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("pytest.ini", "[pytest]\n")
    (project.path / "below").mkdir()
    monkeypatch.chdir(project.path / "below")
    asked = ("--invari-suite=../small.invari.toml", "--reranker=random")
    printed = next(line for line in project.pytest(*asked, "-k", "gpi").outlines if line.startswith("FAILED"))
    name = printed.split()[1]
    assert name == "../small::gpi[random-tasks-K6]"
    project.pytest(*asked, name).assert_outcomes(failed=1)


def test_an_unknown_id_is_refused_with_the_closest_one(project: Project) -> None:
    result = project.run("small::lo[first_stage-tasks-K6]")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: no check is called small::lo?*Did you mean small::loc?first_stage*"])


def test_the_id_of_a_left_out_check_says_why(project: Project) -> None:
    project.run("small::loc_vs_baseline[random-tasks-K6]", reranker="random").stderr.fnmatch_lines(
        ["ERROR: *is left out of this run: random is itself the baseline"]
    )


@pytest.mark.parametrize("folder", ["", "./", "deep/"])
def test_an_id_behind_the_path_of_its_suite_needs_no_other_option(project: Project, folder: str) -> None:
    for name in ("small.invari.toml", "tasks.jsonl"):
        project.write(f"deep/{name}", (project.path / name).read_text())
    path = f"{folder}small.invari.toml"
    assert project.ids(f"{path}::{IDS[1].partition('::')[2]}") == [IDS[1]]
    assert project.ids("--reranker=first_stage", f"{path}::gpi", f"{path}::loc") == IDS[:2]
    project.pytest(f"{path}::{IDS[1].partition('::')[2]}").assert_outcomes(passed=1)


def test_a_suite_among_the_arguments_is_run_whole_beside_an_id_of_another(project: Project) -> None:
    project.write_suite("other", depth="at_most = 1", calls="at_most = 1")
    names = project.ids("--reranker=first_stage", "small.invari.toml", "other.invari.toml::depth")
    assert names == [*IDS, "other::depth[first_stage-tasks-K6]"]


def test_an_id_behind_a_path_may_be_wrong(project: Project) -> None:
    missing = "suite 'missing.invari.toml': there is no such file"
    for argument, message in {
        "small.invari.toml::lok[first_stage-tasks-K6]": "no check is called small::lok*Did you mean small::*",
        "missing.invari.toml::loc[first_stage-tasks-K6]": missing,
        "missing.invari.toml": missing,
    }.items():
        result = project.pytest(argument, "--reranker=first_stage")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"ERROR: {message}"])


@pytest.mark.parametrize("folder", ["", "../"])
def test_the_id_of_an_unknown_suite_says_how_to_name_it(project: Project, folder: str) -> None:
    name = f"{folder}{IDS[1]}"
    result = project.pytest(name)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == (
        f"ERROR: {name}: no packaged suite is called 'small'; for one of your own add --invari-suite=PATH, "
        "or write PATH::gpi[first_stage-tasks-K6]"
    )


def test_what_looks_like_an_id_is_left_to_pyargs(project: Project) -> None:
    project.write(
        "small.py", "import pytest\n@pytest.mark.parametrize('x', ['a-K6'])\ndef test_it(x): pass\n"
    )
    project.pytester.syspathinsert()
    project.pytest("--pyargs", "small::test_it[a-K6]").assert_outcomes(passed=1)


def test_a_test_file_that_is_missing_is_still_pytests_error(project: Project) -> None:
    result = project.pytest("missing.py::test_x")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: file or directory not found: missing.py::test_x*"])


def test_a_suite_runs_in_an_empty_folder_and_leaves_nothing_there(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = project.path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    asked = ("--invari-suite=recsys26", "--reranker=first_stage", "--invari-baseline=random")
    extent = ("--invari-dataset=../tasks.jsonl", "--invari-k=6", "-k", "loc")
    result = project.pytest("-p", "no:cacheprovider", *asked, *extent)
    result.assert_outcomes(passed=2)
    assert list(empty.iterdir()) == []


def test_ids_are_the_same_from_every_folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("pytest.ini", "[pytest]\n")
    below = project.path / "below" / "deeper"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    asked = ("--invari-suite=../../small.invari.toml", "--reranker=first_stage")
    assert project.ids(*asked) == IDS


def test_order_is_reranker_then_length_then_criterion(project: Project) -> None:
    asked = ("--invari-suite=small.invari.toml", "--invari-profile=wide", "-k", "gpi")
    names = project.ids(*asked, "--reranker=constant", "--reranker=biased")
    assert names == [
        f"small::gpi[{reranker}-tasks-K{k}]" for reranker in ("constant", "biased") for k in (4, 6)
    ]


def test_hooks_of_the_root_conftest_see_the_checks(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                if item.name.startswith("gpi"):
                    item.add_marker(pytest.mark.skip(reason="known, see the tracker"))
        """,
    )
    result = project.run()
    result.assert_outcomes(passed=3, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*gpi*", "*skipped: known, see the tracker*"])


def test_a_check_may_be_expected_to_fail(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker(pytest.mark.xfail(reason="a coin has no preference"))
        """,
    )
    project.run("-k", "loc", reranker="random").assert_outcomes(xfailed=1)


@pytest.mark.parametrize("plugin", ["no:cacheprovider", "no:capture", "no:xdist", "no:junitxml"])
def test_other_plugins_may_be_switched_off(project: Project, plugin: str) -> None:
    project.run("-p", plugin, "-k", "loc").assert_outcomes(passed=2)


def test_without_the_terminal_the_verdicts_still_decide(project: Project) -> None:
    assert project.run("-p", "no:terminal").ret == 0
    assert project.run("-p", "no:terminal", reranker="random").ret == 1


def test_without_the_plugin_its_options_are_refused(project: Project) -> None:
    result = project.pytester.runpytest_subprocess("-p", "no:invari", "--invari-suite=recsys26")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
