"""Small models with random weights, really built and saved: other kinds, and damaged folders."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_invari.errors import InvariError
from pytest_invari.protocol import Candidate, Context, HistoryEntry, Request
from pytest_invari.protocol.capabilities import has_early_fingerprint
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.rerankers.language_model.engine import Engine
from pytest_invari.rerankers.language_model.listwise import ListwiseLanguageModel
from pytest_invari.rerankers.language_model.prompt import Prompt
from pytest_invari.rerankers.zero_shot import make
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import TaskSet

VOCABULARY = 97
WORDS = ("[UNK]", "<s>", "\n", "first", "second", "third", "A", "B", "C", ".", "list", ":", "user", "likes")
# Measured 5e-7 with numbers of about 5.
TOLERANCE = 2e-6


def llama() -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    size: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, **size, **heads)).eval()


def gemma() -> Any:
    """A model whose every second layer sees only the last 8 tokens."""
    import torch
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    torch.manual_seed(0)
    layers = ["sliding_attention", "full_attention"] * 2
    size: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "head_dim": 8}
    heads: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2, "layer_types": layers}
    config = Gemma3TextConfig(vocab_size=VOCABULARY, sliding_window=8, **size, **heads)
    return Gemma3ForCausalLM(config).eval()


def numbers(model: Any, tokens: Sequence[int]) -> Any:
    """Log-softmax at every position of one whole prompt, without a cache."""
    import torch

    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([list(tokens)]), use_cache=False).logits[0]
        return logits.float().log_softmax(-1).numpy()


def prompts(prefix: int) -> list[Prompt]:
    """Prompts of unequal lengths behind two prefixes."""
    draw = random.Random(prefix)
    made = []
    for _ in range(2):
        shared = tuple(draw.randrange(VOCABULARY) for _ in range(prefix))
        for length in (12, 20, 5):
            made.append(Prompt(shared, tuple(draw.randrange(VOCABULARY) for _ in range(length)), {}))
    return made


@pytest.mark.parametrize("prefix", [0, 3, 30])
@pytest.mark.parametrize("kind", [llama, gemma])
@pytest.mark.parametrize("batch_tokens", [1, 4096])
def test_all_readings_agree_with_one_prompt_at_a_time(kind: Any, prefix: int, batch_tokens: int) -> None:
    model = kind()
    engine = Engine(model, batch_tokens=batch_tokens)
    listed = prompts(prefix)
    labels = [[1, 2, 3, 4, 5], [9, 8, 7, 6], [5, 4, 3, 2, 1]] * 2
    texts, _ = engine.text_log_probabilities(listed)
    answers, _ = engine.label_log_probabilities(listed, labels)
    orders, _ = engine.label_orders(listed, labels)
    for prompt, text, answer, reading, tokens in zip(listed, texts, answers, orders, labels, strict=True):
        whole = numbers(model, prompt.prefix + prompt.suffix)
        steps = range(1, len(prompt.suffix))
        naive = [whole[len(prompt.prefix) + step - 1, prompt.suffix[step]] for step in steps]
        np.testing.assert_allclose(text, naive, atol=TOLERANCE, rtol=0)
        np.testing.assert_allclose(answer, whole[-1, tokens], atol=TOLERANCE, rtol=0)
        grown = list(prompt.prefix + prompt.suffix)
        emitted: list[int] = []
        while len(emitted) < len(tokens):
            last = numbers(model, grown)[-1]
            left = [index for index in range(len(tokens)) if index not in emitted]
            emitted.append(max(left, key=lambda index: float(last[tokens[index]])))
            grown.append(tokens[emitted[-1]])
        assert reading.order == tuple(emitted)
        first = whole[-1, tokens] - np.log(np.exp(whole[-1, tokens]).sum())
        np.testing.assert_allclose(reading.first, first, atol=TOLERANCE, rtol=0)


def test_tokens_not_computed_are_counted_once_a_prefix() -> None:
    engine = Engine(llama(), batch_tokens=25)
    listed = prompts(30)
    for expected in ([0, 30, 30, 0, 30, 30], [30] * 6):
        assert engine.text_log_probabilities(listed)[1] == expected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A complete model: weights, and a tokenizer of whole words without a chat template."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    from transformers.utils import logging

    words = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n|[\w\[\]<>]+|\.|:| "), "isolated", invert=False)
    path = tmp_path / "small"
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]").save_pretrained(path)
    logging.disable_progress_bar()
    llama().save_pretrained(path)
    logging.enable_progress_bar()
    return path


def built(folder: Path, k: int = 3, **options: Any) -> ListwiseLanguageModel:
    settings = ModelSettings(model=str(folder), device="cpu")
    return make(Build(settings, TaskSet.of("none", ()), k, Registry(), {}), **options)


def template(folder: Path, text: str) -> str:
    path = folder.parent / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def request(*texts: str, query: str = "", history: Sequence[str] = ()) -> Request:
    context = Context(query, tuple(map(HistoryEntry, history)))
    return Request("q", context, tuple(Candidate(text, text) for text in texts))


def test_text_at_the_beginning_of_its_line_is_scored_whole(folder: Path) -> None:
    prompt = template(folder, 'candidates = "list:\\n"\ncandidate_line = "{text}\\n"\n')
    model = built(folder, prompt=prompt)
    asked = request("first", "second", "third second")
    answer = model.rank(asked)
    tokens = [WORDS.index(word) for word in ("list", ":", "\n")]
    naive = {}
    whole = [*tokens]
    places = {}
    for text in asked.ids:
        ids = list(model.tokens.plain(text))
        places[text] = (len(whole), ids)
        whole += [*ids, WORDS.index("\n")]
    read = numbers(model.engine.model, whole)
    for text, (start, ids) in places.items():
        naive[text] = np.mean([read[start + step - 1, token] for step, token in enumerate(ids)])
    assert answer.scores is not None
    np.testing.assert_allclose(answer.scores, [naive[item] for item in answer.order], atol=TOLERANCE)
    assert answer.cost.tokens_in == len(whole)


def test_pieces_whose_subject_is_missing_are_left_out(folder: Path) -> None:
    text = """
    query = "user:{text}\\n"
    history = "{noun} likes:"
    history_line = "\\n{text}"
    candidates = "\\n{noun} list:"
    candidate_line = "\\n{noun} {text}"
    """
    model = built(folder, prompt=template(folder, text), noun="user")

    def read(asked: Request) -> str:
        prompt = model.writer.write(asked)
        return "|".join(WORDS[token] for token in (*prompt.prefix, *prompt.suffix) if WORDS[token] != "[UNK]")

    bare = read(request("first"))
    assert bare == "\n|user|list|:|\n|user|first"
    assert read(request("first", query="second")) == "user|:|second|\n|" + bare
    assert read(request("first", history=["third"])) == "user|likes|:|\n|third|" + bare


def test_incomplete_weights_are_refused_and_not_made_up(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    built(folder).prepare()
    weights = folder / "model.safetensors"
    kept = {name: value for name, value in load_file(weights).items() if "layers.1" not in name}
    save_file(kept, weights, metadata={"format": "pt"})
    with pytest.raises(InvariError, match=r"9 of its weights are not in its files"):
        built(folder).prepare()


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_damaged_file_is_one_clear_line(folder: Path, file: str) -> None:
    damaged = folder / file
    damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
    with pytest.raises(InvariError, match=r"^model 'small': .*cannot be loaded \(") as caught:
        built(folder).prepare()
    assert "\n" not in str(caught.value)


def test_unknown_type_of_model_is_one_clear_line_and_nothing_else(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "nosuch"}')
    heard: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    listener = Listener()
    logging.getLogger("transformers").addHandler(listener)
    try:
        model = built(folder)
        model.check()
        with pytest.raises(InvariError, match="model type `nosuch`"):
            model.prepare()
    finally:
        logging.getLogger("transformers").removeHandler(listener)
    assert heard == []


def test_missing_tokenizer_and_chat_template_are_refused_before_the_weights(folder: Path) -> None:
    model = built(folder, scorer="label_logprob")
    with pytest.raises(InvariError, match="has no chat template"):
        model.check()
    assert "engine" not in model.__dict__
    for path in folder.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(InvariError, match="its tokenizer cannot be loaded"):
        built(folder).check()


def test_labels_a_tokenizer_lacks_are_refused_before_the_weights(folder: Path) -> None:
    prompt = template(folder, 'candidates = "list:"\ncandidate_line = "\\n{label}. {text}"\n')
    with pytest.raises(InvariError, match="labels"):
        built(folder, scorer="constrained", prompt=prompt).check()


def test_it_says_the_same_of_itself_before_it_is_loaded(folder: Path) -> None:
    reranker = built(folder)
    assert has_early_fingerprint(reranker)
    before = reranker.fingerprint()
    assert not [key for key in reranker.shared if "model" in str(key)]
    reranker.prepare()
    assert reranker.fingerprint() == before


def test_revision_follows_the_content(folder: Path) -> None:
    before = built(folder).fingerprint()
    assert built(folder).fingerprint() == before
    config = folder / "config.json"
    config.write_text(config.read_text() + "\n")
    assert built(folder).fingerprint()["revision"] != before["revision"]
