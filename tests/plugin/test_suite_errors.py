"""Mistakes in a suite file: one line with the file, the line, the key, and what was meant."""

# ruff: noqa: E501  # a table reads better with a case a line

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.suite import Suite, read_suite

if TYPE_CHECKING:
    from tests.plugin.conftest import Project


LINES = """\
[suite]
name = "mine"
[profile.quick]
datasets = ["movielens_small"]
k = [10, 25]
views = 6
queries = 30

[[criterion]]
name = "loc"
metric = "loc"
at_least = 0.75

[[criterion]]
name = "ndcg"
metric = "ndcg@5"
not_worse_than = "zero_shot"
margin = 0.02
""".splitlines()


def replaced(number: int, *lines: str) -> str:
    """The suite with its line *number* (from 1) replaced."""
    return "\n".join([*LINES[: number - 1], *lines, *LINES[number:]]) + "\n"


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str | bytes], Suite]:
    def read(text: str | bytes) -> Suite:
        path = tmp_path / "mine.toml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_suite(path)

    return read


@pytest.mark.parametrize(
    ("line", "lines", "message"),
    [
        (1, ["[suit]"], "1: the suite file: unknown key 'suit'. Did you mean 'suite'? Known: criterion, profile, suite."),
        (2, ["nam = 'x'"], "2: [suite]: unknown key 'nam'. Did you mean 'name'"),
        (2, [], "1: [suite]: the key 'name' is missing"),
        (2, ["name = 'My suite'"], "2: [suite]: name 'My suite' stands in test ids; use lower-case letters"),
        (2, ["name = ''"], "2: [suite]: name must be a text in quotes, not ''"),
        (2, ["name = 'x'", "min_queries = 0"], "3: [suite]: min_queries must be a whole number of at least 1, not 0"),
        (2, ["name = 'x'", "max_undefined = 1"], "3: [suite]: max_undefined is a share, from 0 to below 1, not 1"),
        (2, ["name = 'x'", "profile = 'paper'"], "3: [suite]: unknown value of profile 'paper'"),
        (2, ["name = 'x'", "on_failure = 'dropp'"], "3: [suite]: unknown value of on_failure 'dropp'. Did you mean 'drop'"),
        (2, ["name = 'x'", "baseline = 'a b'"], "3: [suite]: reranker 'a b' is not of the form"),
        (3, ["[profile.Quick]"], "3: [profile.Quick]: profile 'Quick' stands in test ids"),
        (3, ["[profile]"], "4: [profile.datasets] must be a table, not a list"),
        (4, ["datasets = []"], "4: [profile.quick]: datasets is empty; give at least one value"),
        (4, ["datasets = [1]"], "4: [profile.quick]: datasets must be a list of texts in quotes, not 1"),
        (4, ["datasets = ['a', 'a']"], "4: [profile.quick]: datasets names 'a' twice"),
        (5, ["k = [", "  10,", "  '25',", "]"], "5: [profile.quick]: k must be a whole number of at least 1, not '25'"),
        (5, ["k = [10, true]"], "5: [profile.quick]: k must be a whole number of at least 1, not true or false"),
        (6, ["views = 6.0"], "6: [profile.quick]: views must be a whole number of at least 2, not 6.0"),
        (6, ["views = 1"], "6: [profile.quick]: views must be a whole number of at least 2, not 1"),
        (6, [], "3: [profile.quick]: the key 'views' is missing"),
        (7, ["querys = 30"], "7: [profile.quick]: unknown key 'querys'. Did you mean 'queries'"),
        (9, ["[criterion]"], "14: not valid TOML: Cannot overwrite a value"),
        (10, ["name = 'LOC'"], "10: criterion 'LOC': name 'LOC' stands in test ids"),
        (10, [], "9: criterion 1: the key 'name' is missing"),
        (11, ["metric = 'lok'"], "11: criterion 'loc': unknown metric 'lok'. Did you mean 'loc'"),
        (11, ["metric = 'ndcg'"], "11: criterion 'loc': metric 'ndcg': ndcg needs the length of the top"),
        (12, [], "9: criterion 'loc' has no bound; give one of at_least, at_most, not_worse_than, better_than"),
        (12, ["at_least = 0.75", "at_most = 0.9"], "13: criterion 'loc': at_least and at_most are both given"),
        (12, ["atleast = 0.75"], "12: criterion 'loc': unknown key 'atleast'. Did you mean 'at_least'"),
        (12, ["at_least = '0.75'"], "12: criterion 'loc': at_least must be a number or \"k\" (the list length), not '0.75'"),
        (12, ["at_least = nan"], "12: criterion 'loc': at_least must be a finite number, not nan"),
        (12, ["at_least = true"], "12: criterion 'loc': at_least must be a finite number, not true or false"),
        (12, ["at_least = 75"], "12: criterion 'loc': at_least = 75 cannot be meant: loc lies between -1 and 1"),
        (12, ["at_least = -1"], "12: criterion 'loc': at_least = -1 demands nothing: loc lies between -1 and 1"),
        (12, ["at_least = 0.7", "margin = 0.1"], "13: criterion 'loc': margin goes with not_worse_than, not with at_least"),
        (12, ["better_than = 'x'", "by = -1"], "13: criterion 'loc': by = -1 is negative"),
        (12, ["at_least = 0.7", "profiles = ['quik']"], "13: criterion 'loc': unknown profile 'quik'. Did you mean 'quick'"),
        (12, ["at_least = 0.7", "needs_views = 2", "only_at_views = 2"], "14: criterion 'loc': only_at_views leaves nothing"),
        (15, ["name = 'loc'"], "15: criterion 'loc' is there already, at line 9"),
        (17, ["not_worse_than = 'a b'"], "17: criterion 'ndcg': reranker 'a b' is not of the form"),
        (17, ["not_worse_than = 1"], "17: criterion 'ndcg': not_worse_than must be a text in quotes, not 1"),
        (18, [], "14: criterion 'ndcg': the key 'margin' is missing"),
        (18, ["margin = 2"], "18: criterion 'ndcg': margin = 2 cannot be meant: ndcg@5 lies between 0 and 1"),
        (18, ["margin = 0.02", "why = 3"], "19: criterion 'ndcg': why must be a text in quotes, not 3"),
        (18, ["margin = 0.02 0.03"], "18: not valid TOML: "),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line_and_key(
    read: Callable[[str | bytes], Suite], tmp_path: Path, line: int, lines: list[str], message: str
) -> None:
    with pytest.raises(InvariError) as caught:
        read(replaced(line, *lines))
    assert str(caught.value).startswith(f"{tmp_path / 'mine.toml'}:{message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("part", ["[suite]", "[profile.NAME]", "[[criterion]]"])
def test_a_missing_part_is_named(read: Callable[[str | bytes], Suite], part: str) -> None:
    start = {"[suite]": (0, 2), "[profile.NAME]": (2, 8), "[[criterion]]": (8, 18)}[part]
    with pytest.raises(InvariError) as caught:
        read("\n".join([*LINES[: start[0]], *LINES[start[1] :]]))
    assert str(caught.value).endswith(f"the suite file has no {part}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "not a text in UTF-8"),
        (b"", "the suite file has no [suite]"),
        (b"suite = 1\nprofile = 1\ncriterion = 1\n", "[suite] must be a table, not 1"),
        (
            b"[suite]\nname='a'\n[profile.q]\ndatasets='d'\nk=2\nviews=2\n[criterion]\nname='x'\n",
            "two brackets",
        ),
    ],
)
def test_what_is_no_suite_at_all_is_told_too(
    read: Callable[[str | bytes], Suite], content: bytes, message: str
) -> None:
    with pytest.raises(InvariError) as caught:
        read(content)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_right_suite_is_read_whole(read: Callable[[str | bytes], Suite]) -> None:
    suite = read("\n".join(LINES))
    assert suite.profile().k == (10, 25)
    assert [criterion.name for criterion in suite.criteria] == ["loc", "ndcg"]
    assert [criterion.place.line for criterion in suite.criteria] == [9, 14]
    assert (suite.min_queries, suite.max_undefined, suite.on_failure) == (30, 0.05, "strict")


def test_one_name_may_stand_for_different_bounds_in_different_profiles(
    read: Callable[[str | bytes], Suite],
) -> None:
    text = replaced(12, "at_least = 0.7", "profiles = ['quick']").replace("'ndcg'", "'loc'")
    text += "[profile.paper]\ndatasets = 'd'\nk = 2\nviews = 2\n[[criterion]]\nname = 'loc'\nmetric = 'loc'\n"
    assert len(read(text + "at_least = 0.8\nprofiles = ['paper']\n").criteria) == 3
    with pytest.raises(InvariError, match="is there already"):
        read(text + "at_least = 0.8\n")


def test_a_data_set_path_is_meant_beside_the_suite(
    read: Callable[[str | bytes], Suite], tmp_path: Path
) -> None:
    (tmp_path / "mine.jsonl").write_text("")
    suite = read(replaced(4, "datasets = ['mine.jsonl', 'movielens_small', 'other.jsonl']"))
    assert suite.profile().datasets == (str(tmp_path / "mine.jsonl"), "movielens_small", "other.jsonl")


def test_in_a_run_it_is_a_usage_error(project: Project) -> None:
    project.write("bad.invari.toml", replaced(12, "atleast = 0.75"))
    result = project.pytest("bad.invari.toml", "--reranker=random")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: bad.invari.toml:12: criterion 'loc': unknown key 'atleast'*"])
    assert not [line for line in result.errlines[1:] if line.strip()]
