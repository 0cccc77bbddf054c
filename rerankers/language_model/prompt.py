"""A request as the tokens of a prompt, with the places of its candidates in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_invari.protocol import Request
from pytest_invari.rerankers.language_model.prompts import Template
from pytest_invari.rerankers.language_model.tokens import Tokens

__all__ = ["Prompt", "PromptWriter"]


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
        self.noun = noun
        self.text_tokens = text_tokens

    def write(self, request: Request, labels: Sequence[str] = ()) -> Prompt:
        """Write the prompt of one request; *labels* has one a candidate, where the template shows them."""
        suffix: list[int] = []
        spans: dict[str, tuple[int, int]] = {}
        before, _, after = self._worded(self.template.candidate_line).partition("{text}")
        shown = labels or [""] * len(request.candidates)
        for candidate, label in zip(request.candidates, shown, strict=True):
            suffix += self.tokens.plain(before.replace("{label}", label))
            text = self._text(candidate.text)
            spans[candidate.id] = (len(suffix), len(suffix) + len(text))
            suffix += text
            suffix += self.tokens.plain(after.replace("{label}", label)) if after else ()
        suffix += self._ending
        prefix = self._prefix(request)
        if any(start == 0 for start, _ in spans.values()):
            # The suffix's first token has no log-probability; it must not be one of a candidate's text.
            suffix.insert(0, prefix[-1])
            prefix = prefix[:-1]
            spans = {item: (start + 1, end + 1) for item, (start, end) in spans.items()}
        return Prompt(prefix, tuple(suffix), spans)

    def _prefix(self, request: Request) -> tuple[int, ...]:
        template = self.template
        prefix = list(self._frame[0])
        if request.context.text and template.query:
            prefix += self._around(template.query, request.context.text)
        if request.context.history and template.history:
            prefix += self.tokens.plain(self._worded(template.history))
            for entry in request.context.history:
                prefix += self._around(template.history_line, entry.text)
        prefix += self.tokens.plain(self._worded(template.candidates))
        return tuple(prefix)

    def _around(self, piece: str, text: str) -> list[int]:
        before, _, after = self._worded(piece).partition("{text}")
        parts = (self.tokens.plain(before), self._text(text), self.tokens.plain(after) if after else ())
        return [token for part in parts for token in part]

    def _text(self, text: str) -> tuple[int, ...]:
        # Line breaks inside a text would look like the end of the item.
        return self.tokens.plain(" ".join(text.split()))[: self.text_tokens]

    def _worded(self, piece: str) -> str:
        return piece.replace("{noun}", self.noun)

    @cached_property
    def _frame(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.tokens.chat_frame() if self.template.chat else (self.tokens.start, ())

    @cached_property
    def _ending(self) -> tuple[int, ...]:
        pieces = [self._worded(self.template.answer), self._worded(self.template.answer_start)]
        answer, start = (self.tokens.plain(piece) if piece else () for piece in pieces)
        return (*answer, *self._frame[1], *start)
