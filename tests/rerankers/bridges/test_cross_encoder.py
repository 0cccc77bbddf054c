"""The real sentence-transformers on a real, small model."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.protocol import Candidate, Context, Request, Reranker, rank_all
from pytest_invari.protocol.capabilities import check_reranker, fingerprint_of, prepare_reranker
from pytest_invari.registry.build import Build
from pytest_invari.registry.registry import Registry
from pytest_invari.rerankers.bridges.cross_encoder import from_model
from pytest_invari.settings import ModelSettings
from pytest_invari.tasks.task import Task, TaskSet
from tests.rerankers.bridges.conftest import save_cross_encoder

TEXTS = ("star wars", "alien", "heat", "solaris", "the big sleep")


def request(texts: tuple[str, ...] = TEXTS) -> Request:
    return Request("q", Context("space opera"), tuple(Candidate(text[:5], text) for text in texts))


def built(spec: str, folder: Path) -> Reranker:
    tasks = TaskSet.of("t", [Task("q", Context("space opera"), request().candidates)])
    registry = Registry(folder)
    return registry.build(spec, Build(ModelSettings(device="cpu"), tasks, len(TEXTS), registry))


def test_scores_are_those_of_the_library_before_the_activation(cross_encoder_folder: Path) -> None:
    import torch
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(cross_encoder_folder), device="cpu", local_files_only=True)
    expected = model.predict([("space opera", text) for text in TEXTS], activation_fn=torch.nn.Identity())
    reranker = built(f"cross-encoder:{cross_encoder_folder}", cross_encoder_folder)
    prepare_reranker(reranker)
    (ranking,) = rank_all(reranker, [request()])
    assert ranking.scores is not None
    found = dict(zip(ranking.order, ranking.scores, strict=True))
    assert [found[text[:5]] for text in TEXTS] == pytest.approx([float(each) for each in expected], abs=1e-6)
    assert (ranking.cost.calls, ranking.cost.depth) == (1, 1)
    # [CLS] space opera [SEP] star wars [SEP], and so on.
    assert ranking.cost.tokens_in == sum(4 + len(text.split()) + 1 for text in TEXTS)
    assert rank_all(from_model(model), [request()])[0].order == ranking.order


def test_a_cross_encoder_does_not_see_the_order(cross_encoder_folder: Path) -> None:
    reranker = built(f"cross-encoder:{cross_encoder_folder}", cross_encoder_folder)
    one, other = rank_all(reranker, [request(), request(TEXTS[::-1])])
    assert one.order == other.order


def test_texts_that_are_cut_are_counted(cross_encoder_folder: Path) -> None:
    reranker = built(f"cross-encoder:{cross_encoder_folder}", cross_encoder_folder)
    long = " ".join(["long"] * 40)
    (ranking,) = rank_all(reranker, [request((*TEXTS[:2], long))])
    assert ranking.diagnostics["truncated"] == 1
    (short,) = rank_all(reranker, [request(TEXTS[:2])])
    assert "truncated" not in short.diagnostics


def test_methods_wrap_it(cross_encoder_folder: Path) -> None:
    reranker = built(f"sgs:base=cross-encoder:{cross_encoder_folder}", cross_encoder_folder)
    (ranking,) = rank_all(reranker, [request()])
    assert ranking.status == "ok"
    assert ranking.cost.calls == len(TEXTS) - 1


def test_the_fingerprint_follows_the_weights(cross_encoder_folder: Path, tmp_path: Path) -> None:
    first = fingerprint_of(built(f"cross-encoder:{cross_encoder_folder}", tmp_path), "x")
    copy = save_cross_encoder(tmp_path / "copy")
    assert fingerprint_of(built(f"cross-encoder:{copy}", tmp_path), "x")["revision"] == first["revision"]
    (copy / "config.json").write_text((copy / "config.json").read_text() + "\n")
    assert fingerprint_of(built(f"cross-encoder:{copy}", tmp_path), "x")["revision"] != first["revision"]


def test_faults_are_one_line(cross_encoder_folder: Path, tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    with pytest.raises(InvariError, match="no such file or folder"):
        built(f"cross-encoder:{tmp_path}/nothing", tmp_path)
    with pytest.raises(InvariError, match="needs a value for option 'model'"):
        built("cross-encoder", tmp_path)
    with pytest.raises(InvariError, match="at least 0 and 1"):
        built(f"cross-encoder:{cross_encoder_folder}:batch_size=0", tmp_path)
    two = built(f"cross-encoder:{save_cross_encoder(tmp_path / 'two', labels=2)}", tmp_path)
    check_reranker(two)
    with pytest.raises(InvariError, match="gives 2 scores for each candidate, not one"):
        prepare_reranker(two)
    loaded = from_model(CrossEncoder(str(tmp_path / "two"), device="cpu"))
    with pytest.raises(InvariError, match="gives 2 scores for each candidate, not one"):
        prepare_reranker(loaded)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvariError, match=r"is no cross-encoder|is no folder with a model|has no"):
        prepare_reranker(built(f"cross-encoder:{tmp_path}/empty", tmp_path))
