"""Text to tokens, piece by piece."""

from __future__ import annotations

from typing import Any


class Tokens:
    """A tokenizer that never joins two pieces of a prompt and never obeys the text it is given."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self._known: dict[str, tuple[int, ...]] = {}

    def plain(self, text: str) -> tuple[int, ...]:
        """Encode untrusted text: a control token that is spelled out in it stays letters."""
        found = self._known.get(text)
        if found is None:
            ids = self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
            found = self._known[text] = tuple(ids)
        return found

    def trusted(self, text: str) -> tuple[int, ...]:
        """Encode the frame of a chat, whose control tokens count."""
        return tuple(self.tokenizer.encode(text, add_special_tokens=False))

    @property
    def start(self) -> tuple[int, ...]:
        """What the model expects before any text; empty for many models."""
        first = self.tokenizer.bos_token_id
        adds = first is not None and self.tokenizer.encode("a")[:1] == [first]
        return (int(first),) if adds else ()

    @property
    def has_chat_template(self) -> bool:
        """Whether the model says how a chat is written."""
        return bool(self.tokenizer.chat_template)

    def chat_frame(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What the model's chat template puts before and after a user's message."""
        mark = "@@message@@"
        text = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": mark}], tokenize=False, add_generation_prompt=True
        )
        before, _, after = text.partition(mark)
        return self.trusted(before), self.trusted(after)
