"""Where names come from: entry points, a conftest's hook, pyproject tables, and module:attribute."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.registry.registry import Registry
from pytest_invari.tasks.task import Task, TaskSet
from pytest_invari.tasks.taskfile import write_tasks

RERANKERS = "pytest_invari.rerankers"
DATASETS = "pytest_invari.datasets"
BY_LENGTH = """
    def rank(context, texts, sign: int = 1):
        return [sign * float(len(text)) for text in texts]
"""
OWN = {
    "answerdotai",
    "biased",
    "bootstrapping",
    "canonical_order",
    "chat",
    "constant",
    "cross-encoder",
    "first_stage",
    "http",
    "input_order",
    "oracle",
    "random",
    "reverse_input_order",
    "sgs",
    "stella",
    "zero_shot",
}


def fault(project: Any, spec: str, hook: Mapping[str, object] | None = None) -> str:
    with pytest.raises(InvariError) as error:
        project.build(spec, hook)
    text = str(error.value)
    assert "\n" not in text
    return text


def test_our_own_rerankers_are_listed_with_what_they_do(project: Any) -> None:
    names = project.registry().reranker_names()
    assert set(names) >= OWN
    assert list(names) == sorted(names)
    assert names["input_order"] == "The order in which the candidates came: position is everything; one call."
    assert all(names[name] and "\n" not in names[name] for name in OWN)


def test_an_unknown_reranker_is_refused_with_the_nearest_and_all_names(project: Any) -> None:
    text = fault(project, "sgss")
    assert text.startswith(
        "unknown reranker 'sgss'. Did you mean 'sgs'? Known: answerdotai, biased, bootstrapping, "
    )
    assert fault(project, "sgs:base=orcale").startswith(
        "reranker 'sgs:base=orcale': unknown reranker 'orcale'. Did you mean 'oracle'?"
    )


def test_an_entry_point_is_loaded_only_when_chosen(project: Any, install: Callable[..., None]) -> None:
    install("shop-rerankers", RERANKERS, {"by_length": "shop_rerankers:rank", "broken": "shop_broken:rank"})
    project.write("site/shop_rerankers.py", BY_LENGTH)
    project.write("site/shop_broken.py", "import not_installed_anywhere\n")
    names = project.registry().reranker_names()
    assert names["by_length"] == "shop-rerankers 1.2 (shop_rerankers:rank)"
    assert not {"shop_rerankers", "shop_broken"} & set(sys.modules)
    assert project.rank("by_length") == "bca"
    assert project.rank("by_length:sign=-1") == "acb"
    assert "shop_broken" not in sys.modules
    assert fault(project, "broken") == (
        "reranker 'broken' of shop-rerankers 1.2 (shop_broken:rank): loading it raised "
        "ModuleNotFoundError: No module named 'not_installed_anywhere' "
        f"({project.root}/site/shop_broken.py, line 1)"
    )


def test_two_distributions_with_one_name_are_an_error_only_when_chosen(
    project: Any, install: Callable[..., None]
) -> None:
    install("shop-one", RERANKERS, {"sgs": "shop_one:rank", "other": "shop_one:rank"})
    project.write("site/shop_one.py", BY_LENGTH)
    text = fault(project, "sgs")
    assert text == (
        f"'sgs' in pytest_invari.rerankers is provided by pytest-invari {version('pytest-invari')} "
        "(pytest_invari.rerankers.sgs:make) and shop-one 1.2 (shop_one:rank); "
        "uninstall one or name the one you mean as MODULE:ATTRIBUTE, as in shop_one:rank"
    )
    assert project.rank("other") == "bca"
    assert project.rank("pytest_invari.rerankers.sgs:make:base=oracle")[0] == "a"


def test_hook_values_may_be_a_reference(project: Any) -> None:
    project.write("shop/rerankers.py", BY_LENGTH)
    hook = {"mine": "shop.rerankers:rank"}
    assert project.registry(hook).reranker_names()["mine"] == "conftest hook: shop.rerankers:rank"
    assert "shop.rerankers" not in sys.modules
    assert project.rank("mine:sign=-1", hook) == "acb"
    assert fault(project, "gone", {"gone": "shop.rerankers:rnk"}).startswith(
        "reranker 'gone': unknown attribute of shop.rerankers 'rnk'. Did you mean 'rank'?"
    )


@pytest.mark.parametrize("name", ["a:b", "", "a b", "a=1"])
def test_impossible_hook_names_are_refused(project: Any, name: str) -> None:
    with pytest.raises(InvariError, match=r"hook pytest_invari_rerankers: .* is not a possible name"):
        project.registry({name: print})


def test_module_and_attribute_are_found_in_the_project_and_the_working_folder(
    project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("in_root.py", BY_LENGTH)
    project.write("sub/in_cwd.py", BY_LENGTH)
    project.write(
        "in_root_class.py",
        "class Holder:\n    @staticmethod\n    def rank(context, texts):\n        return [0.3, 0.2, 0.1]\n",
    )
    monkeypatch.chdir(project.root / "sub")
    assert project.rank("in_root:rank") == "bca"
    assert project.rank("in_cwd:rank:sign=-1") == "acb"
    assert project.rank("in_root_class:Holder.rank") == "cab"
    assert sys.path[-2:] == [str(project.root), str(project.root / "sub")]


def test_a_module_of_the_project_never_hides_an_installed_one(project: Any) -> None:
    project.write("json.py", "raise RuntimeError('the wrong module')\n")
    project.write("mine.py", BY_LENGTH)
    assert project.rank("mine:rank") == "bca"
    assert "unknown attribute of json 'rank'" in fault(project, "json:rank")


def test_faults_of_references_are_one_line_with_the_place(project: Any) -> None:
    project.write("syntax.py", "def rank(:\n")
    project.write("raises.py", "x = 1\nraise RuntimeError('first line\\nsecond line')\n")
    project.write("lacks.py", "\nimport not_installed_anywhere\n")
    project.write("pkg/inner.py", BY_LENGTH)
    root = re.escape(str(project.root))
    for spec, expected in {
        "nowhere:rank": rf"there is no module 'nowhere' on sys.path or in {root}",
        "pkg.absent:rank": rf"there is no module 'pkg.absent' on sys.path or in {root}",
        "syntax:rank": r"importing 'syntax' raised SyntaxError: .*syntax.py, line 1\)",
        "raises:rank": r"importing 'raises' raised RuntimeError: first line second line "
        rf"\({root}/raises.py, line 2\)",
        "lacks:rank": r"importing 'lacks' raised ModuleNotFoundError: No module named .* "
        rf"\({root}/lacks.py, line 2\)",
        "pkg.inner:rnk": r"unknown attribute of pkg.inner 'rnk'\. Did you mean 'rank'\? Known: rank\.",
        "sgs:select": r"options are written OPTION=VALUE, and 'select' is none",
    }.items():
        assert re.fullmatch(f"reranker '{spec}': {expected}", fault(project, spec))


def test_a_table_configures_a_factory_or_another_reranker(project: Any) -> None:
    project.write("mine.py", BY_LENGTH)
    path = project.write(
        "pyproject.toml",
        """
        [tool.invari.rerankers.shortest]
        factory = "mine:rank"
        sign = -1
        [tool.invari.rerankers.pairs]
        reranker = "sgs:base=first_stage,seed=4"
        select = 2
        """,
    )
    names = project.registry().reranker_names()
    assert names["shortest"] == f"{path} [tool.invari.rerankers.shortest]: mine:rank"
    assert project.rank("shortest") == "acb"
    assert project.rank("shortest:sign=1") == "bca"
    made = project.build("pairs")
    assert (made.select, made.seed) == (2, 4)
    assert project.build("pairs:select=3").select == 3
    assert project.build("pairs:seed=5").seed == 5
    assert project.rank("sgs:base=shortest") == "acb"


def test_the_nearest_to_the_user_wins(project: Any, install: Callable[..., None]) -> None:
    install("shop-rerankers", RERANKERS, {"mine": "shop_reversed:rank"})
    project.write("site/shop_reversed.py", "def rank(context, candidates):\n    return ['c', 'b', 'a']\n")
    assert project.rank("mine") == "cba"
    hook = {"mine": lambda context, candidates: ["b", "a", "c"]}
    assert project.rank("mine", hook) == "bac"
    project.write("mine.py", BY_LENGTH)
    project.write("pyproject.toml", '[tool.invari.rerankers.mine]\nfactory = "mine:rank"\n')
    assert project.rank("mine", hook) == "bca"


def test_a_table_may_carry_the_name_of_what_it_configures(project: Any) -> None:
    project.write(
        "pyproject.toml",
        """
        [tool.invari.rerankers.sgs]
        reranker = "sgs"
        base = "oracle"
        [tool.invari.rerankers.mine]
        reranker = "mine"
        """,
    )
    assert project.rank("sgs")[0] == "a"
    assert project.rank("mine", {"mine": lambda context, candidates: ["b", "a", "c"]}) == "bac"
    assert "the table refers to itself, and nothing else is called 'mine'" in fault(project, "mine")


def test_no_hook_and_no_table_takes_the_name_of_a_built_in_reranker(project: Any) -> None:
    message = "'random' is a built-in reranker; give yours another name"
    with pytest.raises(InvariError, match=f"^hook pytest_invari_rerankers: {message}$"):
        project.registry({"random": lambda context, candidates: ["b", "a", "c"]})
    for content in ('factory = "mine:rank"', 'reranker = "sgs"\nbase = "random"'):
        path = project.write("pyproject.toml", f"[tool.invari.rerankers.random]\n{content}\n")
        assert fault(project, "first_stage") == f"{path} [tool.invari.rerankers.random]: {message}"
        with pytest.raises(InvariError, match=message):
            project.registry().reranker_names()


def test_a_distribution_with_the_name_of_a_built_in_reranker_is_refused_when_that_is_chosen(
    project: Any, install: Callable[..., None]
) -> None:
    install("shop-rerankers", RERANKERS, {"random": "shop_reversed:rank"})
    assert re.match(
        r"'random' in .* is provided by pytest-invari .* and shop-rerankers", fault(project, "random")
    )


def test_tables_that_go_round_in_a_circle_are_refused(project: Any) -> None:
    path = project.write(
        "pyproject.toml",
        """
        [tool.invari.rerankers.one]
        reranker = "two"
        [tool.invari.rerankers.two]
        reranker = "one"
        [tool.invari.rerankers.sgs]
        reranker = "sgs"
        base = "sgs"
        """,
    )
    table = f"{path} [tool.invari.rerankers."
    assert fault(project, "one") == (
        f"reranker 'one' ({table}one] and {table}two]): the tables refer to each other, and nothing else is "
        "called 'one'"
    )
    assert fault(project, "sgs") == (
        f"reranker 'sgs' ({table}sgs]): bases nest without an end (sgs > sgs); one of them names itself"
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[tool.invari.rerankers.x]\nselect = 1", r"x\] needs either factory = .* or reranker = "),
        ('[tool.invari.rerankers.x]\nfactory = "a:b"\nreranker = "sgs"', r"x\] needs either"),
        ("[tool.invari.rerankers.x]\nfactory = 3", r"x\] needs either"),
        (
            '[tool.invari.rerankers.x]\nreranker = "sgs"\nselect = [1]',
            r"x\]: option 'select' must be text, a number or a boolean, not \[1\]",
        ),
        ('[tool.invari.rerankers."a b"]\nreranker = "sgs"', r"a b\]: a name is made of letters"),
        ("[tool.invari]\nrerankers = 3", "'rerankers' of .* must be a table"),
        ("[tool.invari.rerankers]\nx = 3", r"x\] must be a table, not 3"),
        ("[tool.invari.rerankers.x\n", r"not valid TOML: .*line 1"),
    ],
)
def test_tables_of_another_form_are_refused_with_the_file(project: Any, content: str, expected: str) -> None:
    path = project.write("pyproject.toml", content)
    text = fault(project, "sgs")
    assert text.startswith(str(path))
    assert re.search(expected, text)


def test_faults_in_a_table_name_the_table(project: Any) -> None:
    path = project.write(
        "pyproject.toml",
        """
        [tool.invari.rerankers.typo]
        reranker = "sgs"
        selct = 2
        [tool.invari.rerankers.type]
        reranker = "sgs"
        select = "two"
        base = "oracle"
        [tool.invari.rerankers.gone]
        reranker = "sgss"
        """,
    )
    where = f"({path} [tool.invari.rerankers.%s])"
    assert fault(project, "typo").startswith(
        f"reranker 'typo' {where % 'typo'}: unknown option 'selct'. Did you"
    )
    assert fault(project, "type") == (
        f"reranker 'type' {where % 'type'}: option 'select' must be a whole number, not 'two'"
    )
    assert fault(project, "gone").startswith(
        f"reranker 'gone' {where % 'gone'}: unknown reranker 'sgss'. Did"
    )


def lists(count: int, k: int) -> TaskSet:
    from pytest_invari.protocol import Candidate, Context

    return TaskSet.of(
        "lists",
        [
            Task(
                f"q{q}",
                Context("x"),
                tuple(Candidate(f"i{i}", f"film {i}") for i in range(k)),
                {"i0": 1.0},
                1,
            )
            for q in range(count)
        ],
    )


@pytest.mark.parametrize("name", ["tasks.parquet", "tasks.jsonl"])
def test_a_task_file_works_in_place_of_a_data_set(project: Any, name: str) -> None:
    path = project.root / name
    write_tasks(path, lists(4, 5))
    for given in (name, str(path)):
        tasks = project.registry().load_tasks(given, 3, 2)
        assert [task.query_id for task in tasks.tasks] == ["q0", "q1"]
        assert [len(task.candidates) for task in tasks.tasks] == [3, 3]
    assert len(project.registry().load_tasks(name, 5).tasks) == 4
    with pytest.raises(InvariError, match="query 'q0' has 5 candidates, fewer than the 6 asked for"):
        project.registry().load_tasks(name, 6)


def test_a_task_file_is_found_from_the_project_root_too(
    project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tasks(project.root / "tasks.jsonl", lists(1, 2))
    (project.root / "sub").mkdir()
    monkeypatch.chdir(project.root / "sub")
    assert len(project.registry().load_tasks("tasks.jsonl", 2).tasks) == 1


def test_a_movielens_folder_is_loaded_by_its_path(project: Any) -> None:
    lines = ["userId,movieId,rating,timestamp"]
    lines += [
        f"{u},{1 + (u + i) % 30},{4 if i % 3 else 2},{1000 + i}" for u in range(1, 25) for i in range(20)
    ]
    project.write("ml-tiny/ratings.csv", "\n".join(lines) + "\n")
    films = "\n".join(f"{m},Film {m} (1990),Drama" for m in range(1, 31))
    project.write("ml-tiny/movies.csv", f"movieId,title,genres\n{films}\n")
    tasks = project.registry().load_tasks("ml-tiny", 5, 3)
    assert tasks.name == "ml-tiny"
    assert [len(task.candidates) for task in tasks.tasks] == [5, 5, 5]


@pytest.mark.parametrize("name", ["gone.parquet", "gone.jsonl", "ml-32m.zip", "./gone", "a/b"])
def test_a_path_to_nothing_is_refused(project: Any, name: str) -> None:
    with pytest.raises(InvariError, match="there is no such file or folder"):
        project.registry().load_tasks(name, 3)


def test_an_unknown_data_set_is_refused_with_the_nearest_name(project: Any) -> None:
    with pytest.raises(InvariError) as error:
        project.registry().load_tasks("movielens_smal", 3)
    assert str(error.value).startswith("unknown data set 'movielens_smal'. Did you mean 'movielens_small'")


def test_a_data_set_of_another_distribution(project: Any, install: Callable[..., None]) -> None:
    install(
        "shop-data",
        DATASETS,
        {
            "shop": "shop_data:load",
            "shop_wrong": "shop_data:wrong",
            "shop_fails": "shop_data:fails",
            "shop_absent": "shop_nowhere:load",
        },
    )
    project.write(
        "site/shop_data.py",
        """
        from pytest_invari.protocol import Candidate, Context
        from pytest_invari.tasks.task import Task, TaskSet

        def load(k, queries):
            candidates = tuple(Candidate(str(i), f"film {i}") for i in range(k + 2))
            return TaskSet.of("shop", [Task(str(q), Context("x"), candidates) for q in range(queries or 9)])

        def wrong(k, queries):
            return [1, 2]

        def fails(k, queries):
            return load(k, queries="many")
        """,
    )
    registry = project.registry()
    assert registry.dataset_names()["shop"] == "shop-data 1.2 (shop_data:load)"
    assert "shop_data" not in sys.modules
    tasks = registry.load_tasks("shop", 4, 3)
    assert [len(task.candidates) for task in tasks.tasks] == [4, 4, 4]
    for name, expected in {
        "shop_wrong": r"data set 'shop_wrong' of shop-data 1\.2 \(shop_data:wrong\) gave a list",
        "shop_fails": r"data set 'shop_fails' of shop-data 1\.2 .*: loading it raised TypeError: ",
        "shop_absent": r"data set 'shop_absent' of shop-data 1\.2 .*: loading it raised ModuleNotFoundError",
    }.items():
        with pytest.raises(InvariError, match=f"^{expected}"):
            registry.load_tasks(name, 3)


def test_packaged_suites_are_listed_with_their_titles() -> None:
    names = Registry().suite_names()
    folder = Path(__file__).parents[2] / "suites"
    assert list(names) == sorted(path.stem for path in folder.glob("*.toml"))
    assert all(names.values())


def test_listing_and_building_load_nothing_heavy() -> None:
    code = (
        "import sys; from pytest_invari.registry.registry import Registry;"
        "names = Registry().reranker_names();"
        "assert 'sgs' in names; assert Registry().dataset_names();"
        "heavy = {'numpy', 'torch', 'pandas', 'scipy', 'pyarrow', 'transformers', 'tqdm'} & set(sys.modules);"
        "own = [name for name in sys.modules if name.startswith('pytest_invari.rerankers.')];"
        "assert not heavy, heavy; assert not own, own"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
