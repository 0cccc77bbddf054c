"""A hook whose name is misspelt is told, and not silently ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project

OPTIONAL = "import pytest\n@pytest.hookimpl(optionalhook=True)\ndef {name}(config):\n    return {{}}\n"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("pytest_invari_metric", "pytest_invari_metrics"),
        ("pytest_invari_reranker", "pytest_invari_rerankers"),
        ("pytest_invari_update_reports", "pytest_invari_update_report"),
    ],
)
def test_a_suite_refuses_it_with_the_nearest_name(project: Project, name: str, meant: str) -> None:
    path = project.write("conftest.py", OPTIONAL.format(name=name))
    for result in (project.run(), project.pytest("--invari-list")):
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(
            [f"ERROR: {path}: unknown hook '{name}'. Did you mean '{meant}'* Known: *"]
        )


def test_the_fixture_refuses_it_in_a_conftest_of_a_folder_as_well(project: Project) -> None:
    project.write("inner/conftest.py", OPTIONAL.format(name="pytest_invari_criterias"))
    project.write("inner/test_it.py", "def test_it(invari):\n    pass\n")
    result = project.pytest("inner")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["E *UnknownNameError: *conftest.py: unknown hook 'pytest_invari_criterias'. Did you mean *"]
    )


def test_what_is_no_hook_of_ours_is_let_be(project: Project) -> None:
    project.write("conftest.py", OPTIONAL.format(name="pytest_other_metrics") + "pytest_invari_note = 3\n")
    project.run("-k", "calls").assert_outcomes(passed=1, deselected=3)


def test_an_ordinary_run_has_nothing_to_do_with_it(project: Project) -> None:
    project.write("conftest.py", OPTIONAL.format(name="pytest_invari_metric"))
    project.write("test_it.py", "def test_it():\n    pass\n")
    project.pytest().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("hook", "things"),
    [
        ("pytest_invari_metrics", "metrics"),
        ("pytest_invari_rerankers", "rerankers"),
        ("pytest_invari_criteria", "functions"),
    ],
)
def test_a_hook_that_forgets_to_return_is_told_with_its_place(
    project: Project, hook: str, things: str
) -> None:
    path = project.write("conftest.py", OPTIONAL.format(name=hook).replace("return {}", "{'mine': print}"))
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: hook {hook} in {path} returned nothing; it must return a mapping of names to {things}, *"]
    )
