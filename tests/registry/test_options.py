"""Option values are checked against the signature that takes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional

import pytest

from pytest_invari.errors import InvariError
from pytest_invari.registry.parameters import bind_options

if TYPE_CHECKING:
    from nowhere import Absent  # type: ignore[import-not-found]


def factory(  # type: ignore[no-untyped-def]  # one parameter has no annotation on purpose
    build: Absent,
    size: int = 1,
    ratio: float = 0.5,
    strict: bool = False,
    name: str = "x",
    mode: Literal["fast", "slow", 3] = "fast",
    limit: int | None = None,
    file: Path | None = None,
    old: Optional[float] = None,  # noqa: UP045  # the older way to write it is still in use
    either: bool | str = "auto",
    untyped=None,  # noqa: ANN001
    scale=1.0,  # noqa: ANN001
    unknown: Absent = None,
) -> None:
    """Takes one option of every kind."""


@pytest.mark.parametrize(
    ("option", "given", "expected"),
    [
        ("size", "3", 3),
        ("size", 3, 3),
        ("size", "-3", -3),
        ("ratio", "1e-3", 0.001),
        ("ratio", 2, 2.0),
        ("strict", "true", True),
        ("strict", False, False),
        ("name", "10", "10"),
        ("name", "true", "true"),
        ("mode", "slow", "slow"),
        ("mode", "3", 3),
        ("mode", 3, 3),
        ("limit", "none", None),
        ("limit", "7", 7),
        ("file", "a/b", Path("a/b")),
        ("old", "1", 1.0),
        ("either", "true", True),
        ("either", "auto", "auto"),
        ("untyped", "1", 1),
        ("scale", "3", 3.0),
        ("scale", 3, 3.0),
        ("scale", "0.5", 0.5),
        ("scale", "true", True),
        ("scale", "auto", "auto"),
        ("untyped", "1.5", 1.5),
        ("untyped", "false", False),
        ("untyped", "text", "text"),
        ("unknown", "2", 2),
    ],
)
def test_values_become_what_the_annotation_says(option: str, given: Any, expected: Any) -> None:
    bound = bind_options(factory, "build", {option: given}, "reranker 'x'")
    assert bound == {option: expected}
    assert type(bound[option]) is type(expected)


@pytest.mark.parametrize(
    ("option", "given", "expected"),
    [
        ("size", "1.5", "a whole number, not '1.5'"),
        ("size", 1.0, "a whole number, not 1.0"),
        ("size", True, "a whole number, not True"),
        ("ratio", "much", "a number, not 'much'"),
        ("ratio", 10**400, f"a number, not 1{'0' * 56}..."),
        ("strict", "yes", "true or false, not 'yes'"),
        ("strict", 1, "true or false, not 1"),
        ("name", 10, "text, not 10"),
        ("mode", "medium", "one of fast, slow, 3, not 'medium'"),
        ("mode", True, "one of fast, slow, 3, not True"),
        ("limit", "all", "a whole number or none, not 'all'"),
        ("file", 3, "a path or none, not 3"),
    ],
)
def test_other_values_are_refused(option: str, given: Any, expected: str) -> None:
    with pytest.raises(InvariError) as error:
        bind_options(factory, "build", {option: given}, "reranker 'x'")
    assert str(error.value) == f"reranker 'x': option {option!r} must be {expected}"


def test_unknown_options_are_refused_with_the_nearest_and_all_names() -> None:
    with pytest.raises(InvariError) as error:
        bind_options(factory, "build", {"sise": 1}, "reranker 'x'")
    assert str(error.value) == (
        "reranker 'x': unknown option 'sise'. Did you mean 'size'? Known: either, file, limit, mode, name, "
        "old, ratio, scale, size, strict, unknown, untyped."
    )
    with pytest.raises(InvariError, match="unknown option 'build'"):
        bind_options(factory, "build", {"build": 1}, "reranker 'x'")


def test_missing_options_are_named() -> None:
    def needs(context: str, texts: list[str], alpha: float, *, beta: float) -> None: ...

    with pytest.raises(InvariError, match=r"^x: needs a value for option 'beta'$"):
        bind_options(needs, 2, {"alpha": "1"}, "x")


def test_functions_that_take_any_option_get_guessed_values() -> None:
    def anything(**options: object) -> None: ...

    assert bind_options(anything, "build", {"a": "1", "b": "x", "c": "true"}, "x") == {
        "a": 1,
        "b": "x",
        "c": True,
    }
