"""Manifests: everything that can change a reranker's answers, readable, with one fingerprint over it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_invari.errors import InvariError
from pytest_invari.observation.plan import SubjectName
from pytest_invari.tasks.task import content_hash
from pytest_invari.text import HIDDEN, is_secret_name, without_secrets

if TYPE_CHECKING:
    from pytest_invari.registry.spec import RerankerSpec
    from pytest_invari.tasks.task import TaskSet


Scalar = bool | int | float | str | None

FORMAT = "invari-records/1"
PARTS = ("asked", "reranker", "environment")
# The distributions whose version can change the answer of a model.
MODEL_LIBRARIES = ("torch", "transformers", "tokenizers", "gguf")
# Those, and the ones whose version can change the answer of a method.
LIBRARIES = ("pytest-invari", "numpy", *MODEL_LIBRARIES)
# In the environment of rankings that were made elsewhere: the hash of the file that they came in.
IMPORTED = "imported_sha256"
OPTION = "option."


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a set of records was made from, in three parts.

    ``asked`` is what a user asked for: reranker, options, model, tasks and list length. It is known
    without building anything, so a replay is matched on it. ``reranker`` is what the built reranker
    says of itself (model revision, prompt, scorer), ``environment`` where it ran. Records belong
    together only where all three agree.
    """

    asked: Mapping[str, Scalar]
    reranker: Mapping[str, Scalar] = field(default_factory=dict)
    environment: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def subject(self) -> SubjectName:
        """What was measured, as far as the manifest says it: the label may have had its options otherwise."""
        options = {
            name.removeprefix(OPTION): str(value)
            for name, value in self.asked.items()
            if name.startswith(OPTION)
        }
        shown = ",".join(f"{name}={value}" for name, value in options.items())
        name, dataset, k = (self.asked.get(key, "") for key in ("reranker", "dataset", "k"))
        return SubjectName(f"{name}:{shown}" if shown else str(name), str(dataset), int(k or 0))

    @property
    def is_imported(self) -> bool:
        """Whether the rankings were made elsewhere and came in a file."""
        return IMPORTED in self.environment

    @property
    def flat(self) -> dict[str, Scalar]:
        """One mapping with the part before a dot: ``asked.k``, ``environment.torch``."""
        return {
            f"{part}.{key}": value for part in PARTS for key, value in sorted(getattr(self, part).items())
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the manifest as canonical JSON, in 64 hexadecimal digits."""
        return hashlib.sha256(json.dumps({"format": FORMAT} | self.flat, sort_keys=True).encode()).hexdigest()

    def to_json(self) -> str:
        """A flat JSON object for people to read and compare."""
        content = {"format": FORMAT, "fingerprint": self.fingerprint} | self.flat
        return json.dumps(content, indent=2) + "\n"

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read a manifest's file.

        Raises:
            InvariError: not a manifest of this format, or changed after it was written.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InvariError(f"{path}: cannot be read as a manifest of records ({error})") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InvariError(f"{path}: not a manifest of format {FORMAT}; move its folder elsewhere")
        parts: dict[str, dict[str, Scalar]] = {name: {} for name in PARTS}
        for key, value in content.items():
            part, dot, rest = key.partition(".")
            if dot and part in parts:
                parts[part][rest] = value
        manifest = cls(**parts)
        if manifest.fingerprint != content.get("fingerprint"):
            raise InvariError(f"{path}: was changed after it was written; restore it or delete its folder")
        return manifest


def differences(recorded: Mapping[str, Scalar], asked: Mapping[str, Scalar]) -> dict[str, str]:
    """The keys whose values differ, each with both values in words."""
    found = {}
    for key in sorted(recorded.keys() | asked.keys()):
        if key not in asked:
            found[key] = f"recorded with {_shown(recorded[key])}, now not given"
        elif key not in recorded:
            found[key] = f"recorded without it, now {_shown(asked[key])}"
        elif recorded[key] != asked[key]:
            found[key] = f"recorded with {_shown(recorded[key])}, now {_shown(asked[key])}"
    return found


def describe_reranker(spec: RerankerSpec) -> dict[str, Scalar]:
    """What a user asked for by naming a reranker: its name and options."""
    return {"reranker": spec.name, **flatten(spec.options, OPTION)}


def describe_tasks(tasks: TaskSet) -> dict[str, Scalar]:
    """The data set, its number of queries, and the hash of all that they hold."""
    return {
        "dataset": tasks.name,
        "queries": len(tasks.tasks),
        "tasks_sha256": content_hash(tasks.tasks),
    }


def describe_import(sha256: str) -> dict[str, Scalar]:
    """The environment of rankings that came in a file of this hash: all that is known of it."""
    return {IMPORTED: sha256}


def describe_environment(**more: Scalar) -> dict[str, Scalar]:
    """The versions of Python and of the libraries that can change an answer; none is imported."""
    found: dict[str, Scalar] = {"python": platform.python_version(), "machine": platform.machine()}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found | more


def flatten(values: Mapping[Any, Any], prefix: str = "") -> dict[str, Scalar]:
    """Nested mappings by dotted keys, other collections as JSON text, secrets hidden."""
    flat: dict[str, Scalar] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if is_secret_name(str(key)):
            flat[name] = HIDDEN
        elif isinstance(value, Mapping):
            flat |= flatten(value, f"{name}.")
        elif isinstance(value, str):
            flat[name] = without_secrets(value)
        elif value is None or isinstance(value, bool | int | float):
            flat[name] = value
        elif isinstance(value, list | tuple):
            flat[name] = without_secrets(json.dumps(value, default=str))
        else:
            flat[name] = without_secrets(str(value))
    return flat


def _shown(value: Scalar) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:12]}…{text[-6:]}"
