"""Zero-shot listwise reranking: one call of a language model on the list as given (P1, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_invari.errors import InvariError
from pytest_invari.protocol import LabelBinding
from pytest_invari.rerankers.language_model.listwise import ListwiseLanguageModel, Scorer
from pytest_invari.rerankers.language_model.prompts import read_template

if TYPE_CHECKING:
    from pytest_invari.registry.build import Build


def make(
    build: Build,
    scorer: Scorer = "item_likelihood",
    prompt: str = "",
    noun: str = "movies",
    text_tokens: int = 64,
    labels: LabelBinding | None = None,
    alphabet: str = "",
) -> ListwiseLanguageModel:
    """Rank by one listwise call of a language model (P1 section 4); 1 call.

    Args:
        build: what the session offers.
        scorer: ``item_likelihood`` (the default, since the embedded model carries a preference there),
            ``label_logprob`` or ``constrained``.
        prompt: a template's name or the path of a TOML file; by default the one that suits the scorer.
        noun: the word for the items in the prompt.
        text_tokens: the most tokens of one candidate or history text.
        labels: which item bears which label, where the prompt shows labels: ``item`` (the same in all views
            of a query), ``position`` (the first label stands at the first place) or ``redrawn`` (drawn for
            each view anew); by default what the plan says.
        alphabet: the labels, separated by spaces; by default A, B, C, … as far as they are tokens.
    """
    template = read_template(prompt or ("likes" if scorer == "item_likelihood" else "choice"))
    if scorer != "item_likelihood" and not template.has_labels:
        raise InvariError(
            f"scorer {scorer!r} needs a prompt that shows '{{label}}', which {prompt!r} does not"
        )
    if text_tokens < 1:
        raise InvariError(f"option 'text_tokens' must be at least 1, not {text_tokens}")
    return ListwiseLanguageModel(
        settings=build.settings,
        scorer=scorer,
        template=template,
        k=build.k,
        noun=noun,
        text_tokens=text_tokens,
        labels=labels or build.labels,
        alphabet=tuple(alphabet.split()),
        shared=build.shared,
    )
