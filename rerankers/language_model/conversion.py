"""GGUF files are converted once into the user's cache, because parsing one takes half a minute."""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_invari.cache import atomic_file, cache_dir
from pytest_invari.errors import InvariError
from pytest_invari.progress import bar
from pytest_invari.rerankers.language_model.source import ModelSource

COMPLETE = "complete.json"


def model_folder(source: ModelSource) -> Path:
    """Return a folder from which transformers loads the weights in a second.

    A GGUF file is converted where that is needed. The folder appears in the cache whole or not at all. Each
    of its files is checked against the checksum taken when it was written; a damaged folder is made again.
    Processes that start at the same time wait for the one that converts.

    Raises:
        InvariError: the file is no model that transformers can read, or the cache cannot be written.
    """
    return _folder(source, "", f"converting {source.path.name}, once", _read_model)


def tokenizer_folder(source: ModelSource) -> Path:
    """Return a folder with the tokenizer, which is read from a GGUF file without its weights.

    So labels and chat templates can be refused before half a gigabyte is converted.

    Raises:
        InvariError: as :func:`model_folder`.
    """
    return _folder(
        source, "-tokenizer", f"reading the tokenizer of {source.path.name}, once", _read_tokenizer
    )


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers' bars and reports off the terminal during the block: ours say what matters."""
    from transformers.utils import logging

    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()


def _folder(source: ModelSource, suffix: str, title: str, read: Callable[[Path], Any]) -> Path:
    if not source.is_gguf:
        return source.path
    from filelock import FileLock

    folder = cache_dir() / "models" / f"{source.path.stem}-{source.revision[:12]}{suffix}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(folder.name + ".lock")):
            if not _is_complete(folder):
                with quiet_transformers(), bar(1, title, unit="file") as shown:
                    _convert(source, folder, read)
                    shown.advance()
    except OSError as error:
        raise InvariError(
            f"{folder}: cannot be written ({error}); set INVARI_CACHE to another folder"
        ) from None
    return folder


def _convert(source: ModelSource, folder: Path, read: Callable[[Path], Any]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
        # A folder inside it, since the temporary one is removed under its own name.
        made = Path(temporary) / "made"
        try:
            converted = read(source.path)
        except Exception as error:
            # The readers raise many kinds of errors on a damaged or unknown file.
            raise InvariError(
                f"model {str(source.path)!r}: cannot be read ({' '.join(str(error).split())[:200]})"
            ) from error
        converted.save_pretrained(made)
        checksums = {path.name: _checksum(path) for path in sorted(made.iterdir())}
        with atomic_file(made / COMPLETE) as path:
            path.write_text(json.dumps({"source": source.name, "crc32": checksums}, indent=1) + "\n")
        made.rename(folder)


def _read_tokenizer(path: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


def _read_model(path: Path) -> Any:
    import torch
    from transformers import AutoModelForCausalLM, modeling_gguf_pytorch_utils

    # This reader's bar does not listen to transformers' own switch.
    drawn = getattr(modeling_gguf_pytorch_utils, "tqdm", None)
    if drawn is not None:
        modeling_gguf_pytorch_utils.tqdm = functools.partial(drawn, disable=True)
    try:
        model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    finally:
        if drawn is not None:
            modeling_gguf_pytorch_utils.tqdm = drawn
    # The weights are plain numbers from here on; left in place, the marks of the quantized file would
    # make transformers refuse to save them.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None
    model.is_quantized = False
    return model


def _is_complete(folder: Path) -> bool:
    try:
        checksums = json.loads((folder / COMPLETE).read_text())["crc32"]
        return bool(checksums) and all(_checksum(folder / name) == value for name, value in checksums.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _checksum(path: Path) -> int:
    # CRC-32 finds damage as well as a cryptographic hash does, several times as fast: this runs at
    # every start, over half a gigabyte.
    value = 0
    with path.open("rb") as opened:
        while block := opened.read(1 << 22):
            value = zlib.crc32(block, value)
    return value
