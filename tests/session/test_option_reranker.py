"""--invari-reranker and its alias --reranker: every way to name one, and what a bad one does to its items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project


HOOK = """
import pytest

def good(context, texts):
    return [float(text.split()[-1]) for text in texts]

def raising(context, texts):
    raise RuntimeError("out of paper\\nand ink \\x1b[31m")

@pytest.hookimpl(optionalhook=True)
def pytest_invari_rerankers(config):
    return {
        "good": good,
        "raising": raising,
        "short": lambda context, texts: [1.0],
        "nan": lambda context, texts: [float("nan")] * len(texts),
    }
"""


def test_the_long_name_and_the_alias_mean_the_same(project: Project) -> None:
    project.run("--invari-reranker=first_stage", reranker=None).assert_outcomes(passed=4)


def test_several_rerankers_are_columns_of_one_table(project: Project) -> None:
    result = project.run("--reranker=constant")
    result.assert_outcomes(passed=8)
    result.stdout.fnmatch_lines(["*first_stage*random*", "LOC*1.000*0.*", "*constant*", "LOC*1.000*"])


def test_options_stand_in_the_id_as_written(project: Project) -> None:
    assert "small::loc[biased:beta=0.5,noise=1-tasks-K6]" in project.ids(
        "--invari-suite=small.invari.toml", "--reranker=biased:beta=0.5,noise=1"
    )


def test_a_method_over_another_base(project: Project) -> None:
    project.run("-k", "calls", reranker="sgs:base=random").assert_outcomes(passed=1)


def test_a_conftest_hook_names_a_reranker(project: Project) -> None:
    project.write("conftest.py", HOOK)
    project.run(reranker="good").assert_outcomes(passed=4)


def test_module_and_attribute_need_no_registration(project: Project) -> None:
    project.write("mine_now.py", "def rank(context, texts):\n    return {text: -1.0 for text in texts}\n")
    project.write("mine_now.py", "def rank(context, texts):\n    return [float(t[-1]) for t in texts]\n")
    project.run(reranker="mine_now:rank").assert_outcomes(passed=4)


def test_a_table_in_pyproject_names_a_reranker(project: Project) -> None:
    project.write(
        "pyproject.toml", '[tool.pytest.ini_options]\n[tool.invari.rerankers.mine]\nreranker = "constant"\n'
    )
    project.run(reranker="mine").assert_outcomes(passed=4)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sg", "unknown reranker 'sg'. Did you mean 'sgs'*Known: *zero_shot*"),
        ("sgs:selct=2", "*selct*select*"),
        ("nowhere:rank", "*nowhere*"),
        ("biased:noise=-1", "*noise*"),
        ("sgs:base=rando", "*unknown reranker 'rando'. Did you mean 'random'*"),
        ("a b", "*is not of the form*"),
    ],
)
def test_a_bad_name_is_one_line_and_exit_4(project: Project, name: str, message: str) -> None:
    result = project.run(reranker=name)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    assert not [line for line in result.errlines[1:] if line.strip()]


@pytest.mark.parametrize(("name", "fault"), [("raising", "out of paper"), ("short", "1*6"), ("nan", "nan")])
def test_a_failing_reranker_fails_its_items_with_query_view_and_fault(
    project: Project, name: str, fault: str
) -> None:
    project.write("conftest.py", HOOK)
    result = project.run("--reranker=good", "-k", "calls", reranker=name)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [f"no figure: *160 of 160 rankings failed, the first for query 'q0', view 'seed0.0'*: *{fault}*"]
    )
    assert "\x1b[31m" not in result.stdout.str()


@pytest.mark.parametrize(
    ("policy", "outcomes"), [("strict", {"failed": 1}), ("drop", {"passed": 1}), ("random", {"passed": 1})]
)
def test_one_failure_counts_as_the_suite_says_and_is_told(
    project: Project, policy: str, outcomes: dict[str, int]
) -> None:
    path = project.path / "small.invari.toml"
    path.write_text(path.read_text().replace('baseline = "random"', f'on_failure = "{policy}"'))
    project.write(
        "mine_once.py",
        """
        seen = []

        def rank(context, texts):
            seen.append(texts)
            if len(seen) == 3:
                raise RuntimeError("only once")
            return [float(text.split()[-1]) for text in texts]
        """,
    )
    result = project.run("--invari-baseline=random", "-k", "gpi", reranker="mine_once:rank")
    assert result.parseoutcomes() == {"deselected": 3, **outcomes}
    text = " ".join(result.stdout.str().split())
    assert "1 of 160 rankings failed, the first for query 'q0'" in text
    assert "only once" in text


def test_a_secret_in_an_option_is_shown_nowhere(project: Project) -> None:
    project.write(
        "mine_keyed.py", "def make(api_key: str):\n    return lambda context, texts: [0.0 for _ in texts]\n"
    )
    result = project.run(
        "-v", "--invari-json=r.json", "--junitxml=j.xml", reranker="mine_keyed:make:api_key=hunter2"
    )
    result.assert_outcomes(passed=4)
    for text in (
        result.stdout.str(),
        (project.path / "r.json").read_text(),
        (project.path / "j.xml").read_text(),
    ):
        assert "hunter2" not in text
        assert "mine_keyed:make" in text


def test_a_failing_baseline_fails_what_is_compared_with_it(project: Project) -> None:
    project.write("conftest.py", HOOK)
    result = project.run("--invari-baseline=raising", reranker="good")
    result.assert_outcomes(failed=1, passed=3)
    result.stdout.fnmatch_lines(["no figure: loc minus raising's*baseline raising: *"])


@pytest.mark.parametrize("owner", ["conftest", "plugin"])
def test_the_alias_is_left_to_whoever_owns_it(project: Project, owner: str) -> None:
    text = "def pytest_addoption(parser):\n    parser.addoption('--reranker', default='theirs')\n"
    project.write("conftest.py" if owner == "conftest" else "theirs.py", text)
    load = [] if owner == "conftest" else ["-p", "theirs"]
    project.pytester.syspathinsert()
    project.write(
        "test_mine.py",
        "def test_it(pytestconfig):\n    assert pytestconfig.getoption('reranker') == 'theirs'\n",
    )
    project.run(*load, "--invari-reranker=first_stage", "test_mine.py", reranker=None).assert_outcomes(
        passed=5
    )
    result = project.run(*load, "--reranker=first_stage", reranker=None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *--invari-reranker=NAME (--reranker belongs to another plugin*"])


def test_a_hook_that_returns_no_mapping_is_refused(project: Project) -> None:
    project.write("conftest.py", HOOK.replace("return {", "return [0]\n    {"))
    result = project.run(reranker="good")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: hook pytest_invari_rerankers returned list; it must return a mapping*"]
    )
