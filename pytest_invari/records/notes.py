"""Notes beside a record's rankings: what an audit told, and where runs that ranked at once did not agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from pytest_invari.cache import atomic_file
from pytest_invari.errors import InvariError
from pytest_invari.observation.audit import Audit
from pytest_invari.observation.observation import ObservationKey

AUDIT = "audit.json"
DISAGREEMENTS = "disagreements.json"

_Read = TypeVar("_Read")


class RecordNotes:
    """The notes in a record's *folder*, each a small JSON file of its own.

    Reading raises InvariError where a file is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def audit(self) -> Audit | None:
        """What the reranker's audit told, where one was made."""
        return self._read(AUDIT, Audit.from_plain, "no audit can be read from it")

    def keep_audit(self, audit: Audit) -> None:
        """Keep what the reranker's audit told."""
        self._write(AUDIT, audit.plain())

    def disagreements(self) -> set[ObservationKey]:
        """Query and view of what was there twice with different answers, of which merging has left one."""
        return self._read(DISAGREEMENTS, _keys, "cannot be read") or set()

    def keep_disagreements(self, keys: Iterable[ObservationKey]) -> None:
        """Keep these."""
        self._write(DISAGREEMENTS, sorted(keys))

    def _read(self, name: str, made: Callable[[Any], _Read], fault: str) -> _Read | None:
        path = self._folder / name
        if not path.is_file():
            return None
        try:
            return made(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, AttributeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InvariError(f"{path}: {fault} ({reason}); remove it") from None

    def _write(self, name: str, content: Any) -> None:
        with atomic_file(self._folder / name) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _keys(content: Any) -> set[ObservationKey]:
    return {(str(query_id), str(view)) for query_id, view in content}
