"""Code that a user wrote: whatever it raises becomes one line that says what was called, and where."""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_invari.errors import InvariError, ServiceDownError

NOT_AWAITED = "async functions are not awaited; wrap it in a plain function that calls asyncio.run"

_OURS = f"{Path(__file__).parent.parent}{os.sep}"
_STANDARD = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
_INSTALLED = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))


@contextmanager
def user_code(what: str, who: str = "") -> Iterator[None]:
    """Run the user's code in the block; *what* says which it is.

    What is no fault of the code (:func:`is_fault`) goes on. An :class:`InvariError` is a clear line already;
    *who*, where given, opens it as every other message.

    Raises:
        InvariError: type and message of what the block raised, with file and line of the user's own code.
    """
    opening = f"{who}: " if who else ""
    try:
        yield
    except InvariError as error:
        if not who:
            raise
        raise InvariError(f"{opening}{error}") from error
    except BaseException as error:
        if not is_fault(error):
            raise
        raise InvariError(f"{opening}{what} raised {describe_error(error)}{_place(error)}") from error


def is_fault(error: BaseException) -> bool:
    """Whether an exception means that the code is broken.

    ``sys.exit()`` does, since a reranker must not end the run of the others, and so do ``pytest.skip()`` and
    ``pytest.xfail()``: what was not measured must not pass. ``KeyboardInterrupt`` and a timeout's
    ``pytest.fail()`` do not, nor does a service that is away.
    """
    if isinstance(error, ServiceDownError):
        return False
    if isinstance(error, Exception | SystemExit):
        return True
    # Not imported for this: rerankers import us in production, where there is no pytest.
    pytest = sys.modules.get("pytest")
    return pytest is not None and isinstance(error, (pytest.skip.Exception, pytest.xfail.Exception))


def is_verdict(error: BaseException) -> bool:
    """Whether an exception is how a test says that it fails: an ``AssertionError``, or ``pytest.fail()``."""
    pytest = sys.modules.get("pytest")
    is_failure = pytest is not None and isinstance(error, pytest.fail.Exception)
    return isinstance(error, AssertionError) or (is_failure and not is_fault(error))


def refuse_async(function: object, what: str) -> None:
    """Refuse a function whose answer would have to be awaited; *what* names it.

    Raises:
        InvariError: it is one.
    """
    for each in (function, inspect.getattr_static(type(function), "__call__", None)):
        if inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each):
            raise InvariError(f"{what} is async, and {NOT_AWAITED}")


def unawaited(value: object) -> str:
    """What is wrong with an answer that would have to be awaited; empty for any other.

    A coroutine is closed, so that Python does not warn of one that was never awaited.
    """
    if not inspect.isawaitable(value):
        return ""
    if inspect.iscoroutine(value):
        value.close()
    return f"returned a {type(value).__name__}: {NOT_AWAITED}"


def describe_error(error: BaseException) -> str:
    """An exception's type and message in one line: ``ValueError: no such index``."""
    return f"{type(error).__name__}: {one_line(error)}"


def one_line(error: BaseException) -> str:
    """An exception's message without its line breaks; its ``__str__`` may itself be broken."""
    try:
        return " ".join(str(error).split()) or "no message"
    except Exception:
        return "a message that cannot be shown"


def shortened(value: object, most: int = 60) -> str:
    """A value as Python writes it, at a length that leaves one line readable."""
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _place(error: BaseException) -> str:
    """The innermost call in the user's own code, or else in an installed package."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    others = [(file, line) for file, line in frames if not file.startswith((_OURS, "<"))]
    own = [(file, line) for file, line in others if not file.startswith((*_STANDARD, *_INSTALLED))]
    installed = [(file, line) for file, line in others if file.startswith(_INSTALLED)]
    return next((f" ({file}, line {line})" for file, line in (own or installed)[-1:]), "")
