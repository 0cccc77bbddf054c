"""The embedded model, asked over HTTP and in this process: the same labels get the same log-probabilities."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_invari.observation.views import sample_views
from pytest_invari.protocol import Candidate, Context, HistoryEntry, Request, rank_all
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.rerankers.served.first_token import FirstToken
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import TaskSet

pytestmark = pytest.mark.model

FILMS = ("Heat (1995)", "Alien (1979)", "Amélie (2001)", "Toy Story (1995)", "Fargo (1996)")
# The engine encodes each piece by itself, a server the whole text: these pieces end where tokens do.
TEMPLATE = """
chat = true
query = "Query:\\n{text}\\n"
history = "The user liked these {noun}:"
history_line = "\\n{text}"
candidates = "\\nWhich of these will the user like best?"
candidate_line = "\\n{label}:\\n{text}"
answer = "\\nAnswer with the letter only."
answer_start = "Answer:"
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).parent / "model_server.py")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def test_a_served_model_ranks_as_it_does_in_this_process(url: str, tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.toml"
    prompt.write_text(TEMPLATE)
    registry = Registry(Path("/nonexistent"))
    settings = ModelSettings(device="cpu")
    build = Build(settings, TaskSet.of("films", ()), len(FILMS), registry, {})
    options = f"prompt={prompt}&noun=films&prefill=true&top_logprobs=1000"
    served: Any = registry.build(f"chat://{url}?model=embedded&{options}", build)
    local: Any = registry.build(f"zero_shot:scorer=label_logprob,prompt={prompt},noun=films", build)
    served.check()
    served.prepare()
    assert served.fingerprint()["audit"] == "tokenize"
    candidates = {str(number): Candidate(str(number), text) for number, text in enumerate(FILMS)}
    context = Context("crime", (HistoryEntry("Casablanca (1942)"), HistoryEntry("Up (2009)")))
    views = [
        Request("q", context, tuple(candidates[item] for item in view.order)).labelled("item")
        for view in sample_views("q", list(candidates), 3)
    ]
    for view, there, here in zip(views, rank_all(served, views), rank_all(local, views), strict=True):
        assert (there.status, there.order) == ("ok", here.order)
        assert there.cost.tokens_in == here.cost.tokens_in
        assert here.scores is not None
        labels = served._labels_of(view)
        listed = dict(FirstToken.read(served._complete(served._messages(view, labels)).content).alternatives)
        label_of = dict(zip(view.ids, labels, strict=True))
        # The engine reads the label after a space alone; a ranking over HTTP adds the one without.
        for item, score in zip(here.order, here.scores, strict=True):
            assert listed[f" {label_of[item]}"] == pytest.approx(score, abs=2e-4)
