"""Forward passes: shared prefixes are computed once, suffixes go in batches limited by tokens."""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pytest_invari.progress import tick
from pytest_invari.rerankers.language_model.prompt import Prompt

PREFIX_CACHE_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class LabelReading:
    """Labels emitted by one prompt: their indices in order, and the first step's log-probabilities."""

    order: tuple[int, ...]
    first: tuple[float, ...]


class Engine:
    """A loaded causal model.

    Prompts that begin alike are handled together: their prefix is computed once and its keys and
    values are kept (the least recently used are dropped beyond a gigabyte), and the suffixes follow in
    batches of at most *batch_tokens* tokens, padding included. Positions and masks are explicit, so that
    a prompt's numbers differ between batches only by rounding.
    """

    def __init__(self, model: Any, *, batch_tokens: int) -> None:
        self.model = model
        self.batch_tokens = batch_tokens
        self._prefixes: OrderedDict[tuple[int, ...], list[tuple[Any, Any]]] = OrderedDict()
        self._held = 0

    @property
    def longest_prompt(self) -> int:
        """How many tokens the model's positions reach."""
        return int(self.model.config.get_text_config().max_position_embeddings)

    def text_log_probabilities(self, prompts: Sequence[Prompt]) -> tuple[list[list[float]], list[int]]:
        """Log-probability of every suffix token but the first, given all before it.

        Returns:
            For each prompt a list of ``len(suffix) - 1`` values, and the number of its tokens that were
            not computed.
        """
        values: list[list[float]] = [[] for _ in prompts]

        def read(batch: list[int]) -> None:
            rows = [prompts[index] for index in batch]
            logits, _, _ = self._forward(rows, keep=None)
            targets = self._padded([(*row.suffix[1:], 0) for row in rows])
            for index, row, wanted in zip(batch, logits, targets, strict=True):
                # float32, because a bfloat16 sum over the vocabulary would lose the differences that
                # rank; row by row, because a batch of it would take several times the model's memory.
                numbers = row[: len(prompts[index].suffix) - 1].float()
                wanted = wanted[: len(numbers)].unsqueeze(-1)
                values[index] = (numbers.gather(-1, wanted).squeeze(-1) - numbers.logsumexp(-1)).tolist()

        return values, self._run(prompts, read)

    def label_log_probabilities(
        self, prompts: Sequence[Prompt], labels: Sequence[Sequence[int]]
    ) -> tuple[list[list[float]], list[int]]:
        """Log-probability, at the end of each prompt, of each of its label tokens.

        Returns:
            For each prompt one value a label, and the number of its tokens that were not computed.
        """
        values: list[list[float]] = [[] for _ in prompts]

        def read(batch: list[int]) -> None:
            rows = [prompts[index] for index in batch]
            last = self._forward(rows, keep=[len(row.suffix) - 1 for row in rows])[0].float()
            last = last - last.logsumexp(-1, keepdim=True)
            for index, row in zip(batch, last, strict=True):
                values[index] = row[list(labels[index])].tolist()

        return values, self._run(prompts, read)

    def label_orders(
        self, prompts: Sequence[Prompt], labels: Sequence[Sequence[int]]
    ) -> tuple[list[LabelReading], list[int]]:
        """Emit all labels greedily, each step restricted to those not yet used (P2).

        A step reads one token behind the keys and values of all before it. Of equal labels the first given
        is emitted.

        Returns:
            For each prompt the emitted labels (as indices) with the log-probabilities that the first
            step gives to all labels (normalised over the labels), and the number of tokens not computed.
        """
        import torch

        values: list[LabelReading] = [LabelReading((), ()) for _ in prompts]

        def read(batch: list[int]) -> None:
            rows = [prompts[index] for index in batch]
            logits, cache, mask = self._forward(rows, keep=[len(row.suffix) - 1 for row in rows])
            tokens = torch.tensor([list(labels[index]) for index in batch], device=logits.device)
            positions = torch.tensor([len(row) for row in rows], device=logits.device)
            unused = torch.ones(tokens.shape, dtype=torch.bool, device=logits.device)
            first, steps = None, []
            for step in range(tokens.shape[1]):
                scores = logits.float().gather(-1, tokens)
                first = scores.log_softmax(-1) if first is None else first
                best = scores.masked_fill(~unused, -torch.inf).argmax(-1, keepdim=True)
                unused.scatter_(1, best, False)
                steps.append(best)
                if step + 1 < tokens.shape[1]:
                    mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)
                    output = self.model(
                        input_ids=tokens.gather(1, best),
                        attention_mask=mask,
                        position_ids=(positions + step).unsqueeze(1),
                        use_cache=True,
                        **_past(cache),
                    )
                    logits, cache = output.logits[:, -1], _cache_of(output)
            assert first is not None
            for index, order, start in zip(batch, torch.cat(steps, 1).tolist(), first.tolist(), strict=True):
                values[index] = LabelReading(tuple(order), tuple(start))

        # All rows of a batch must have as many labels as each other. A sliding window counts the padding
        # between a row and its next tokens as if it were text, so there the rows must be of one length.
        alike: dict[tuple[int, int], list[int]] = {}
        for index, (prompt, each) in enumerate(zip(prompts, labels, strict=True)):
            length = len(prompt.suffix) if self._has_sliding_window else 0
            alike.setdefault((len(each), length), []).append(index)
        cached = [0] * len(prompts)
        for chosen in alike.values():
            counted = self._run(prompts, read, chosen)
            cached = [old + new for old, new in zip(cached, counted, strict=True)]
        return values, cached

    @functools.cached_property
    def _has_sliding_window(self) -> bool:
        from transformers import DynamicCache

        return any(
            getattr(layer, "is_sliding", False) for layer in DynamicCache(config=self.model.config).layers
        )

    def _run(self, prompts: Sequence[Prompt], read: Any, chosen: Sequence[int] | None = None) -> list[int]:
        import torch

        cached = [0] * len(prompts)
        groups: dict[tuple[int, ...], list[int]] = {}
        for index in range(len(prompts)) if chosen is None else chosen:
            groups.setdefault(prompts[index].prefix, []).append(index)
        with torch.inference_mode(), _deterministic(self.model.device):
            for prefix, members in groups.items():
                known = prefix in self._prefixes
                for index in members if known else members[1:]:
                    cached[index] = len(prefix)
                for batch in self._batches(prompts, members):
                    read(batch)
                    tick(len(batch))
        return cached

    def _batches(self, prompts: Sequence[Prompt], members: Sequence[int]) -> Iterator[list[int]]:
        batch: list[int] = []
        # Longest first: rows of one length go together, and the largest batch comes when memory is freest.
        for index in sorted(members, key=lambda member: -len(prompts[member].suffix)):
            longest = len(prompts[batch[0]].suffix) if batch else 0
            if batch and (len(batch) + 1) * longest > self.batch_tokens:
                yield batch
                batch = []
            batch.append(index)
        if batch:
            yield batch

    def _forward(self, rows: Sequence[Prompt], keep: Sequence[int] | None) -> tuple[Any, Any, Any]:
        """Run suffixes behind their common prefix.

        Returns:
            Logits of all suffix positions (rows, longest suffix, vocabulary), or of position *keep* of
            each row (rows, vocabulary); the cache; the attention mask.
        """
        import torch

        device = self.model.device
        past = len(rows[0].prefix)
        tokens = self._padded([row.suffix for row in rows])
        lengths = torch.tensor([len(row.suffix) for row in rows], device=device)
        steps = torch.arange(tokens.shape[1], device=device)
        mask = (steps < lengths.unsqueeze(1)).long()
        mask = torch.cat([mask.new_ones(len(rows), past), mask], dim=1)
        positions = sorted(set(keep)) if keep is not None else None
        output = self.model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=(steps + past).expand(len(rows), -1),
            use_cache=True,
            **_past(self._prefix_cache(rows[0].prefix, len(rows))),
            **({} if positions is None else {"logits_to_keep": torch.tensor(positions, device=device)}),
        )
        logits = output.logits
        if positions is not None and keep is not None:
            place = torch.tensor([positions.index(position) for position in keep], device=device)
            logits = logits[torch.arange(len(rows), device=device), place]
        return logits, _cache_of(output), mask

    def _padded(self, rows: Sequence[tuple[int, ...]]) -> Any:
        import torch

        longest = max(map(len, rows))
        padded = [list(row) + [0] * (longest - len(row)) for row in rows]
        return torch.tensor(padded, device=self.model.device)

    def _prefix_cache(self, prefix: tuple[int, ...], rows: int) -> Any:
        """A fresh cache that holds *prefix* for so many rows."""
        from transformers import DynamicCache

        cache = DynamicCache(config=self.model.config)
        if prefix:
            for layer, (keys, values) in enumerate(self._states(prefix)):
                cache.update(keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1), layer)
        return cache

    def _states(self, prefix: tuple[int, ...]) -> list[tuple[Any, Any]]:
        import torch

        if prefix in self._prefixes:
            self._prefixes.move_to_end(prefix)
            return self._prefixes[prefix]
        tokens = self._padded([prefix])
        output = self.model(
            input_ids=tokens,
            attention_mask=torch.ones_like(tokens),
            position_ids=torch.arange(len(prefix), device=tokens.device).unsqueeze(0),
            use_cache=True,
            logits_to_keep=1,
        )
        states = [(layer.keys, layer.values) for layer in _cache_of(output).layers]
        self._prefixes[prefix] = states
        self._held += _size(states)
        while self._held > PREFIX_CACHE_BYTES and len(self._prefixes) > 1:
            _, dropped = self._prefixes.popitem(last=False)
            self._held -= _size(dropped)
        return states


def _size(states: Sequence[tuple[Any, Any]]) -> int:
    return sum(part.numel() * part.element_size() for layer in states for part in layer)


def _past(cache: Any) -> dict[str, Any]:
    return {_cache_argument(): cache}


@functools.cache
def _cache_argument() -> str:
    """The name under which this version of transformers takes the cache."""
    from transformers import LlamaForCausalLM

    parameters = inspect.signature(LlamaForCausalLM.forward).parameters
    return "cache" if "cache" in parameters else "past_key_values"


def _cache_of(output: Any) -> Any:
    return output.cache if "cache" in output else output.past_key_values


@contextmanager
def _deterministic(device: Any) -> Iterator[None]:
    """On CUDA, exact kernels for the block: no TF32; the user's own settings come back afterwards."""
    import torch

    if device.type != "cuda":
        yield
        return
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
