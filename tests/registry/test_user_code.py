"""The guard around user code, and the optional members of a reranker that go through it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_invari.errors import InvariError, counted
from pytest_invari.protocol.capabilities import (
    batch_size_of,
    calls_of,
    check_reranker,
    fingerprint_of,
    prepare_reranker,
)
from pytest_invari.protocol.usercode import describe_error, one_line, shortened, user_code


class Unspeakable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def message(call: Callable[[], object], *arguments: str) -> str:
    with pytest.raises(InvariError) as caught, user_code(*arguments):
        call()
    return str(caught.value)


@given(st.text())
@settings(max_examples=50, deadline=None)
def test_every_message_is_one_line(text: str) -> None:
    assert len(one_line(ValueError(text)).splitlines()) == 1
    assert len(describe_error(ValueError(text)).splitlines()) == 1


def test_what_cannot_be_shown_is_said() -> None:
    assert describe_error(Unspeakable()) == "Unspeakable: a message that cannot be shown"
    assert shortened(Unspeakable()) == "a Unspeakable that cannot be shown"
    assert shortened([1] * 100) == str([1] * 100)[:57] + "..."


def test_the_place_is_the_innermost_line_of_the_users_own_code(tmp_path: Path) -> None:
    (tmp_path / "mine_inner.py").write_text("import json\n\ndef parse():\n    return json.loads('[')\n")
    sys.path.insert(0, str(tmp_path))
    try:
        import mine_inner  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(tmp_path))
    assert message(mine_inner.parse, "parsing").endswith(f" ({tmp_path}/mine_inner.py, line 4)")


def test_installed_code_is_named_where_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_invari.protocol.usercode._INSTALLED", (str(Path(__file__).parent),))
    assert f"({__file__}, line " in message(lambda: [][1], "looking")


def test_a_clear_line_stays_as_it_is_but_for_the_name_in_front() -> None:
    def refuse() -> None:
        raise InvariError("the index is locked")

    assert message(refuse, "making it") == "the index is locked"
    assert message(refuse, "making it", "reranker 'x'") == "reranker 'x': the index is locked"
    assert message(lambda: sys.exit(3), "making it", "reranker 'x'").startswith(
        "reranker 'x': making it raised SystemExit: 3 ("
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit(), pytest.fail.Exception("timeout")])
def test_what_is_no_fault_goes_on(error: BaseException) -> None:
    with pytest.raises(type(error)), user_code("ranking"):
        raise error


def test_a_reranker_without_members_has_defaults() -> None:
    plain: Any = SimpleNamespace()
    check_reranker(plain)
    prepare_reranker(plain)
    assert (calls_of(plain, 5), calls_of(plain, 5, default=0), batch_size_of(plain, 64)) == (1, 0, 64)
    assert fingerprint_of(plain, "x")["label"] == "x"


def test_members_are_used_as_they_are() -> None:
    whole: Any = SimpleNamespace(
        expected_calls=lambda k: k - 1, batch_requests=0, fingerprint=lambda: {"model": 1}
    )
    assert (calls_of(whole, 5), batch_size_of(whole, 64), fingerprint_of(whole)) == (4, 1, {"model": 1})


@pytest.mark.parametrize(
    ("members", "use", "expected"),
    [
        (
            {"batch_requests": True},
            lambda r: batch_size_of(r, 1),
            "batch_requests must be a whole number, not True",
        ),
        (
            {"expected_calls": lambda k: 2.5},
            lambda r: calls_of(r, 5),
            "expected_calls(5) must be a whole number, not 2.5",
        ),
        (
            {"fingerprint": lambda: [1]},
            fingerprint_of,
            "fingerprint() returned [1]; it must return a mapping",
        ),
        ({"check": 3}, check_reranker, "check() raised TypeError: 'int' object is not callable"),
    ],
)
def test_a_wrong_value_names_the_member(
    members: dict[str, object], use: Callable[[Any], object], expected: str
) -> None:
    with pytest.raises(InvariError) as caught:
        use(SimpleNamespace(**members))
    assert str(caught.value).startswith(f"SimpleNamespace.{expected}")


@pytest.mark.parametrize(
    ("number", "noun", "expected"),
    [
        (1, "query", "1 query"),
        (2, "query", "2 queries"),
        (0, "id", "0 ids"),
        (1200, "ranking", "1,200 rankings"),
    ],
)
def test_nouns_agree_with_their_numbers(number: int, noun: str, expected: str) -> None:
    assert counted(number, noun) == expected
