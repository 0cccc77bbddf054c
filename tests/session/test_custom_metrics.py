"""Metrics of the users' own: named by a hook, and used wherever a built-in one is."""

# ruff: noqa: E501  # a table reads better with a case a line

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_invari.metrics import metric_names

if TYPE_CHECKING:
    from tests.session.conftest import Project

# A slow and plain LOC, and the share of views in which the first item is not the first view's.
CONFTEST = """
import itertools
import pytest
from pytest_invari import CustomMetric

def slow_loc(lists):
    values = []
    for views in lists.ranks.tolist():
        taus = []
        for one, other in itertools.combinations(views, 2):
            agree = 0
            for i, j in itertools.combinations(range(len(one)), 2):
                agree += 1 if (one[i] < one[j]) == (other[i] < other[j]) else -1
            taus.append(agree / (len(one) * (len(one) - 1) / 2))
        values.append(sum(taus) / len(taus))
    return values

def top_moves(lists):
    first = lists.ranks.argmin(axis=2)
    return (first != first[:, :1]).mean(axis=1)

def relevant_on_top(lists):
    on_top = lists.ranks < lists.k
    return [
        sum(lists.relevance[query, items].any() for items in views) / len(views)
        for query, views in enumerate(on_top)
    ]

@pytest.hookimpl(optionalhook=True)
def pytest_invari_metrics(config):
    share = {"low": 0.0, "high": 1.0}
    return {
        "slow_loc": CustomMetric(slow_loc, direction="higher", low=-1, high=1, description="LOC, slowly"),
        "top_moves": CustomMetric(top_moves, direction="lower", **share, description="the first item moves"),
        "relevant": CustomMetric(
            relevant_on_top, direction="higher", **share, description="HR, slowly", has_cutoff=True
        ),
    }
"""

SUITE = """
[suite]
name = "own"
report = ["slow_loc", "relevant@2"]

[profile.quick]
datasets = ["tasks.jsonl"]
k = 6
views = 5

[[criterion]]
name = "moves"
metric = "top_moves"
at_most = 0.9

[[criterion]]
name = "top"
metric = "relevant@3"
at_least = 0.1

[[criterion]]
name = "better"
metric = "slow_loc"
better_than = "random"
"""

BROKEN = """
import numpy as np
import pytest
from pytest_invari import CustomMetric

def mine(lists):
    BODY

@pytest.hookimpl(optionalhook=True)
def pytest_invari_metrics(config):
    return {"mine": CustomMetric(mine, direction="lower", low=0, high=1, description="mine")}
"""


def write_metric(project: Project, body: str) -> None:
    """Write a metric ``mine`` whose function has this body, in line 6 of its file."""
    project.write("conftest.py", BROKEN.lstrip("\n").replace("BODY", body))


@pytest.fixture
def own(project: Project) -> Project:
    project.write("conftest.py", CONFTEST)
    project.write("own.invari.toml", SUITE)
    return project


def run(project: Project, *arguments: str, reranker: str = "biased:noise=1") -> pytest.RunResult:
    return project.pytest("own.invari.toml", f"--reranker={reranker}", *arguments)


def report(project: Project) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((project.path / "report.json").read_text(encoding="utf-8"))
    return content


def test_criteria_table_and_report_have_them_by_name(own: Project) -> None:
    result = run(own, "--invari-json=report.json")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["slow loc *n=32*", "top moves *n=32*", "relevant@2 *n=32*", "PASS * moves*"])
    figures = report(own)["subjects"][0]["metrics"]
    assert {"top_moves", "slow_loc", "relevant@2", "relevant@3"} <= figures.keys()
    assert 0 < figures["top_moves"]["estimate"] < 1
    assert [each["metric"] for each in report(own)["criteria"]] == ["top_moves", "relevant@3", "slow_loc"]


def test_one_that_computes_a_built_in_metric_has_its_very_interval(own: Project) -> None:
    own.write("own.invari.toml", SUITE.replace('"slow_loc", "relevant@2"', '"loc", "slow_loc", "hr@3"'))
    run(own, "--invari-json=report.json").assert_outcomes(passed=3)
    for subject in report(own)["subjects"]:
        figures = subject["metrics"]
        for mine, built_in in (("slow_loc", "loc"), ("relevant@3", "hr@3")):
            assert figures[mine] == pytest.approx(figures[built_in], abs=1e-12), (subject["reranker"], mine)
            assert figures[mine]["n"] == 32
    assert (
        report(own)["subjects"][0]["metrics"]["loc"]["low"]
        < report(own)["subjects"][0]["metrics"]["loc"]["high"]
    )


@pytest.mark.xdist
def test_workers_know_them(own: Project) -> None:
    result = run(own, "-n2", "--invari-json=report.json")
    result.assert_outcomes(passed=3)
    alone = report(own)["subjects"]
    run(own, "--invari-json=report.json")
    figures = [
        [subject["metrics"]["top_moves"] for subject in each] for each in (alone, report(own)["subjects"])
    ]
    assert figures[0] == figures[1]


def test_they_are_listed_and_forgotten_after_the_run(own: Project) -> None:
    result = own.pytest("--invari-list")
    result.stdout.fnmatch_lines(
        [
            "  loc  *",
            "  relevant@k  *HR, slowly",
            "  slow_loc  *LOC, slowly",
            "  top_moves  *the first item moves",
        ]
    )
    assert "top_moves" not in metric_names()
    run(own, "--collect-only", "-q").stdout.fnmatch_lines(["own::moves*"])
    assert "top_moves" not in metric_names()


def test_a_run_within_a_run_has_only_its_own(own: Project) -> None:
    own.write(
        "test_nested.py",
        """
        from pytest_invari.metrics import metric_names

        pytest_plugins = "pytester"

        def test_it(pytester):
            assert "top_moves" in metric_names()
            inner = pytester.makepyfile("from pytest_invari.metrics import metric_names\\n"
                "def test_it(): assert 'loc' in metric_names() and 'top_moves' not in metric_names()")
            pytester.runpytest_inprocess("-p", "no:hypothesispytest", inner).assert_outcomes(passed=1)
            assert "top_moves" in metric_names()
        """,
    )
    own.pytest("test_nested.py").assert_outcomes(passed=1)


OWN_TEST = """
def rank(context, texts):
    return [float(text[-1]) - place / 2 for place, text in enumerate(texts)]

def test_it(invari):
    study = invari.study(rank, "tasks.jsonl", views=5)
    study.assert_at_least("slow_loc", 0.1)
    assert study.interval("slow_loc").estimate == study.interval("loc").estimate
    assert list(study.frame("top_moves", "relevant@2").columns) == ["top_moves", "relevant@2"]

def test_fails(invari):
    invari.study(rank, "tasks.jsonl", views=5).assert_at_most("top_moves", 0.01)
"""


def test_the_fixture_takes_them_in_a_run_without_a_suite(own: Project) -> None:
    own.write("test_mine.py", OWN_TEST)
    result = own.pytest()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*n=32: top_moves must be at most 0.01"])


def test_the_fixture_takes_those_of_folders_below(project: Project) -> None:
    project.write("deep/down/conftest.py", CONFTEST)
    project.write(
        "deep/down/test_mine.py", OWN_TEST.replace("tasks.jsonl", str(project.path / "tasks.jsonl"))
    )
    project.pytest().assert_outcomes(passed=1, failed=1)


def test_a_baseline_holds_them_until_their_function_changes(own: Project) -> None:
    run(own, "--invari-save=base.json").assert_outcomes(passed=3)
    result = run(own, "--invari-compare=base.json")
    # Reported ones are compared too.
    result.assert_outcomes(passed=7)
    result.stdout.fnmatch_lines(["SAME * moves@baseline*", "SAME * relevant@2@baseline*"])
    own.write("conftest.py", CONFTEST.replace("first[:, :1]", "first[:, 1:2]"))
    result = run(own, "--invari-compare=base.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: base.json: own::top_moves[[]*does not fit this run: metric.sha256 recorded with *, now *"]
    )


def test_a_version_says_when_a_function_has_changed(own: Project) -> None:
    versioned = CONFTEST.replace("    share = {", '    share = {"version": "1", ')
    versioned = versioned.replace('description="LOC, slowly"', 'description="LOC, slowly", version="1"')
    own.write("conftest.py", versioned)
    run(own, "--invari-save=base.json").assert_outcomes(passed=3)
    own.write("conftest.py", versioned + "\n# Nothing that matters.\n")
    run(own, "--invari-compare=base.json").assert_outcomes(passed=7)
    own.write("conftest.py", versioned.replace('"version": "1"', '"version": "2"'))
    result = run(own, "--invari-compare=base.json")
    result.stderr.fnmatch_lines(
        ["ERROR: base.json: own::top_moves*metric.version recorded with '1', now '2'*"]
    )


def test_a_self_check_takes_them(own: Project) -> None:
    suite = SUITE[: SUITE.index('[[criterion]]\nname = "top"')]
    own.write("own.invari.toml", suite)
    asked = ("--invari-suite=own.invari.toml", "--invari-simulations=20", "--invari-queries=30")
    result = own.pytest("--invari-selfcheck", *asked)
    result.stdout.fnmatch_lines(["*top_moves*"])
    assert result.ret in (0, 1)
    assert "rror" not in result.stdout.str()


HOOK = "hook pytest_invari_metrics"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"top_moves"', '"loc"', f"{HOOK}: 'loc' is a built-in metric; give yours another name"),
        ('"top_moves"', '"Top"', f"{HOOK}: 'Top' is no name of a metric; a name has lower-case*"),
        ('"top_moves"', '"a@5"', f"{HOOK}: 'a@5' is no name of a metric; *"),
        ('"top_moves"', "3", f"{HOOK}: 3 is no name of a metric; *"),
        ("CustomMetric(top_moves, ", "dict(", f"{HOOK}: 'top_moves' must be a CustomMetric, not {{*"),
        ('direction="lower"', 'direction="down"', "direction must be 'lower' or 'higher', not 'down'"),
        (
            "**share, description",
            "low=1, high=1, description",
            "low must be below high, and 1 is not below 1",
        ),
        ('"low": 0.0', '"low": float("nan")', "TypeError: low must be a number, not nan"),
        ('"low": 0.0', '"low": "0"', "TypeError: low must be a number, not '0'"),
        ('"the first item moves"', '" "', "description must say what the metric is, not ' '"),
        ("has_cutoff=True", "has_cutoff=5", "has_cutoff must be True or False, not 5"),
        ("(top_moves, ", "(None, ", "TypeError: function must be a function of the lists, not None"),
        (
            "def top_moves(lists):",
            "def top_moves(lists, k):",
            "must take one argument, the lists, and not (lists, k)",
        ),
        (
            "    return {",
            "    return [1]\n    return {",
            f"{HOOK} returned list; it must return a mapping of names*",
        ),
        (
            "    return {",
            "    raise LookupError('no shop')\n    return {",
            f"{HOOK} raised LookupError: no shop*",
        ),
    ],
)
def test_a_hook_that_names_none_is_refused_before_anything_runs(
    own: Project, old: str, new: str, message: str
) -> None:
    assert old in CONFTEST
    own.write("conftest.py", CONFTEST.replace(old, new))
    own.write("test_mine.py", "def test_it(): print('ran')")
    for asked in (("own.invari.toml", "--reranker=random"), ("test_mine.py",), ("--invari-list",)):
        result = own.pytest(*asked)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"ERROR: {HOOK}*{message.removeprefix(HOOK)}*"])
        assert len([line for line in result.errlines if line.strip()]) == 1
        assert "ran" not in result.outlines
        if "raised" in result.errlines[0]:
            assert f"({own.path}/conftest.py, line " in result.errlines[0]


def test_a_name_given_twice_is_refused(own: Project) -> None:
    own.write("more.py", CONFTEST)
    own.pytester.syspathinsert()
    result = run(own, "-p", "more")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {HOOK}: 'slow_loc' is given by two implementations"])


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("top_move", "unknown metric 'top_move'. Did you mean 'top_moves'?*"),
        ("relevant", "metric 'relevant': relevant needs the length of the top*; write 'relevant@5'*"),
        ("top_moves@5", "metric 'top_moves@5': top_moves takes no @; write 'top_moves'*"),
    ],
)
def test_a_suite_that_writes_it_otherwise_is_told(own: Project, metric: str, message: str) -> None:
    own.write("own.invari.toml", SUITE.replace('metric = "top_moves"', f'metric = "{metric}"'))
    result = run(own)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *own.invari.toml:13: *{message}"])


def test_a_bound_outside_its_range_is_refused(own: Project) -> None:
    own.write("own.invari.toml", SUITE.replace("at_most = 0.9", "at_most = 1.5"))
    result = run(own)
    result.stderr.fnmatch_lines(["ERROR: *at_most = 1.5 cannot be meant: top_moves lies between 0 and 1*"])


WHO = f"metric 'mine' of {HOOK}: its function"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return lists.missing", f"{WHO} raised AttributeError: *missing*conftest.py, line 6)"),
        ("raise SystemExit(3)", f"{WHO} raised SystemExit: 3 (*conftest.py, line 6)"),
        ("pytest.skip('later')", f"{WHO} raised Skipped: later (*conftest.py, line 6)"),
        ("return np.log(lists.relevance - 1).sum(axis=1)", f"{WHO} raised RuntimeWarning: *conftest.py, line 6)"),
        ("return lists.ranks.mean(axis=2)", f"{WHO} returned an array of shape (32, 5); it must return one *"),
        ("return 0.5", f"{WHO} returned an array of shape (); it must return one number a query, here 32 numbers"),
        ("return None", f"{WHO} returned None (NoneType); it must return numbers, one a query"),
        ("return ['0.5'] * 32", f"{WHO} returned *(list); it must return numbers, one a query"),
        ("return [[1], [1, 2]]", f"{WHO} returned *1, 2]] (list); it must return numbers, one a query"),
        ("return np.ones(32) * 1j", f"{WHO} returned array(*(ndarray); it must return numbers, one a query"),
        ("return np.ma.ones(32)", f"{WHO} returned a masked array; put NaN where a query has no value"),
        ("return [0.5] * 31 + [1.5]", f"{WHO} returned 1.5 for query 'q31'; values must lie between 0 and 1, and *"),
        ("return [0.5, -0.1] + [1] * 30", f"{WHO} returned -0.1 for query 'q1'; values must lie between*"),
        ("return [float('inf')] * 32", f"{WHO} returned inf for query 'q0'; values must lie between*"),
    ],
)  # fmt: skip
def test_a_function_that_breaks_fails_its_criterion_alone_with_one_line(
    project: Project, body: str, message: str
) -> None:
    write_metric(project, body)
    project.write_suite("own", mine="at_most = 0.5", loc="at_least = 0.1")
    result = project.pytest("own.invari.toml", "--reranker=first_stage", "--invari-json=report.json")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([f"no figure: mine must be at most 0.5; nothing measured: {message}"])
    result.stdout.no_fnmatch_line("*Traceback*")
    figure = report(project)["subjects"][0]["metrics"]["mine"]
    assert figure["estimate"] is None
    assert figure["reason"].startswith(WHO)


def test_a_broken_function_is_one_line_in_a_test_and_in_a_self_check_too(project: Project) -> None:
    write_metric(project, "raise KeyError('shop')")
    project.write_suite("own", mine="at_most = 0.5")
    asked = ("--invari-suite=own.invari.toml", "--invari-simulations=20", "--invari-queries=30")
    result = project.pytest("--invari-selfcheck", *asked, "-k", "noise")
    assert result.parseoutcomes()["failed"] >= 1
    told = f"{WHO} raised KeyError: 'shop' ({project.path}/conftest.py, line 6)"
    result.stdout.fnmatch_lines([f"nothing simulated: {told}"])
    project.write("test_mine.py", OWN_TEST.replace("top_moves", "mine"))
    result = project.pytest("test_mine.py", "-k", "fails")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E  *InvariError: {told}"])
    for line in result.outlines:
        assert "custom_values" not in line


def test_one_that_is_only_reported_says_what_broke(project: Project) -> None:
    write_metric(project, "return [2] * 32")
    project.write_suite("own", loc="at_least = 0.1")
    suite = (project.path / "own.invari.toml").read_text(encoding="utf-8")
    project.write("own.invari.toml", suite.replace('name = "own"', 'name = "own"\nreport = ["mine"]'))
    result = project.pytest("own.invari.toml", "--reranker=first_stage")
    result.assert_outcomes(passed=1)
    assert f"undefined ({WHO} returned 2 for query 'q0'" in " ".join(result.stdout.str().split())


def test_what_a_function_prints_and_how_it_ends_belongs_to_the_item(project: Project) -> None:
    project.write_suite("own", loc="at_least = 0.1")
    suite = (project.path / "own.invari.toml").read_text(encoding="utf-8")
    project.write("own.invari.toml", suite.replace('name = "own"', 'name = "own"\nreport = ["mine"]'))
    write_metric(project, "print('so many:', len(lists.ids)); return [0] * 32")
    result = project.pytest("own.invari.toml", "--reranker=first_stage", "-rP")
    result.stdout.fnmatch_lines(["*Captured stdout call*", "so many: 32"])
    write_metric(project, "pytest.fail('over time')")
    result = project.pytest("own.invari.toml", "--reranker=first_stage")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*over time*"])


def test_nan_is_undefined_and_never_zero(project: Project) -> None:
    write_metric(project, "return np.where(np.arange(32) < 1, np.nan, 0.25)")
    project.write_suite("own", mine="at_most = 0.5")
    result = project.pytest("own.invari.toml", "--reranker=first_stage", "--invari-save=base.json")
    result.assert_outcomes(passed=1)
    saved = json.loads((project.path / "base.json").read_text(encoding="utf-8"))
    [entry] = saved["entries"].values()
    assert entry["queries"].pop("q0") == "undefined_by_metric"
    assert set(entry["queries"].values()) == {0.25}
    write_metric(project, "return np.full(32, np.nan)")
    result = project.pytest("own.invari.toml", "--reranker=first_stage", "--invari-json=report.json")
    result.assert_outcomes(failed=1)
    assert report(project)["subjects"][0]["metrics"]["mine"]["reason"] == "undefined_by_metric"


def test_a_function_cannot_change_what_others_are_computed_from(project: Project) -> None:
    body = "lists.ranks[:] = 0; lists.positions[:] = 0; lists.relevance[:] = 0; return [0.5] * 32"
    write_metric(project, body)
    figures = []
    for criteria in ({"loc": "at_least = 0.1", "ppi": "at_most = 0.9"}, {"mine": "at_most = 0.9"}):
        project.write_suite("own", **criteria, gpi="at_most = 0.4")
        project.pytest("own.invari.toml", "--reranker=biased:noise=1", "--invari-json=report.json")
        found = report(project)["subjects"][0]["metrics"]
        figures.append(
            {name: found[name] for name in ("loc", "ppi", "gpi", "ndcg@5", "bucket_agreement_gap")}
        )
    assert figures[0] == figures[1]


def test_the_lists_are_what_was_shown_ranked_and_known(project: Project) -> None:
    write_metric(
        project,
        """
    [views, items] = lists.ranks.shape[1:]
    assert lists.positions.shape == lists.ranks.shape == (32, 5, 6) and lists.k is None
    for query, ids in enumerate(lists.ids):
        name = lists.query_ids[query]
        assert name == f"q{query}" and list(ids) == [f"{name}i{item}" for item in range(6)]
        assert lists.relevance[query].tolist() == [1, 1, 0, 0, 0, 0] and lists.relevant_total[query] == 2
        assert lists.groups[query] == (None,) * 6
        # The reranker echoes its input.
        assert (lists.positions[query] == lists.ranks[query]).all()
        assert (np.sort(lists.ranks[query]) == np.arange(6)).all()
    assert len(np.unique(lists.positions[0], axis=0)) == 5
    return np.full(32, 0.25)""",
    )
    project.write_suite("own", mine="at_most = 0.5")
    project.pytest("own.invari.toml", "--reranker=input_order").assert_outcomes(passed=1)


def test_ties_are_half_where_the_suite_says_so(project: Project) -> None:
    write_metric(project, "return (lists.ranks == 0).all(axis=2).mean(axis=1)")
    project.write_suite("own", mine="at_least = 0.5")
    suite = (project.path / "own.invari.toml").read_text(encoding="utf-8")
    project.write("equal.py", "def rank(context, texts):\n    return [0.5 for text in texts]\n")
    project.pytest("own.invari.toml", "--reranker=equal:rank").assert_outcomes(failed=1)
    project.write("own.invari.toml", suite.replace('name = "own"', 'name = "own"\nties = "half"'))
    project.pytest("own.invari.toml", "--reranker=equal:rank").assert_outcomes(passed=1)


def test_a_reported_metric_with_a_top_beyond_the_lists_is_refused(project: Project) -> None:
    project.write("conftest.py", CONFTEST)
    project.write("own.invari.toml", SUITE.replace("relevant@2", "relevant@7"))
    result = project.pytest("--invari-suite=own.invari.toml", "--reranker=first_stage")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: *own.invari.toml:4: [[]suite[]]: report: metric 'relevant@7' looks at the top 7, but*of 6"]
    )
