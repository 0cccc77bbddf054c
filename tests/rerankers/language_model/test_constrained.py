"""The scorer ``constrained``: K greedy steps over unused labels, their cost, and how sure the first is."""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.observation.observe import observe
from pytest_invari.observation.plan import Plan
from pytest_invari.observation.uncertainty import canonical_uncertainty
from pytest_invari.protocol import Candidate, Context, HistoryEntry, Request, seeded_hash
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.rerankers.language_model.listwise import ListwiseLanguageModel
from pytest_invari.rerankers.zero_shot import make
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import TaskSet

A_TO_T = string.ascii_uppercase[:20]
PROMPT = """
history = "liked:"
history_line = "\\n{text}"
candidates = "\\nlist:"
candidate_line = "\\n{label}. {text}"
answer_start = "\\nbest:"
"""


class Watched:
    """How many tokens of how many rows each forward pass of a model reads."""

    def __init__(self, model: Any) -> None:
        self.passes: list[tuple[int, int]] = []
        self._hook = model.register_forward_pre_hook(self._note, with_kwargs=True)

    def _note(self, module: Any, arguments: Any, keywords: dict[str, Any]) -> None:
        self.passes.append(tuple(keywords["input_ids"].shape))

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *error: object) -> None:
        self._hook.remove()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with random weights whose tokenizer has the labels A to T, and a prompt for it."""
    import torch
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from transformers.utils import logging

    words = ["[UNK]", "\n", ".", ":", " ", "liked", "list", "best", "film", *(f"f{n}" for n in range(80))]
    vocabulary = {word: n for n, word in enumerate([*words, *A_TO_T, *(f" {label}" for label in A_TO_T)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n| [A-Z]\b|\w+|\.|:| "), "isolated", invert=False)
    path = tmp_path_factory.mktemp("models") / "tiny"
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(path)
    torch.manual_seed(3)
    size: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(vocabulary), **size, **heads))
    logging.disable_progress_bar()
    model.save_pretrained(path)
    logging.enable_progress_bar()
    (path.parent / "prompt.toml").write_text(PROMPT)
    return path


def tiny(folder: Path, k: int = 20, batch_tokens: int = 0, **options: Any) -> ListwiseLanguageModel:
    settings = ModelSettings(model=str(folder), device="cpu", batch_tokens=batch_tokens)
    build = Build(settings, TaskSet.of("none", ()), k, Registry(), {})
    return make(build, scorer="constrained", prompt=str(folder.parent / "prompt.toml"), **options)


def films(k: int = 20, history: Sequence[str] = ("film f1", "film f2"), query: str = "q") -> Request:
    candidates = tuple(Candidate(f"i{n}", f"film f{n}") for n in range(k))
    return Request(query, Context(history=tuple(map(HistoryEntry, history))), candidates)


def test_a_step_reads_one_token_behind_what_is_cached(folder: Path) -> None:
    model = tiny(folder)
    asked = films()
    prompt = model.writer.write(
        asked.labelled("item"), [label for label, _ in model.bound_labels(asked.labelled("item"))]
    )
    with Watched(model.engine.model) as watched:
        answer = model.rank(asked)
    # The shared beginning, the list, and then each emitted label but the last.
    assert watched.passes == [(1, len(prompt.prefix)), (1, len(prompt.suffix)), *[(1, 1)] * 19]
    assert sorted(answer.order) == sorted(asked.ids)
    assert (answer.cost.calls, answer.cost.depth) == (1, 1)
    assert (answer.cost.tokens_in, answer.cost.tokens_out) == (len(prompt), 20)
    assert (answer.status, answer.scores) == ("ok", None)


def test_prompts_may_go_one_at_a_time(folder: Path) -> None:
    listed = [films(query=f"q{n}").select([f"i{(n * place) % 20}" for place in range(20)]) for n in (1, 3, 7)]
    together, alone = tiny(folder), tiny(folder, batch_tokens=1)
    with Watched(together.engine.model) as many:
        expected = together.rank_many(listed)
    with Watched(alone.engine.model) as single:
        answers = alone.rank_many(listed)
    assert [each.order for each in answers] == [each.order for each in expected]
    assert {rows for rows, _ in single.passes} == {1}
    assert {rows for rows, _ in many.passes} == {1, 3}
    assert alone.fingerprint()["batch_tokens"] == 1


def test_labels_that_tie_go_by_a_hash_of_the_items_and_not_by_the_list(folder: Path) -> None:
    import torch

    model = tiny(folder, labels="position")
    with torch.no_grad():
        model.engine.model.lm_head.weight.zero_()
    asked = films()
    expected = sorted(asked.ids, key=lambda item: seeded_hash(0, item))
    for shown in (asked.ids, asked.ids[::-1], sorted(asked.ids)):
        answer = model.rank(asked.select(shown))
        assert list(answer.order) == expected
        assert answer.diagnostics["top_two_margin"] == 0.0


def test_history_and_candidates_are_cut_each_by_itself(folder: Path) -> None:
    words = [f"f{n}" for n in range(80)]
    # Spaces are tokens of this tokenizer too.
    long, cut = " ".join(words), " ".join(words[:32]) + " "
    model = tiny(folder, k=2)

    def read(text: str) -> Any:
        asked = Request(
            "q", Context(history=(HistoryEntry(text),)), (Candidate("a", text), Candidate("b", "f1"))
        )
        return model.writer.write(asked, ["A", "B"])

    assert len(model.tokens.plain(cut.rstrip())) == 63
    assert len(model.tokens.plain(long)) == 159
    start, end = read(long).spans["a"]
    assert end - start == 64
    assert len(read(long)) == len(read("f1")) + 2 * 63
    assert read(long).prefix[: -len(model.tokens.plain("\nlist:"))][-64:] == model.tokens.plain(long)[:64]


@pytest.mark.model
def test_twenty_labels_of_the_embedded_model_end_to_end() -> None:
    tasks = Registry().load_tasks("movielens_small", 20, 1)
    plan = Plan("movielens_small", 20, 1, bank=("canonical", "13"))
    build = Build(ModelSettings(device="cpu"), tasks, 20, Registry(), {})
    model = make(build, scorer="constrained")
    assert [label for label, _ in model.label_tokens] == list(A_TO_T)
    seen = observe(model, tasks, plan.sample(tasks), show=False)
    bound = {
        (each.query_id, each.view): dict(
            zip(request.ids, model.bound_labels(request.labelled("item")), strict=True)
        )
        for each in seen
        for request in [_request(tasks, each.query_id, each.shown)]
    }
    for task, canonical, other in zip(tasks.tasks, seen[::2], seen[1::2], strict=True):
        assert (canonical.view, other.view) == ("canonical", "13")
        assert canonical.shown == task.ids != other.shown
        assert bound[canonical.key] == bound[other.key]
        assert {label for label, _ in bound[other.key].values()} == set(A_TO_T)
        for each in (canonical, other):
            assert each.ranking.status == "ok"
            assert sorted(each.ranking.order) == sorted(task.ids)
            assert each.ranking.cost.tokens_out == 20
            assert each.ranking.diagnostics["labels"] == "item"
    found = canonical_uncertainty([task.query_id for task in tasks.tasks], seen)
    assert found.entropy.reasons == found.margin.reasons == (None,)
    for value, margin, each in zip(found.entropy.values, found.margin.values, seen[::2], strict=True):
        assert (value, margin) == (
            each.ranking.diagnostics["entropy"],
            each.ranking.diagnostics["top_two_margin"],
        )
        # Between sure of one label and none better than another.
        assert 0 < value < 2.9957323
        assert 0 < margin < 1
    told = model.fingerprint()
    assert (told["device"], told["dtype"], told["scorer"]) == ("cpu", "float32", "constrained")


def _request(tasks: TaskSet, query_id: str, shown: Sequence[str]) -> Request:
    (task,) = [task for task in tasks.tasks if task.query_id == query_id]
    return Request(query_id, task.context, task.candidates).select(shown)
