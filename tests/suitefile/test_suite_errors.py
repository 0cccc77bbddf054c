"""Mistakes in a suite file: one line with the file, the line, the key, and what was meant."""

# ruff: noqa: E501  # a table reads better with a case a line

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pytest_invari.errors import InvariError
from pytest_invari.registry.spec import RerankerSpec
from pytest_invari.schema import suite_schema
from pytest_invari.settings import Settings
from pytest_invari.suitefile.expansion import expand
from pytest_invari.suitefile.reader import find_suite, read_suite
from pytest_invari.suitefile.suite import Suite

if TYPE_CHECKING:
    from tests.session.conftest import Project


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


Mistake = tuple[int, list[str], str]

NAME_MEANT = "must be lower-case letters, digits and _, a letter first (it stands in test ids), not"
HUGE = "9" * 30

# Mistakes that the JSON Schema refuses as well.
STRUCTURE: list[Mistake] = [
    (1, ["[suit]"], "1: the suite file: unknown key 'suit'. Did you mean 'suite'? Known: criterion, profile, suite."),
    (1, ["[[suite]]"], "1: [suite] must be a table, not a list"),
    (2, ["nam = 'x'"], "2: [suite]: unknown key 'nam'. Did you mean 'name'"),
    (2, [], "1: [suite]: the key 'name' is missing: what the suite is called in test ids"),
    (2, ["name = 'My suite'"], f"2: [suite]: name {NAME_MEANT} 'My suite'"),
    (2, ["name = ''"], f"2: [suite]: name {NAME_MEANT} ''"),
    (2, ["name = ['x']"], f"2: [suite]: name {NAME_MEANT} a list"),
    (2, ["name = 'x'", "title = ' '"], "3: [suite]: title must be a text in quotes, not ' '"),
    (2, ["name = 'x'", "min_queries = 0"], "3: [suite]: min_queries must be a whole number of at least 1, not 0"),
    (2, ["name = 'x'", "max_undefined = 1"], "3: [suite]: max_undefined must be a finite number of at least 0 and below 1, not 1"),
    (2, ["name = 'x'", "on_failure = 'dropp'"], "3: [suite]: on_failure must be one of 'strict', 'drop', 'random', not 'dropp'"),
    (2, ["name = 'x'", "ties = true"], "3: [suite]: ties must be one of 'broken', 'half', not true"),
    (2, ["name = 'x'", "baseline = 'a b'"], "3: [suite]: reranker 'a b' is not of the form"),
    (2, ["name = 'x'", "baseline = 3"], "3: [suite]: baseline must be a text in quotes, not 3"),
    (3, ["[profile.Quick]"], f"3: [profile.Quick]: the name {NAME_MEANT} 'Quick'"),
    (3, ['[profile."a\\nb"]'], rf"3: [profile.'a\nb']: the name {NAME_MEANT} 'a\nb'"),
    (3, ["[profile]"], "4: profiles are written [profile.NAME]"),
    (3, ["[[profile]]"], "3: profiles are written [profile.NAME]"),
    (3, ["[[profile.quick]]"], "3: profiles are written [profile.NAME]"),
    (4, ["datasets = []"], "4: [profile.quick]: datasets is empty; give at least one value"),
    (4, ["datasets = [1]"], "4: [profile.quick]: datasets must be a text in quotes, not 1"),
    (4, ["datasets = ['a', 'a']"], "4: [profile.quick]: datasets names 'a' twice"),
    (4, ["datasets = [['a']]"], "4: [profile.quick]: datasets must be a text in quotes, not a list"),
    (4, ["datasets = {a = 1}"], "4: [profile.quick]: datasets must be a text in quotes, not a table"),
    (5, ["k = [", "  10,", "  '25',", "]"], "5: [profile.quick]: k must be a whole number of at least 2, not '25'"),
    (5, ["k = [10, true]"], "5: [profile.quick]: k must be a whole number of at least 2, not true"),
    (5, ["k = 1"], "5: [profile.quick]: k must be a whole number of at least 2, not 1"),
    (5, ["k = -10"], "5: [profile.quick]: k must be a whole number of at least 2, not -10"),
    (6, ["views = 6.5"], "6: [profile.quick]: views must be a whole number of at least 2, not 6.5"),
    (6, ["views = 1"], "6: [profile.quick]: views must be a whole number of at least 2, not 1"),
    (6, ["views = '6'"], "6: [profile.quick]: views must be a whole number of at least 2, not '6'"),
    (6, ["views.of = 6"], "6: [profile.quick]: views must be a whole number of at least 2, not a table"),
    (6, [], "3: [profile.quick]: the key 'views' is missing: orders in which each list is shown"),
    (7, ["querys = 30"], "7: [profile.quick]: unknown key 'querys'. Did you mean 'queries'"),
    (7, ["view_seed = -1"], "7: [profile.quick]: view_seed must be a whole number of at least 0, not -1"),
    (7, ["include_canonical = 1"], "7: [profile.quick]: include_canonical must be true or false, not 1"),
    (7, ["[profile.quick.more]"], "7: [profile.quick]: unknown key 'more'"),
    (10, ["name = 'LOC'"], f"10: criterion 'LOC': name {NAME_MEANT} 'LOC'"),
    (10, [], "9: criterion 1: the key 'name' is missing"),
    (10, ["name = 5"], f"10: criterion 1: name {NAME_MEANT} 5"),
    (11, ["metric = 'ndcg'"], "11: criterion 'loc': metric 'ndcg': ndcg needs the length of the top"),
    (11, ["metric = 'ndcg@0'"], "11: criterion 'loc': metric 'ndcg@0': ndcg needs the length of the top"),
    (11, ["metric = 'loc@5'"], "11: criterion 'loc': metric 'loc@5': loc takes no @; write 'loc'"),
    (11, ["metric = ['loc']"], "11: criterion 'loc': metric must be a text in quotes, not a list"),
    (12, [], "9: criterion 'loc': it has no bound; give one of at_least, at_most, not_worse_than, better_than"),
    (12, ["at_least = 0.75", "at_most = 0.9"], "13: criterion 'loc': at_least and at_most are both given; a criterion has one bound"),
    (12, ["at_most = 0.75", "better_than = 'x'"], "13: criterion 'loc': at_most and better_than are both given"),
    (12, ["atleast = 0.75"], "12: criterion 'loc': unknown key 'atleast'. Did you mean 'at_least'"),
    (12, ["at_least = '0.75'"], "12: criterion 'loc': at_least must be a finite number or \"k\" (the list length), not '0.75'"),
    (12, ["at_least = 'k'"], "12: criterion 'loc': at_least = \"k\", the list length, cannot be meant: loc lies between -1 and 1"),
    (12, ["at_least = true"], "12: criterion 'loc': at_least must be a finite number or \"k\" (the list length), not true"),
    (12, ["at_least = [0.75]"], "12: criterion 'loc': at_least must be a finite number or \"k\" (the list length), not a list"),
    (12, ["at_least = 75"], "12: criterion 'loc': at_least = 75 cannot be meant: loc lies between -1 and 1"),
    (12, ["at_least = -1"], "12: criterion 'loc': at_least = -1 demands nothing: loc lies between -1 and 1"),
    (12, ["at_most = 1.0"], "12: criterion 'loc': at_most = 1 demands nothing: loc lies between -1 and 1"),
    (12, ["at_most = -1.5"], "12: criterion 'loc': at_most = -1.5 cannot be meant: loc lies between -1 and 1"),
    (11, ["kind = 'witness'"], "12: criterion 'loc': at_least goes with kind 'metric', not with 'witness'"),
    (11, ["kind = 3"], "11: criterion 'loc': kind must be the name of a kind, not 3"),
    (12, ["at_least = 0.7", "max_calls = 3"], "13: criterion 'loc': max_calls goes with kind 'witness', not with 'metric'"),
    (12, ["at_least = 0.7", "options = {}"], "13: criterion 'loc': options goes with a kind of your own, not with 'metric'"),
    (12, ["at_least = 0.7", "margin = 0.1"], "13: criterion 'loc': margin goes with not_worse_than, not with at_least"),
    (12, ["at_least = 0.7", "by = 0.1"], "13: criterion 'loc': by goes with better_than, not with at_least"),
    (12, ["better_than = 'x'", "margin = 0.1"], "13: criterion 'loc': margin goes with not_worse_than, not with better_than"),
    (12, ["better_than = 'x'", "by = -1"], "13: criterion 'loc': by must be a finite number of at least 0, not -1"),
    (12, ["better_than = 'x'", "by = 2"], "13: criterion 'loc': by = 2 cannot be meant: loc lies between -1 and 1"),
    (12, ["better_than = ''"], "12: criterion 'loc': better_than must be a text in quotes, not ''"),
    (12, ["at_least = 0.7", "profiles = []"], "13: criterion 'loc': profiles is empty; give at least one value"),
    (12, ["at_least = 0.7", "needs_views = 2", "only_at_views = 2"], "14: criterion 'loc': only_at_views leaves nothing for needs_views to say"),
    (12, ["at_least = 0.7", "needs_views = -2"], "13: criterion 'loc': needs_views must be a whole number of at least 0, not -2"),
    (17, ["not_worse_than = 'a b'"], "17: criterion 'ndcg': reranker 'a b' is not of the form"),
    (17, ["not_worse_than = 1"], "17: criterion 'ndcg': not_worse_than must be a text in quotes, not 1"),
    (18, [], "17: criterion 'ndcg': not_worse_than needs margin beside it"),
    (18, ["margin = 2"], "18: criterion 'ndcg': margin = 2 cannot be meant: ndcg@5 lies between 0 and 1"),
    (18, ["margin = '2%'"], "18: criterion 'ndcg': margin must be a finite number of at least 0, not '2%'"),
    (18, ["margin = 0.02", "why = 3"], "19: criterion 'ndcg': why must be a text in quotes, not 3"),
    (18, ["margin = 0.02", "why = 1979-05-27"], "19: criterion 'ndcg': why must be a text in quotes, not the date or time 1979-05-27"),
]  # fmt: skip

# Mistakes that only the reader sees: JSON has no NaN, takes 6.0 for 6, and knows nothing of other keys' values.
BEYOND_THE_SCHEMA: list[Mistake] = [
    (11, ["metric = 'lok'"], "11: criterion 'loc': unknown metric 'lok'. Did you mean 'loc'"),
    (11, ["kind = 'witnes'"], "11: criterion 'loc': unknown kind 'witnes'. Did you mean 'witness'? Known: metric, witness."),
    (2, ["name = 'x'", "profile = 'paper'"], "3: [suite]: unknown profile 'paper'. Known: quick."),
    (2, ["name = 'x'", "max_undefined = nan"], "3: [suite]: max_undefined must be a finite number of at least 0 and below 1, not nan"),
    (2, ["name = 'x'", f"min_queries = {HUGE}"], "3: [suite]: min_queries must be a whole number of at least 1, not a number of more than 64 bits"),
    (5, ["k = [10, 3]"], "16: criterion 'ndcg': metric 'ndcg@5' looks at the top 5, but profile 'quick' has lists of 3"),
    (2, ["name = 'x'", "report = ['loc', 'ndcg@99']"], "3: [suite]: report: metric 'ndcg@99' looks at the top 99, but profile 'quick' has lists of 10"),
    (6, ["views = 6.0"], "6: [profile.quick]: views must be a whole number of at least 2, not 6.0"),
    (6, ["views = 0x" + "f" * 5000], "6: [profile.quick]: views must be a whole number of at least 2, not a number of more than 64 bits"),
    (6, ["views = 6", f"view_seed = {HUGE}"], "7: [profile.quick]: view_seed must be a whole number of at least 0, not a number"),
    (12, ["at_least = nan"], "12: criterion 'loc': at_least must be a finite number or \"k\" (the list length), not nan"),
    (12, ["at_most = -inf"], "12: criterion 'loc': at_most must be a finite number or \"k\" (the list length), not -inf"),
    (12, ["at_least = 1" + "0" * 400], "12: criterion 'loc': at_least must be a finite number or \"k\" (the list length), not a number of"),
    (12, ["at_least = 0.7", "profiles = ['quik']"], "13: criterion 'loc': unknown profile 'quik'. Did you mean 'quick'"),
    (15, ["name = 'loc'"], "15: criterion 'loc': the name is there already, at line 9; criteria of one profile need"),
]  # fmt: skip

SYNTAX: list[Mistake] = [
    (2, ["name = 'x'", "name = 'y'"], "3: not valid TOML: a key or a table is given twice"),
    (3, ["[suite]"], "3: not valid TOML: Cannot declare ('suite',) twice"),
    (6, ["views = " + "9" * 5000], "6: not valid TOML: a number has more digits than can be read"),
    (6, ["views = [", "  1,", "  " + "9" * 5000, "]"], "6: not valid TOML: a number has more digits than can be read"),
    (6, ["views = " + "[" * 5000 + "]" * 5000], "6: not valid TOML: values are nested too deeply"),
    (6, ["views = " + "{a = " * 2000 + "1" + "}" * 2000], "6: not valid TOML: values are nested too deeply"),
    (9, ["[criterion]"], "14: not valid TOML: a key or a table is given twice"),
    (10, ["name = loc"], "10: not valid TOML: Invalid value"),
    (12, ["at_least = 0,75"], "12: not valid TOML: "),
    (18, ["margin = 0.02 0.03"], "18: not valid TOML: "),
    (18, ["margin = '0.02"], "18: not valid TOML: "),
    (18, ["margin = 0.02", "why = \"a\0b\""], "19: not valid TOML: "),
]  # fmt: skip


@pytest.mark.parametrize(("line", "lines", "message"), [*STRUCTURE, *BEYOND_THE_SCHEMA, *SYNTAX])
def test_a_mistake_is_told_with_its_line_and_key(
    read: Callable[[str | bytes], Suite], tmp_path: Path, line: int, lines: list[str], message: str
) -> None:
    with pytest.raises(InvariError) as caught:
        read(replaced(line, *lines))
    told = str(caught.value)
    assert told.startswith(f"{tmp_path / 'mine.toml'}:{message}")
    assert "\n" not in told
    assert len(told) < 1000


@pytest.mark.parametrize(("line", "lines", "message"), STRUCTURE)
def test_the_schema_refuses_a_mistake_of_structure_too(line: int, lines: list[str], message: str) -> None:
    schema = Draft202012Validator(suite_schema())
    assert schema.is_valid(tomllib.loads("\n".join(LINES)))
    assert not schema.is_valid(tomllib.loads(replaced(line, *lines))), message


@pytest.mark.parametrize("part", ["[suite]", "[profile.NAME]", "[[criterion]]"])
def test_a_missing_part_is_named(read: Callable[[str | bytes], Suite], part: str) -> None:
    start = {"[suite]": (0, 2), "[profile.NAME]": (2, 8), "[[criterion]]": (8, 18)}[part]
    with pytest.raises(InvariError) as caught:
        read("\n".join([*LINES[: start[0]], *LINES[start[1] :]]))
    assert str(caught.value).endswith(f"mine.toml:1: the suite file has no {part}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n".join(LINES).encode("utf-16"), "1: is not UTF-8 text; save the file as UTF-8"),
        ("\n".join(LINES).encode() + b"\n# caf\xe9\n", "19: is not UTF-8 text; save the file as UTF-8"),
        (b"", "1: the suite file has no [suite]"),
        (b"\xef\xbb\xbf", "1: the suite file has no [suite]"),
        (b"suite = 1\nprofile = 1\ncriterion = 1\n", "1: [suite] must be a table, not 1"),
        (
            b"[suite]\nname='a'\n[profile.q]\ndatasets='d'\nk=2\nviews=2\n[criterion]\nname='x'\n",
            "7: criteria are written [[criterion]], with two brackets",
        ),
        (b"criterion = [1]\n" + "\n".join(LINES[:8]).encode(), "1: criterion 1 must be a table, not 1"),
    ],
)
def test_what_is_no_suite_at_all_is_told_too(
    read: Callable[[str | bytes], Suite], tmp_path: Path, content: bytes, message: str
) -> None:
    with pytest.raises(InvariError) as caught:
        read(content)
    assert str(caught.value) == f"{tmp_path / 'mine.toml'}:{message}"


def test_a_file_as_windows_editors_write_it_is_the_same_suite(
    read: Callable[[str | bytes], Suite], tmp_path: Path
) -> None:
    plain = read("\n".join(LINES))
    assert read(b"\xef\xbb\xbf" + "\r\n".join(LINES).encode()) == plain
    with pytest.raises(InvariError, match=r"mine\.toml:12: criterion 'loc': unknown key 'atleast'"):
        read(b"\xef\xbb\xbf" + replaced(12, "atleast = 1").replace("\n", "\r\n").encode())


def test_other_line_separators_within_a_text_do_not_count_as_lines(
    read: Callable[[str | bytes], Suite],
) -> None:
    odd = replaced(2, "name = 'x'", "title = 'a\u2028b\u2029c\x85d' # \u2028")
    assert read(odd).title == "a\u2028b\u2029c\x85d"
    with pytest.raises(InvariError, match=r"mine\.toml:13: criterion 'loc': unknown key 'atleast'"):
        read(odd.replace("at_least", "atleast"))


def test_a_folder_and_a_file_that_cannot_be_read_are_told_apart(tmp_path: Path) -> None:
    # Reading this file is an error of the system, also for the superuser.
    (tmp_path / "locked.toml").symlink_to("/proc/self/mem")
    (tmp_path / "folder.toml").mkdir()
    for name, message in {
        "locked.toml": "cannot be read: Input/output error",
        "folder.toml": "that is a folder",
        "absent.toml": "there is no such file",
        "a" * 5000 + ".toml": "there is no such file",
    }.items():
        with pytest.raises(InvariError) as caught:
            find_suite(str(tmp_path / name))
        assert str(caught.value).endswith(f": {message}")
    with pytest.raises(InvariError, match="there is no such file"):
        find_suite("~nobody-of-this-name/x.toml")


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_damage_to_a_suite_leaves_a_suite_or_a_line_to_look_at(
    tmp_path: Path, data: st.DataObject
) -> None:
    text = "\n".join(LINES)
    pieces = st.sampled_from(
        [*"[]{}=\"'\\,.#\n\r-_0k", "nan", "[[", '"""', "true", "1979-05-27", "é", "\0", "\u2028"]
    )
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 20)))
        text = text[:start] + data.draw(st.just("") | pieces) + text[end:]
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8", newline="")
    try:
        assert isinstance(read_suite(path), Suite)
    except InvariError as error:
        told = str(error)
        assert re.match(rf"{re.escape(str(path))}:[1-9][0-9]*: \S", told)
        assert int(told.removeprefix(f"{path}:").partition(":")[0]) <= text.count("\n") + 1
        assert "\n" not in told


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
    text += "[profile.paper]\ndatasets = 'd'\nk = 5\nviews = 2\n[[criterion]]\nname = 'loc'\nmetric = 'loc'\n"
    assert len(read(text + "at_least = 0.8\nprofiles = ['paper']\n").criteria) == 3
    with pytest.raises(InvariError, match="is there already"):
        read(text + "at_least = 0.8\n")


def test_a_criterion_that_is_left_out_need_not_fit(read: Callable[[str | bytes], Suite]) -> None:
    longer = replaced(16, "metric = 'ndcg@20'", "profiles = ['wide']")
    longer += "[profile.wide]\ndatasets = 'd'\nk = 20\nviews = 2\n"
    random = [RerankerSpec.parse("random")]
    for chosen in (Settings(), Settings(k=(3,))):
        assert {check.criterion.name for check in expand([read(longer)], random, chosen).checks} == {"loc"}
    with pytest.raises(
        InvariError, match=r"^--invari-k=3: criterion 'ndcg' \(.*:14\) looks at the top 20; give at l"
    ):
        expand([read(longer)], random, Settings(profile="wide", k=(3,)))
    with pytest.raises(
        InvariError, match=r"mine\.toml:16: criterion 'ndcg': metric 'ndcg@20' looks at the top 20, but"
    ):
        read(longer.replace("'wide'", "'quick', 'wide'"))
    shown = read(replaced(2, "name = 'x'", "report = 'ndcg@9'"))
    with pytest.raises(
        InvariError, match=r"^--invari-k=8: \[suite\]: report \(.*mine\.toml:3\): metric 'ndcg@9' looks at "
    ):
        expand([shown], random, Settings(k=(9, 8)))
    at_views = read(replaced(16, "metric = 'ndcg@20'", "only_at_views = 20"))
    assert [each.criterion for each in expand([at_views], random, Settings()).left_out] == ["ndcg", "ndcg"]
    with pytest.raises(InvariError, match="looks at the top 20, but profile 'quick' has lists of 10"):
        expand([at_views], random, Settings(views=20))


def test_a_data_set_path_is_meant_beside_the_suite(
    read: Callable[[str | bytes], Suite], tmp_path: Path
) -> None:
    for name in ("mine.jsonl", "mine.json", "movielens_small"):
        (tmp_path / name).write_text("")
    suite = read(replaced(4, "datasets = ['mine.jsonl', 'mine.json', 'movielens_small', 'other.jsonl']"))
    beside = (str(tmp_path / "mine.jsonl"), str(tmp_path / "mine.json"))
    assert suite.profile().datasets == (*beside, "movielens_small", "other.jsonl")
    long = "a" * 5000 + "/b"
    assert read(replaced(4, f"datasets = ['~nobody-of-this-name/x', '{long}']")).profile().datasets[1] == long


def test_in_a_run_each_is_one_line_and_a_usage_error(project: Project) -> None:
    wrong = [replaced(line, *lines) for line, lines, _ in (*STRUCTURE, *BEYOND_THE_SCHEMA, *SYNTAX)]
    assert len(wrong) > 50
    for text in wrong[::2]:
        (project.path / "bad.invari.toml").write_text(text, encoding="utf-8")
        result = project.pytest("bad.invari.toml", "--reranker=random")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert re.fullmatch(r"ERROR: bad\.invari\.toml:[0-9]+: .+", result.errlines[0])
        assert not [line for line in result.errlines[1:] if line.strip()]


def test_an_unknown_baseline_is_refused_though_no_criterion_compares_with_it(project: Project) -> None:
    path = project.write_suite("alone", loc="at_least = 0.1")
    text = path.read_text(encoding="utf-8")
    for name, status in (("nothing", 4), ("no_such_module:rank", 0), ("random:seed=3", 0)):
        path.write_text(text.replace("[profile", f'baseline = "{name}"\n[profile'), encoding="utf-8")
        result = project.pytest("alone.invari.toml", "--reranker=first_stage")
        assert result.ret == status
        if status:
            result.stderr.fnmatch_lines(
                ["ERROR: *alone.invari.toml:3: [[]suite[]]: baseline: unknown reranker 'nothing'.* Known: *"]
            )


def test_a_bound_that_so_many_views_always_keep_to_is_refused(project: Project) -> None:
    path = project.write_suite("low", loc="at_least = -0.3")
    result = project.pytest("low.invari.toml", "--reranker=first_stage")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: low.invari.toml:7: criterion 'loc': at_least = -0.3 demands nothing: of 5 views loc lies "
            "between -0.25 and 1"
        ]
    )
    # Of three views the least is -0.5, and where views are dropped so few may be left.
    assert project.pytest("low.invari.toml", "--reranker=first_stage", "--invari-views=3").ret == 0
    path.write_text(path.read_text().replace("[profile", 'on_failure = "drop"\n[profile'), encoding="utf-8")
    assert project.pytest("low.invari.toml", "--reranker=first_stage").ret == 0
