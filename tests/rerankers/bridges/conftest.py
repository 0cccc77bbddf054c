"""A cross-encoder as small as one can be: real weights, real tokenizer, one second to make."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

# A library that is not installed has nothing to be tested with.
collect_ignore = [
    f"test_{name}.py"
    for name, module in (
        ("cross_encoder", "sentence_transformers"),
        ("answerdotai", "rerankers"),
        ("rank_llm", "rank_llm"),
    )
    if importlib.util.find_spec(module) is None
]

WORDS = ["space", "opera", "star", "wars", "alien", "heat", "solaris", "the", "big", "sleep", "long"]


def save_cross_encoder(folder: Path, *, labels: int = 1) -> Path:
    """Save a BERT with two layers of width 16, and a tokenizer of a few words."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")
    tokenizer = BertTokenizerFast(vocab=str(vocabulary), model_max_length=16)
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        num_labels=labels,
        initializer_range=0.5,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def cross_encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_cross_encoder(tmp_path_factory.mktemp("cross-encoder"))
