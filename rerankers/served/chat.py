"""Chat endpoints (vLLM, SGLang, llama.cpp, Ollama, OpenAI): a list in one message, a label as the answer."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pytest_invari.errors import InvariError
from pytest_invari.observation.uncertainty import certainty
from pytest_invari.protocol import (
    Candidate,
    Context,
    Cost,
    LabelBinding,
    Ranking,
    RankingError,
    Request,
    seeded_hash,
)
from pytest_invari.protocol.ranking import TRUNCATED
from pytest_invari.rerankers.language_model.prompts import Template, read_template
from pytest_invari.rerankers.language_model.wording import Piece, PromptWording
from pytest_invari.rerankers.served.address import Address, ApiKey
from pytest_invari.rerankers.served.client import Client, Reply
from pytest_invari.rerankers.served.first_token import FirstToken
from pytest_invari.rerankers.served.host import Limits
from pytest_invari.rerankers.served.label_audit import LabelAudit, audit_by_answers, audit_by_tokenizer
from pytest_invari.rerankers.served.service import Served, described, part, unusable, whole

if TYPE_CHECKING:
    from pytest_invari.registry.build import Build


LengthField = Literal["max_tokens", "max_completion_tokens"]

OPENAI = "https://api.openai.com"
# SGLang takes any number, and one beyond the vocabulary ends it.
MOST_LOG_PROBABILITIES = 1000


class ChatEndpoint(Served):
    """One chat completion of one token ranks one list, by the log-probabilities of the candidates' labels.

    Labels that are not among the tokens that the service lists are less probable than those that are: the
    ranking is then partial, their candidates stand last, and nobody has a score.
    """

    def __init__(
        self,
        client: Client,
        model: str,
        template: Template,
        k: int,
        *,
        noun: str = "items",
        text_characters: int = 0,
        labels: LabelBinding = "item",
        alphabet: Sequence[str] = (),
        top_logprobs: int = 20,
        prefill: bool = False,
        thinking: bool | None = None,
        length_field: LengthField = "max_tokens",
        shared: MutableMapping[object, Any] | None = None,
    ) -> None:
        super().__init__(client)
        self.model, self.template, self.k = model, template, k
        self.wording = PromptWording(template, noun)
        self.text_characters = text_characters
        self.label_binding: LabelBinding = labels
        self.alphabet = tuple(alphabet) or tuple(string.ascii_uppercase)
        self.top_logprobs = top_logprobs
        self.prefill, self.thinking, self.length_field = prefill, thinking, length_field
        self._shared: MutableMapping[object, Any] = {} if shared is None else shared
        self._audit_key = ("labels", str(client.address), model, prefill, *self.alphabet[:k])

    def check(self) -> None:
        """Refuse bad settings, and too few labels or log-probabilities for the lists.

        Raises:
            InvariError: with the option's name.
        """
        super().check()
        repeated = {label for label in self.alphabet if self.alphabet.count(label) > 1}
        if repeated:
            raise InvariError(f"option 'alphabet' repeats {', '.join(map(repr, sorted(repeated)))}")
        if len(self.alphabet) < self.k:
            raise InvariError(
                f"lists of {self.k} candidates need {self.k} labels, and there are {len(self.alphabet)}; "
                'give more by alphabet="A B C …"'
            )
        if self.top_logprobs < self.k:
            raise InvariError(
                f"lists of {self.k} candidates need top_logprobs={self.k} or more, not {self.top_logprobs}; "
                "OpenAI and Ollama allow 20, vLLM what --max-logprobs says (20 unless it is set)"
            )

    def prepare(self) -> None:
        """Ask about one list of texts, and whether each label is one token.

        Raises:
            InvariError: the service does not answer, gives no or too few log-probabilities, answers with no
                label, or labels are not single tokens.
        """
        if self._audit is not None:
            return
        labels = self.alphabet[: self.k]
        try:
            first = self._first(self._messages(_probe(self.k), labels))
            self._require_enough(first)
            before = self.wording.answer_start.strip() if self.prefill else ""
            self._shared[self._audit_key] = audit_by_tokenizer(
                self.client, self.model, labels, before
            ) or audit_by_answers(self._repeat, labels, first.of(labels))
        except RankingError as error:
            raise InvariError(f"the service does not rank a list: {error}") from None

    def _require_enough(self, first: FirstToken) -> None:
        who, count = self.client.address, len(first.alternatives)
        if not first.of(self.alphabet[: self.k]):
            raise InvariError(
                f"{who}: model {self.model!r} begins to answer with {first.text[:40]!r} and lists no label; "
                "try thinking=false, prefill=true, or another prompt"
            )
        if count < self.k:
            raise InvariError(
                f"{who}: lists {count} tokens where top_logprobs={self.top_logprobs} were asked for, too few "
                f"for lists of {self.k} candidates"
            )

    def ask(self, request: Request) -> Ranking:
        """See :class:`Served`."""
        request = request.labelled(self.label_binding)
        labels = self._labels_of(request)
        reply = self._complete(self._messages(request, labels))
        cost = _cost(reply.content)
        try:
            first = FirstToken.read(reply.content)
            scores = first.of(labels)
            diagnostics = {**self._diagnostics(reply, first, scores), **self._cut(request)}
            return _ranking(request, labels, scores, cost, diagnostics)
        except RankingError as error:
            told = described(reply, part(reply.content, "model"))
            return unusable(f"{self.client.address}: {error}", cost, told)

    def fingerprint(self) -> Mapping[str, object]:
        """Address, model, prompt, labels, and how these were found to be tokens."""
        return {
            "reranker": "chat",
            "url": str(self.client.address),
            "model": self.model,
            "prompt": {name: getattr(self.template, name) for name in Template.__slots__},
            "noun": self.wording.noun,
            "text_characters": self.text_characters,
            "labels": self.label_binding,
            "alphabet": list(self.alphabet[: self.k]),
            "top_logprobs": self.top_logprobs,
            "prefill": self.prefill,
            "thinking": "service's default" if self.thinking is None else self.thinking,
            "audit": self._audit.kind if self._audit else "not made",
        }

    @property
    def _audit(self) -> LabelAudit | None:
        """Kept for the session, since the same reranker may be built twice."""
        return self._shared.get(self._audit_key)

    def _labels_of(self, request: Request) -> list[str]:
        indices = request.label_indices
        if max(indices, default=0) >= len(self.alphabet):
            raise RankingError(
                f"query {request.query_id!r}: there are only {len(self.alphabet)} labels for the candidates"
            )
        return [self.alphabet[index] for index in indices]

    def _messages(self, request: Request, labels: Sequence[str]) -> list[dict[str, str]]:
        wording = self.wording
        pieces = [*wording.beginning(request.context)]
        for candidate, label in zip(request.candidates, labels, strict=True):
            pieces += wording.candidate(candidate.text, label)
        return self._asking("".join(map(self._text, pieces)) + wording.question)

    def _asking(self, text: str) -> list[dict[str, str]]:
        """The user's message, and how the answer begins: as the model's own words, or as the last line."""
        start = self.wording.answer_start.strip()
        if self.prefill:
            return [{"role": "user", "content": text}, {"role": "assistant", "content": start}]
        return [{"role": "user", "content": f"{text}\n{start}" if start else text}]

    def _text(self, piece: Piece) -> str:
        return piece.text[: self.text_characters or None] if piece.is_item else piece.text

    def _cut(self, request: Request) -> dict[str, int]:
        """How many candidates' texts are longer than what is sent of them, where some are."""
        most = self.text_characters or math.inf
        count = sum(len(" ".join(each.text.split())) > most for each in request.candidates)
        return {TRUNCATED: count} if count else {}

    def _complete(self, messages: Sequence[Mapping[str, str]]) -> Reply:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": messages,
            "temperature": 0,
            self.length_field: 1,
            "logprobs": True,
            "top_logprobs": self.top_logprobs,
        }
        if self.prefill:
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        if self.thinking is not None:
            body["chat_template_kwargs"] = {"enable_thinking": self.thinking}
        return self.client.post("/v1/chat/completions", body)

    def _first(self, messages: Sequence[Mapping[str, str]]) -> FirstToken:
        return FirstToken.read(self._complete(messages).content)

    def _repeat(self, label: str) -> FirstToken:
        return self._first(self._asking(f"Answer with this label only, and with nothing else: {label}"))

    def _diagnostics(self, reply: Reply, first: FirstToken, scores: Mapping[str, float]) -> dict[str, Any]:
        fingerprint = part(reply.content, "system_fingerprint")
        is_expected = first.finish_reason in ("length", "stop")
        return {
            **described(reply, part(reply.content, "model")),
            **({"system_fingerprint": fingerprint[:200]} if isinstance(fingerprint, str) else {}),
            **({} if is_expected else {"finish_reason": first.finish_reason[:40]}),
            **({} if first.text.removeprefix(" ") in scores else {"answer": first.text[:40]}),
            "label_audit": str(self._audit or "not made"),
            "label_mass": math.fsum(map(math.exp, scores.values())),
        }


def make(
    build: Build,
    url: str,
    model: str,
    prompt: str = "choice",
    noun: str = "items",
    text_characters: int = 0,
    labels: LabelBinding | None = None,
    alphabet: str = "",
    top_logprobs: int = 20,
    prefill: bool = False,
    thinking: bool | None = None,
    length_field: LengthField = "max_tokens",
    key_env: str = "",
    key_file: str = "",
    plain_http_key: bool = False,
    concurrency: int = 8,
    timeout: float = 60.0,
    attempts: int = 5,
) -> ChatEndpoint:
    """Ask a chat endpoint for log-probabilities, as in chat://localhost:8000?model=NAME; 1 call.

    Args:
        build: what the session offers.
        url: the service's address; ``/v1/chat/completions`` is put behind it, and ``/v1`` may end it.
        model: which of its models.
        prompt: a template's name or the path of a TOML file; it shows labels.
        noun: the word for the items in the prompt.
        text_characters: the most characters of one candidate or history text; 0 leaves them whole.
        labels: which item bears which label: ``item``, ``position`` or ``redrawn``; by default what the plan
            says.
        alphabet: the labels, separated by spaces; by default A to Z.
        top_logprobs: how many tokens the service lists; at least one a candidate.
        prefill: let the model go on from the template's ``answer_start`` (vLLM, SGLang, llama.cpp), which is
            otherwise the message's last line.
        thinking: sent to the model's chat template as ``enable_thinking``; by default nothing is.
        length_field: what the service calls the most tokens of an answer.
        key_env: the environment variable that holds the key; by default OPENAI_API_KEY for OpenAI's own
            address and none for any other.
        key_file: a file that holds the key.
        plain_http_key: let a key go to another machine by plain HTTP.
        concurrency: the most requests in flight to one host.
        timeout: the most seconds of one attempt.
        attempts: how often one request is tried.
    """
    template = read_template(prompt)
    if not template.has_labels:
        raise InvariError(f"a chat endpoint needs a prompt that shows '{{label}}', which {prompt!r} does not")
    if prefill and not template.answer_start.strip():
        raise InvariError(f"option 'prefill' needs a prompt with 'answer_start', which {prompt!r} has not")
    if text_characters < 0:
        raise InvariError(f"option 'text_characters' must be at least 0, not {text_characters}")
    if not 1 <= top_logprobs <= MOST_LOG_PROBABILITIES:
        raise InvariError(
            f"option 'top_logprobs' must be from 1 to {MOST_LOG_PROBABILITIES}, not {top_logprobs}"
        )
    address = Address.parse(url)
    address = Address(address.origin, address.path.removesuffix("/v1"))
    client = Client(
        address,
        ApiKey.of(key_env, key_file, "OPENAI_API_KEY" if address.origin == OPENAI else ""),
        Limits(concurrency, timeout, attempts),
        build.shared,
        plain_http_key=plain_http_key,
    )
    return ChatEndpoint(
        client,
        model,
        template,
        build.k,
        noun=noun,
        text_characters=text_characters,
        labels=labels or build.labels,
        alphabet=alphabet.split(),
        top_logprobs=top_logprobs,
        prefill=prefill,
        thinking=thinking,
        length_field=length_field,
        shared=build.shared,
    )


def _probe(k: int) -> Request:
    texts = tuple(Candidate(str(number), f"text {number}") for number in range(1, k + 1))
    return Request("probe", Context("probe"), texts)


def _cost(content: Any) -> Cost:
    read = whole(part(content, "usage", "prompt_tokens"))
    cached = whole(part(content, "usage", "prompt_tokens_details", "cached_tokens"))
    return Cost(
        calls=1,
        depth=1,
        tokens_in=read,
        tokens_cached=min(cached, read),
        tokens_out=whole(part(content, "usage", "completion_tokens")),
    )


def _ranking(
    request: Request,
    labels: Sequence[str],
    scores: Mapping[str, float],
    cost: Cost,
    diagnostics: Mapping[str, Any],
) -> Ranking:
    label_of = dict(zip(request.ids, labels, strict=True))
    seen = {item: scores[label] for item, label in label_of.items() if label in scores}
    if not seen:
        raise RankingError(f"begins to answer with {diagnostics['answer']!r} and lists no label")
    known = Ranking.from_scores(
        request.select(seen), seen, cost=cost, diagnostics={**diagnostics, **certainty([*seen.values()])}
    )
    # All that is known of the others is that they come after these.
    rest = sorted(set(request.ids) - set(seen), key=lambda item: seeded_hash(0, item))
    if not rest:
        return known
    missing = [label for label in labels if label not in scores]
    fault = f"partial: labels that are not among the tokens listed: {' '.join(missing)}"
    found = {**diagnostics, "missing_labels": missing, "fault": fault}
    return Ranking((*known.order, *rest), None, cost, "partial", found)
