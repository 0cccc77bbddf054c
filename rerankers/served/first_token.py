"""The first token of a chat endpoint's answer, and what it says about labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_invari.protocol import RankingError
from pytest_invari.protocol.usercode import shortened
from pytest_invari.rerankers.served.service import is_finite, part

# A label stands at the beginning of an answer, or after a space, and tokens of both kinds mean the label.
FORMS = ("{}", " {}")


@dataclass(frozen=True, slots=True)
class FirstToken:
    """What the service said first, and the tokens that it might have said, with their log-probabilities."""

    text: str
    alternatives: tuple[tuple[str, float], ...]
    finish_reason: str

    @classmethod
    def read(cls, content: Any) -> FirstToken:
        """Read a chat completion.

        A token that is listed twice with one log-probability counts once; two tokens of one text (they differ
        in bytes that the text does not show) are two.

        Raises:
            RankingError: it refuses, has no log-probabilities, or one of them is not a number.
        """
        choices = part(content, "choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            told = part(content, "error", "message") or part(content, "error")
            raise RankingError(f"the answer has no choices{f': {shortened(told, 200)}' if told else ''}")
        reason = _text(choice.get("finish_reason"))
        refusal = _text(part(choice, "message", "refusal"))
        if refusal or reason == "content_filter":
            raise RankingError(f"the service refuses to answer: {refusal[:100] or reason}")
        tokens = part(choice, "logprobs", "content")
        first = tokens[0] if isinstance(tokens, list) and tokens else None
        if not isinstance(first, dict):
            raise RankingError("the answer has no log-probabilities (logprobs.content)")
        listed = first.get("top_logprobs")
        if not isinstance(listed, list) or not listed:
            raise RankingError("the answer has no log-probabilities of other tokens (top_logprobs)")
        found = dict.fromkeys(map(_read, listed))
        said = _read(first)
        if said[0] not in {text for text, _ in found}:
            found[said] = None
        return cls(said[0], tuple(found), reason)

    def of(self, labels: Sequence[str]) -> Mapping[str, float]:
        """The log-probability of each label that is listed, over the forms that mean it.

        Texts are compared exactly.
        """
        listed: dict[str, list[float]] = {}
        for text, value in self.alternatives:
            listed.setdefault(text, []).append(value)
        forms = {label: [v for form in FORMS for v in listed.get(form.format(label), ())] for label in labels}
        return {label: _log_sum(values) for label, values in forms.items() if values}


def _read(token: Any) -> tuple[str, float]:
    text, value = part(token, "token"), part(token, "logprob")
    if not isinstance(text, str):
        raise RankingError(f"the answer lists a token whose text is {shortened(text)}")
    if not is_finite(value):
        raise RankingError(
            f"the log-probability of token {shortened(text)} is {shortened(value)}, not a number"
        )
    if value > 1e-3:
        raise RankingError(f"the log-probability of token {shortened(text)} is {value:g}, above 0")
    return text, float(value)


def _log_sum(values: Sequence[float]) -> float:
    most = max(values)
    return most + math.log(math.fsum(math.exp(value - most) for value in values))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
