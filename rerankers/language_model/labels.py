"""Labels that a model can answer with: single, distinct tokens."""

from __future__ import annotations

import string
from collections.abc import Sequence
from itertools import product

from pytest_invari.errors import InvariError
from pytest_invari.rerankers.language_model.tokens import Tokens


def find_labels(tokens: Tokens, count: int, before: str) -> tuple[tuple[str, int], ...]:
    """Find *count* labels with the token each one is where it is read.

    A to Z come first, then two-letter labels; each is kept only when it is one token of its own.
    *before* is what stands before the label at the answer (a space, or nothing).

    Raises:
        InvariError: the tokenizer has fewer such labels than there are candidates.
    """
    letters = string.ascii_uppercase
    found: dict[int, str] = {}
    for label in [*letters, *("".join(pair) for pair in product(letters, repeat=2))]:
        ids = tokens.plain(before + label)
        if len(ids) == 1:
            found.setdefault(ids[0], label)
        if len(found) == count:
            return tuple((label, token) for token, label in found.items())
    raise InvariError(
        f"{count} candidates need {count} labels, but only {len(found)} letters and pairs of letters are "
        "single tokens for this model; use shorter lists or scorer=item_likelihood"
    )


def audit_labels(tokens: Tokens, labels: Sequence[str], before: str) -> tuple[tuple[str, int], ...]:
    """Check labels that the user gave and return each with its token.

    Raises:
        InvariError: labels are not single tokens or not distinct; the message names them.
    """
    encoded = {label: tokens.plain(before + label) for label in labels}
    if len(encoded) < len(labels):
        raise InvariError(
            f"labels are repeated: {', '.join(sorted({x for x in labels if labels.count(x) > 1}))}"
        )
    split = [label for label, ids in encoded.items() if len(ids) != 1]
    if split:
        raise InvariError(
            "labels that are not single tokens for this model where it answers: "
            + ", ".join(map(repr, split))
        )
    pairs = tuple((label, ids[0]) for label, ids in encoded.items())
    if len({token for _, token in pairs}) < len(pairs):
        raise InvariError(f"labels share a token: {', '.join(map(repr, labels))}")
    return pairs
