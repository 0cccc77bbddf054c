"""The user's cache folder, and files that are written there whole or not at all."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_invari.errors import InvariError

CACHE_VARIABLE = "INVARI_CACHE"


def cache_dir() -> Path:
    """Where converted data and models are kept; the folder is made when something is first written.

    It is ``INVARI_CACHE`` where that is set, else ``pytest-invari`` in ``XDG_CACHE_HOME`` or ``~/.cache``.
    Everything in it can be made again, so it may be deleted at any time.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    # The XDG specification says that a relative path there is to be ignored.
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path("~/.cache").expanduser()) / "pytest-invari"


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside *path* that replaces it when the block ends without an error.

    A reader, or a run that was killed half-way, therefore finds the old file, the new one or none.

    Raises:
        InvariError: the folder cannot be made or written to, or the disk is full.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        # mkstemp makes a file that only its owner may read; give it what an ordinary file would get.
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        hint = f"; set {CACHE_VARIABLE} to another folder" if path.is_relative_to(cache_dir()) else ""
        raise InvariError(f"{path}: cannot be written ({error.strerror or error}){hint}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def why_unwritable(folder: Path) -> str:
    """Why no file can be made in *folder*, or the empty text. It is tried; permissions alone do not tell."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
