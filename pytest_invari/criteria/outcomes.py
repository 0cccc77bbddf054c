"""What an assertion says when it does not simply pass, and how a mistake in its use is shown."""

from __future__ import annotations

from pytest_invari.errors import InvariError
from pytest_invari.text import harmless


class CriterionNotMetError(AssertionError):
    """A criterion that is not met, or nothing was measured for it; one line that begins with the figure."""

    # pytest shows the module of an exception unless it is builtins.
    __module__ = "builtins"


class InvariUndecidedWarning(UserWarning):
    """A criterion that the measured queries do not decide; the assertion passes unless it is strict."""


class InvariUnusedWarning(UserWarning):
    """A study was made, and neither a figure of it asked for nor anything asserted of it."""


class WithoutInternals:
    """Lets a mistake be told where the test made it, and not where it was found."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        __tracebackhide__ = True
        if isinstance(error, InvariError):
            raise type(error)(harmless(str(error))) from None
