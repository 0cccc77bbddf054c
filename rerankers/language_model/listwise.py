"""The listwise reranker: a language model, a prompt and a scorer."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

from pytest_invari.errors import InvariError
from pytest_invari.observation.uncertainty import certainty
from pytest_invari.protocol import Cost, LabelBinding, Ranking, RankingError, Request, seeded_hash
from pytest_invari.rerankers.language_model.conversion import (
    model_folder,
    quiet_transformers,
    tokenizer_folder,
)
from pytest_invari.rerankers.language_model.engine import Engine
from pytest_invari.rerankers.language_model.labels import audit_labels, find_labels
from pytest_invari.rerankers.language_model.prompt import Prompt, PromptWriter
from pytest_invari.rerankers.language_model.prompts import Template
from pytest_invari.rerankers.language_model.source import ModelSource, find_model
from pytest_invari.rerankers.language_model.threads import share_cores
from pytest_invari.rerankers.language_model.tokens import Tokens
from pytest_invari.settings import ModelSettings

Scorer = Literal["item_likelihood", "label_logprob", "constrained"]

BATCH_TOKENS = {"cpu": 2048, "cuda": 16384}
# A space is part of the label's token for most tokenizers, in plain text as after a colon.
BEFORE_LABEL = " "


@dataclass
class ListwiseLanguageModel:
    """Ranks a list by one forward pass (``constrained``: one pass and K − 1 single-token steps).

    ``item_likelihood`` orders by the mean log-probability of each candidate's own text where it stands
    in the list; ``label_logprob`` by the log-probability of each candidate's label as the answer (P1,
    section 4); ``constrained`` emits all labels greedily (P2). One ranking counts as one call.
    """

    settings: ModelSettings
    scorer: Scorer
    template: Template
    k: int
    noun: str = "items"
    text_tokens: int = 64
    labels: LabelBinding = "item"
    alphabet: tuple[str, ...] = ()
    shared: dict[object, Any] = field(default_factory=dict, repr=False)
    early_fingerprint: ClassVar[bool] = True

    @cached_property
    def source(self) -> ModelSource:
        """The model on this machine. Raises InvariError where there is none."""
        return find_model(self.settings.model)

    @property
    def batch_requests(self) -> int:
        """How many requests to hand over at once.

        On the CPU batches gain little, and a killed run loses the one it is in, so they are small; a GPU
        wants many to fill its batches.
        """
        return 256 if self.device.startswith("cuda") else 18

    @property
    def label_binding(self) -> LabelBinding | None:
        """How labels are bound to candidates; None where the prompt shows none."""
        return self.labels if self.template.has_labels else None

    def check(self) -> None:
        """Refuse what can be refused before the weights are loaded.

        That is path, packages, device, tokenizer, chat template and labels.
        """
        _ = self.source
        if self.settings.device not in ("auto", "cpu"):
            _ = self.device
        tokens = self.tokens
        if self.template.chat and not tokens.has_chat_template:
            raise InvariError(
                f"model {self.source.name!r} has no chat template; use a prompt without 'chat = true'"
            )
        if self.template.has_labels:
            _ = self.label_tokens

    def prepare(self) -> None:
        """Load the model, once for all rerankers of a session that share it."""
        _ = self.engine

    def expected_calls(self, k: int) -> int:
        """One call a list."""
        return 1

    def fingerprint(self) -> Mapping[str, object]:
        """Model, device, numbers' format, scorer and prompt."""
        return {
            "reranker": "language_model",
            "model": self.source.name,
            "revision": self.source.revision,
            "device": self.device,
            "dtype": self.dtype,
            "scorer": self.scorer,
            "prompt": {name: getattr(self.template, name) for name in Template.__slots__},
            "noun": self.noun,
            "text_tokens": self.text_tokens,
            "labels": self.label_binding,
            "alphabet": list(self.alphabet),
            "batch_tokens": self.batch_tokens,
        }

    def rank(self, request: Request) -> Ranking:
        """Rank one request: a batch of one."""
        return self.rank_many([request])[0]

    def rank_many(self, requests: Sequence[Request]) -> list[Ranking]:
        """Rank the requests; a prompt that does not fit fails its own request, named by its query."""
        started = time.perf_counter()
        requests = [request.labelled(self.label_binding) for request in requests]
        bound = [self.bound_labels(request) for request in requests]
        prompts = [
            self.writer.write(request, [label for label, _ in labels])
            for request, labels in zip(requests, bound, strict=True)
        ]
        rankings: dict[int, Ranking] = {}
        for index, (request, prompt) in enumerate(zip(requests, prompts, strict=True)):
            if fault := self._misfit(request, prompt):
                rankings[index] = Ranking.failed(fault)
        fitting = [index for index in range(len(requests)) if index not in rankings]
        if fitting:
            answers = self._answers(
                [requests[i] for i in fitting],
                [prompts[i] for i in fitting],
                [[token for _, token in bound[i]] for i in fitting],
            )
            seconds = (time.perf_counter() - started) / len(fitting)
            for index, (scores, cached, tokens_out, diagnostics) in zip(fitting, answers, strict=True):
                cost = Cost(1, 1, len(prompts[index]), cached, tokens_out, seconds)
                rankings[index] = self._ranking(requests[index], scores, cost, diagnostics)
        return [rankings[index] for index in range(len(requests))]

    @cached_property
    def device(self) -> str:
        """The device's kind, ``cpu`` or ``cuda``; ``auto`` takes CUDA where there is one."""
        import torch

        wanted = self.settings.device
        if wanted == "auto":
            return "cuda" if torch.cuda.is_available() else "cpu"
        kind, colon, number = wanted.partition(":")
        if kind not in ("cpu", "cuda") or (colon and not (kind == "cuda" and number.isdecimal())):
            raise InvariError(f"device {wanted!r}: choose auto, cpu, cuda or cuda:N")
        if wanted.startswith("cuda") and not torch.cuda.is_available():
            raise InvariError(
                f"device {wanted!r}: torch {torch.__version__} finds no CUDA device here; "
                "use --invari-device=cpu, or install a CUDA build of torch"
            )
        if colon and int(number) >= torch.cuda.device_count():
            raise InvariError(
                f"device {wanted!r}: there are only {torch.cuda.device_count()} CUDA devices here"
            )
        return wanted

    @property
    def dtype(self) -> str:
        """The numbers' format: ``auto`` is bfloat16 on CUDA and float32 on the CPU."""
        if self.settings.dtype != "auto":
            return self.settings.dtype
        return "bfloat16" if self.device.startswith("cuda") else "float32"

    @property
    def batch_tokens(self) -> int:
        """The most tokens of one batch of suffixes."""
        return self.settings.batch_tokens or BATCH_TOKENS[self.device.split(":")[0]]

    @cached_property
    def tokens(self) -> Tokens:
        """The tokenizer, which loads without the model's weights."""
        return self._shared("tokenizer", lambda: Tokens(_load_tokenizer(self.source, self.settings)))  # type: ignore[no-any-return]

    @cached_property
    def writer(self) -> PromptWriter:
        """What turns requests into prompts."""
        return PromptWriter(self.tokens, self.template, noun=self.noun, text_tokens=self.text_tokens)

    @cached_property
    def label_tokens(self) -> tuple[tuple[str, int], ...]:
        """The audited labels with their tokens, one a candidate."""
        if not self.alphabet:
            return find_labels(self.tokens, self.k, BEFORE_LABEL)
        if len(self.alphabet) < self.k:
            raise InvariError(f"{len(self.alphabet)} labels given for lists of {self.k} candidates")
        return audit_labels(self.tokens, self.alphabet, BEFORE_LABEL)

    def bound_labels(self, request: Request) -> list[tuple[str, int]]:
        """The label of each candidate with its token, in serialized order; none where none are shown.

        Raises:
            RankingError: the list is longer than those that labels were found for.
        """
        if not self.template.has_labels:
            return []
        if max(request.label_indices, default=0) >= len(self.label_tokens):
            raise RankingError(
                f"query {request.query_id!r}: labels were found for lists of {self.k} candidates only"
            )
        return [self.label_tokens[label] for label in request.label_indices]

    @cached_property
    def engine(self) -> Engine:
        """The model, loaded once for all; the prefixes it keeps are this reranker's own.

        Shared prefixes would make the tokens that one subject saves depend on which ran before it.
        """
        model = self._shared(("model", self.device, self.dtype), self._load_model)
        return Engine(model, batch_tokens=self.batch_tokens)

    def _shared(self, kind: object, make: Any) -> Any:
        key = ("language_model", self.source.path, kind)
        if key not in self.shared:
            self.shared[key] = make()
        return self.shared[key]

    def _load_model(self) -> Any:
        share_cores()
        import torch
        from safetensors import SafetensorError
        from transformers import AutoModelForCausalLM

        folder = model_folder(self.source)
        try:
            with quiet_transformers():
                model, report = AutoModelForCausalLM.from_pretrained(
                    folder,
                    dtype=getattr(torch, self.dtype),
                    use_safetensors=True,
                    local_files_only=True,
                    trust_remote_code=self.settings.trust_remote_code,
                    output_loading_info=True,
                )
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            raise InvariError(f"model {self.source.name!r}: cannot be loaded ({_line(error)})") from error
        missing = sorted(report["missing_keys"])
        if missing:
            # transformers would fill them with random numbers.
            raise InvariError(
                f"model {self.source.name!r}: {len(missing)} of its weights are not in its files "
                f"({', '.join(missing[:2])}, …); it is incomplete, or no causal language model"
            )
        return model.to(self.device).eval()

    def _misfit(self, request: Request, prompt: Prompt) -> str:
        needed = len(prompt) + (len(request.candidates) if self.scorer == "constrained" else 0)
        if needed > self.engine.longest_prompt:
            return (
                f"query {request.query_id!r}: the prompt has {needed} tokens, more than the "
                f"{self.engine.longest_prompt} that the model takes; shorten its texts or the list"
            )
        return ""

    def _answers(
        self,
        requests: Sequence[Request],
        prompts: Sequence[Prompt],
        tokens: Sequence[Sequence[int]],
    ) -> list[tuple[Mapping[str, float] | list[str], int, int, dict[str, float]]]:
        if self.scorer == "item_likelihood":
            values, cached = self.engine.text_log_probabilities(prompts)
            return [
                (_mean_log_probabilities(prompt, row), count, 0, {})
                for prompt, row, count in zip(prompts, values, cached, strict=True)
            ]
        if self.scorer == "label_logprob":
            values, cached = self.engine.label_log_probabilities(prompts, tokens)
            return [
                (dict(zip(request.ids, row, strict=True)), count, 1, {})
                for request, row, count in zip(requests, values, cached, strict=True)
            ]
        places = [_tie_order(request.ids) for request in requests]
        offered = [[row[place] for place in along] for row, along in zip(tokens, places, strict=True)]
        readings, cached = self.engine.label_orders(prompts, offered)
        return [
            (
                [request.ids[along[index]] for index in reading.order],
                count,
                len(reading.order),
                certainty(reading.first),
            )
            for request, along, reading, count in zip(requests, places, readings, cached, strict=True)
        ]

    def _ranking(
        self,
        request: Request,
        scores: Mapping[str, float] | list[str],
        cost: Cost,
        diagnostics: dict[str, float],
    ) -> Ranking:
        try:
            if isinstance(scores, list):
                return Ranking.from_order(request, scores, cost=cost, diagnostics=diagnostics)
            return Ranking.from_scores(request, scores, cost=cost, diagnostics=diagnostics)
        except RankingError as error:
            return Ranking.failed(str(error), cost)


def _tie_order(ids: Sequence[str]) -> list[int]:
    """The places of a list's items in the order in which equally probable labels are emitted.

    It is that of a hash of the ids, as for equal scores: in half precision labels often tie, and the first in
    the list must not gain by it.
    """
    return sorted(range(len(ids)), key=lambda place: seeded_hash(0, ids[place]))


def _mean_log_probabilities(prompt: Prompt, values: Sequence[float]) -> dict[str, float]:
    # values[j] belongs to suffix token j + 1.
    scores = {}
    for item, (start, end) in prompt.spans.items():
        scores[item] = math.fsum(values[start - 1 : end - 1]) / (end - start) if end > start else math.nan
    return scores


def _load_tokenizer(source: ModelSource, settings: ModelSettings) -> Any:
    from transformers import AutoTokenizer

    folder = tokenizer_folder(source)
    try:
        with quiet_transformers():
            return AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=settings.trust_remote_code
            )
    except (OSError, ValueError) as error:
        raise InvariError(
            f"model {source.name!r}: its tokenizer cannot be loaded ({_line(error)})"
        ) from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
