"""A request in the words of a template, piece by piece, before any tokenizer sees it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pytest_invari.protocol import Context
from pytest_invari.rerankers.language_model.prompts import Template


class Piece(NamedTuple):
    """A part of a prompt. One that *is_item* is a query's, history entry's or candidate's own text."""

    text: str
    is_item: bool = False


class PromptLine(NamedTuple):
    """A text and the words around it."""

    before: Piece
    item: Piece
    after: Piece


@dataclass(frozen=True, slots=True)
class PromptWording:
    """A template with its noun. What the context says comes first, then the candidates, then the question."""

    template: Template
    noun: str

    def beginning(self, context: Context) -> Iterator[Piece]:
        """All that stands before the first candidate: the same for all views of a query."""
        template = self.template
        if context.text and template.query:
            yield from self._around(template.query, context.text)
        if context.history and template.history:
            yield Piece(self._worded(template.history))
            for entry in context.history:
                yield from self._around(template.history_line, entry.text)
        yield Piece(self._worded(template.candidates))

    def candidate(self, text: str, label: str) -> PromptLine:
        """One candidate's line."""
        before, item, after = self._around(self.template.candidate_line, text)
        return PromptLine(
            Piece(before.text.replace("{label}", label)), item, Piece(after.text.replace("{label}", label))
        )

    @property
    def question(self) -> str:
        """What follows the candidates."""
        return self._worded(self.template.answer)

    @property
    def answer_start(self) -> str:
        """How the model's answer begins."""
        return self._worded(self.template.answer_start)

    def _around(self, piece: str, text: str) -> PromptLine:
        before, _, after = self._worded(piece).partition("{text}")
        # Line breaks inside a text would look like the end of the item.
        return PromptLine(Piece(before), Piece(" ".join(text.split()), is_item=True), Piece(after))

    def _worded(self, piece: str) -> str:
        return piece.replace("{noun}", self.noun)
