"""--invari-model, -device, -dtype, -batch-tokens, -trust-remote-code, -calibrate: they reach the reranker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.session.conftest import Project

FACTORY = """
from pytest_invari.errors import InvariError

def make(build):
    raise InvariError(f"asked for {build.settings}")
"""


def told(project: Project, *arguments: str) -> str:
    """What a reranker's factory is told, by way of the error it raises."""
    project.write("mine_told.py", FACTORY)
    result = project.run(*arguments, reranker="mine_told:make")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    return result.stderr.str()


def test_without_options_the_engine_chooses(project: Project) -> None:
    text = told(project)
    assert "model='', device='auto', dtype='auto', batch_tokens=0" in text
    assert "trust_remote_code=False" in text
    assert "calibrate=False" in text


def test_options_reach_the_reranker(project: Project) -> None:
    text = told(
        project,
        "--invari-model=models/mine",
        "--invari-device=cuda:1",
        "--invari-dtype=bfloat16",
        "--invari-batch-tokens=512",
        "--invari-trust-remote-code",
        "--invari-calibrate",
    )
    assert "model='models/mine', device='cuda:1', dtype='bfloat16', batch_tokens=512" in text
    assert "trust_remote_code=True" in text
    assert "calibrate=True" in text


def test_ini_keys_reach_it_too(project: Project) -> None:
    keys = (
        "invari_model = models/mine\ninvari_device = cpu\ninvari_batch_tokens = 64\ninvari_calibrate = true\n"
    )
    project.write("pytest.ini", f"[pytest]\n{keys}")
    text = told(project)
    assert "model='models/mine', device='cpu', dtype='auto', batch_tokens=64" in text
    assert "calibrate=True" in text
