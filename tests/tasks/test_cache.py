"""The cache folder follows the environment, and files appear there whole."""

import hashlib
import os
from pathlib import Path

import pytest

from pytest_invari.cache import atomic_file, cache_dir, file_hash
from pytest_invari.errors import InvariError


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("INVARI_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_dir() == tmp_path / "home/.cache/pytest-invari"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_dir() == tmp_path / "home/.cache/pytest-invari"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg/pytest-invari"
    monkeypatch.setenv("INVARI_CACHE", "~/mine")
    assert cache_dir() == tmp_path / "home/mine"
    assert not list(tmp_path.iterdir())


def test_atomic_file_replaces_with_ordinary_permissions(tmp_path: Path) -> None:
    path = tmp_path / "deep/er/file.txt"
    with atomic_file(path) as temporary:
        assert temporary.suffix == ".txt"
        temporary.write_text("one")
        assert not path.exists()
    plain = tmp_path / "plain"
    plain.touch()
    assert path.read_text() == "one"
    assert path.stat().st_mode == plain.stat().st_mode
    assert file_hash(path) == hashlib.sha256(b"one").hexdigest()


def test_atomic_file_keeps_the_old_content_when_the_block_fails(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def half_written() -> None:
        with atomic_file(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        half_written()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_folder_that_cannot_be_made_is_a_plain_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()

    def refusal() -> str:
        with pytest.raises(InvariError) as caught, atomic_file(tmp_path / "file/inside.txt"):
            pass
        return str(caught.value)

    monkeypatch.setenv("INVARI_CACHE", str(tmp_path / "other"))
    assert refusal() == f"{tmp_path}/file/inside.txt: cannot be written (File exists)"
    monkeypatch.setenv("INVARI_CACHE", str(tmp_path / "file"))
    assert refusal().endswith("cannot be written (File exists); set INVARI_CACHE to another folder")
