"""A small folder in MovieLens' official layout, and a cache of each test's own."""

import csv
from pathlib import Path

import numpy as np
import pytest

USERS, FILMS = 60, 80


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INVARI_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def ml(tmp_path: Path) -> Path:
    """A folder in the official layout: users like films whose number has their own parity."""
    generator = np.random.default_rng(5)
    folder = tmp_path / "ml-tiny"
    folder.mkdir()
    with (folder / "movies.csv").open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(["movieId", "title", "genres"])
        for film in range(1, FILMS + 1):
            title = f'Film "{film}", part é, The ({1950 + film})'
            writer.writerow([film, title, "Drama|Comedy"])
    with (folder / "ratings.csv").open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(["userId", "movieId", "rating", "timestamp"])
        for user in range(1, USERS + 1):
            films = 1 + generator.permutation(FILMS)[: generator.integers(8, 45)]
            for film in sorted(films):
                rating = generator.choice([4.0, 5.0] if film % 2 == user % 2 else [1.0, 3.5])
                writer.writerow([user, film, rating, generator.integers(1_000, 1_030)])
    return folder
