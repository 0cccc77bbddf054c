"""Cross-encoders of sentence-transformers: each candidate is scored by itself, with the query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_invari.errors import InvariError
from pytest_invari.protocol import Cost, RankingError
from pytest_invari.protocol.ranking import TRUNCATED
from pytest_invari.rerankers.bridges.bridge import Answer, Asked, Bridge
from pytest_invari.rerankers.language_model.conversion import quiet_transformers
from pytest_invari.rerankers.language_model.source import find_model
from pytest_invari.rerankers.language_model.threads import share_cores

if TYPE_CHECKING:
    from pytest_invari.registry.build import Build
    from pytest_invari.rerankers.language_model.source import ModelSource
    from pytest_invari.settings import ModelSettings


class CrossEncoderBridge(Bridge):
    """Ranks by the raw scores of a ``sentence_transformers.CrossEncoder``, before any activation."""

    package = "sentence-transformers"
    module = "sentence_transformers"
    early_fingerprint = True

    def __init__(
        self,
        source: ModelSource | None,
        settings: ModelSettings | None,
        max_length: int = 0,
        batch_size: int = 32,
        ready: Any = None,
        shared: dict[object, Any] | None = None,
    ) -> None:
        named = source.name if source else str(getattr(ready.config, "_name_or_path", ""))
        options = {"model": named, "max_length": max_length, "batch_size": batch_size}
        super().__init__(options, ready, shared)
        self._source, self._model = source, settings
        self._max_length, self._batch_size = max_length, batch_size

    @property
    def batch_requests(self) -> int:
        """Enough lists to fill a batch of pairs."""
        return max(1, self._batch_size)

    def load(self) -> Any:
        """The model."""
        share_cores()
        from sentence_transformers import CrossEncoder

        assert self._source is not None
        assert self._model is not None
        try:
            with quiet_transformers():
                return CrossEncoder(
                    str(self._source.path),
                    device=None if self._model.device == "auto" else self._model.device,
                    max_length=self._max_length or None,
                    trust_remote_code=self._model.trust_remote_code,
                    local_files_only=True,
                )
        except (OSError, ValueError, KeyError) as error:
            told = " ".join(str(error).split())[:200]
            raise InvariError(f"model {self._source.name!r}: is no cross-encoder ({told})") from None

    def prepare(self) -> None:
        """Load the model, which gives one score.

        Raises:
            InvariError: it cannot be loaded, or gives several.
        """
        super().prepare()
        scores = self.library.config.num_labels
        if scores != 1:
            raise InvariError(
                f"model {self.settings['model']!r}: gives {scores} scores for each candidate, not one"
            )

    def fingerprint(self) -> dict[str, object]:
        """The model's content besides the settings; of a ready model its name."""
        revision = {"revision": self._source.revision} if self._source else {}
        return {**super().fingerprint(), **revision}

    def answer(self, query: str, texts: list[str]) -> Answer:
        """One list."""
        return self.answer_many([(query, texts)])[0]

    def answer_many(self, asked: Sequence[Asked]) -> list[Answer]:
        """All pairs of all lists in common batches."""
        import torch

        pairs = [(query, text) for query, texts in asked for text in texts]
        scores = self.library.predict(
            pairs, batch_size=self._batch_size, activation_fn=torch.nn.Identity(), show_progress_bar=False
        )
        if len(scores) != len(pairs):
            raise RankingError(f"{len(scores)} scores for {len(pairs)} candidates")
        lengths = self._lengths(pairs)
        answers, start = [], 0
        for _, texts in asked:
            part = range(start, start + len(texts))
            start += len(texts)
            answers.append(
                Answer(
                    {place: float(scores[index]) for place, index in enumerate(part)},
                    cost=Cost(calls=1, depth=1, tokens_in=sum(min(lengths[i], self._limit) for i in part)),
                    diagnostics=_truncated(sum(lengths[i] > self._limit for i in part)),
                )
            )
        return answers

    @property
    def _limit(self) -> int:
        # Renamed in version 6; the old name warns there.
        name = "max_seq_length" if hasattr(self.library, "max_seq_length") else "max_length"
        return int(self._max_length or getattr(self.library, name) or 1 << 30)

    def _lengths(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """The tokens of each pair, before any is cut."""
        encoded = self.library.tokenizer(
            [query for query, _ in pairs], [text for _, text in pairs], truncation=False, verbose=False
        )
        return [len(ids) for ids in encoded["input_ids"]]


def _truncated(count: int) -> dict[str, int]:
    return {TRUNCATED: count} if count else {}


def make(build: Build, model: str, max_length: int = 0, batch_size: int = 32) -> CrossEncoderBridge:
    """Score each candidate by a cross-encoder, as in cross-encoder:PATH; 1 call.

    Args:
        build: what the session offers; its device and its trust in remote code.
        model: a folder, or a model hub's id in the local cache.
        max_length: the most tokens of query and candidate together; by default the model's.
        batch_size: pairs in one batch.
    """
    if max_length < 0 or batch_size < 1:
        raise InvariError("options 'max_length' and 'batch_size' must be at least 0 and 1")
    return CrossEncoderBridge(find_model(model), build.settings, max_length, batch_size, shared=build.shared)


def from_model(model: Any, *, batch_size: int = 32) -> CrossEncoderBridge:
    """A reranker of a ``CrossEncoder`` that is loaded already, for a conftest."""
    return CrossEncoderBridge(None, None, batch_size=batch_size, ready=model)
