"""A request as the tokens of a prompt, with the places of its candidates in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_invari.protocol import Request
from pytest_invari.rerankers.language_model.prompts import Template
from pytest_invari.rerankers.language_model.tokens import Tokens
from pytest_invari.rerankers.language_model.wording import Piece, PromptWording


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt in two parts: *prefix* is the same for all views of a query, *suffix* is not.

    ``spans`` gives, for each item, where the tokens of its text begin and end in the suffix.
    """

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    spans: Mapping[str, tuple[int, int]]

    def __len__(self) -> int:
        return len(self.prefix) + len(self.suffix)


class PromptWriter:
    """Fills in a template. Every piece is encoded by itself, so its tokens do not depend on its neighbours.

    Args:
        noun: the word for the items, where the template has ``{noun}``.
        text_tokens: candidate and history texts are cut, each by itself, to so many tokens (P2: 64).
    """

    def __init__(self, tokens: Tokens, template: Template, *, noun: str, text_tokens: int) -> None:
        self.tokens = tokens
        self.template = template
        self.text_tokens = text_tokens
        self._wording = PromptWording(template, noun)

    def write(self, request: Request, labels: Sequence[str] = ()) -> Prompt:
        """Write the prompt of one request; *labels* has one a candidate, where the template shows them."""
        suffix: list[int] = []
        spans: dict[str, tuple[int, int]] = {}
        shown = labels or [""] * len(request.candidates)
        for candidate, label in zip(request.candidates, shown, strict=True):
            before, item, after = map(self._encoded, self._wording.candidate(candidate.text, label))
            suffix += before
            spans[candidate.id] = (len(suffix), len(suffix) + len(item))
            suffix += (*item, *after)
        suffix += self._ending
        prefix = self._prefix(request)
        if any(start == 0 for start, _ in spans.values()):
            # The suffix's first token has no log-probability; it must not be one of a candidate's text.
            suffix.insert(0, prefix[-1])
            prefix = prefix[:-1]
            spans = {item: (start + 1, end + 1) for item, (start, end) in spans.items()}
        return Prompt(prefix, tuple(suffix), spans)

    def _prefix(self, request: Request) -> tuple[int, ...]:
        pieces = map(self._encoded, self._wording.beginning(request.context))
        return (*self._frame[0], *(token for piece in pieces for token in piece))

    def _encoded(self, piece: Piece) -> tuple[int, ...]:
        tokens = self.tokens.plain(piece.text) if piece.text else ()
        return tokens[: self.text_tokens] if piece.is_item else tokens

    @cached_property
    def _frame(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.tokens.chat_frame() if self.template.chat else (self.tokens.start, ())

    @cached_property
    def _ending(self) -> tuple[int, ...]:
        question, start = self._wording.question, self._wording.answer_start
        return (*self._encoded(Piece(question)), *self._frame[1], *self._encoded(Piece(start)))
