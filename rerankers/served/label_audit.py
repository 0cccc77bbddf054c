"""Whether a service's model can answer with each label in one token: asked before anything is ranked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pytest_invari.errors import InvariError
from pytest_invari.rerankers.served.client import Client, ServiceError, TransientServiceError
from pytest_invari.rerankers.served.first_token import FirstToken
from pytest_invari.rerankers.served.service import part


@dataclass(frozen=True, slots=True)
class LabelAudit:
    """How labels were checked, and those that no answer has shown so far."""

    kind: str
    unseen: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}, not seen: {' '.join(self.unseen)}" if self.unseen else self.kind


def audit_by_tokenizer(client: Client, model: str, labels: Sequence[str], before: str) -> LabelAudit | None:
    """Ask the service's own tokenizer; None where it has none to ask.

    vLLM and SGLang read ``prompt`` and ``add_special_tokens``, llama.cpp ``content`` and ``add_special``, and
    each passes over the other's fields. *before* is what stands before the label in the model's answer.

    Raises:
        InvariError: labels are not single tokens there, or share one; the message names them.
    """
    tokens: dict[str, int] = {}
    # Between two texts a space is part of the label's token for most tokenizers.
    space = " " if before else ""
    start = _tokens(client, model, before) if before else []
    for label in labels:
        whole = _tokens(client, model, f"{before}{space}{label}")
        if start is None or whole is None:
            return None
        if len(whole) == len(start) + 1 and whole[:-1] == start:
            tokens[label] = whole[-1]
    _require_none(label for label in labels if label not in tokens)
    if len(set(tokens.values())) < len(tokens):
        raise InvariError(f"labels share a token of the service's model: {', '.join(map(repr, labels))}")
    return LabelAudit("tokenize")


def audit_by_answers(
    repeat: Callable[[str], FirstToken], labels: Sequence[str], seen: Iterable[str]
) -> LabelAudit:
    """Have the model *repeat* each label that was not *seen* in an answer; one that it shows is a token.

    A model that does not do as it is told leaves some unseen. That is no fault of theirs: where they are
    missing from an answer, the ranking says so.

    Raises:
        InvariError: the model begins to repeat a label with a token that is only a part of it.
    """
    proven, parts = set(seen), []
    for label in (label for label in labels if label not in proven):
        first = repeat(label)
        said = first.text.strip()
        if first.of([label]):
            proven.add(label)
        elif said and label.startswith(said):
            parts.append(label)
    _require_none(parts)
    return LabelAudit("by answer", tuple(label for label in labels if label not in proven))


def _tokens(client: Client, model: str, text: str) -> list[int] | None:
    fields = {"prompt": text, "add_special_tokens": False, "content": text, "add_special": False}
    try:
        tokens = part(client.post("/tokenize", {"model": model, **fields}).content, "tokens")
    except TransientServiceError:
        raise
    except ServiceError:
        return None
    whole = isinstance(tokens, list) and all(isinstance(each, int) for each in tokens)
    return tokens if whole else None


def _require_none(split: Iterable[str]) -> None:
    listed = [repr(label) for label in split]
    if listed:
        raise InvariError(
            "labels that are not single tokens of the service's model where it answers: "
            f"{', '.join(listed)}; give others by alphabet=…"
        )
