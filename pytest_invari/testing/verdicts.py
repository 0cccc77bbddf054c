"""What an assertion says when it does not simply pass."""

from __future__ import annotations

__all__ = ["CriterionNotMetError", "InvariUndecidedWarning"]


class CriterionNotMetError(AssertionError):
    """A criterion that is not met, or nothing was measured for it; one line that begins with the figure."""

    # pytest shows the module of an exception unless it is builtins.
    __module__ = "builtins"


class InvariUndecidedWarning(UserWarning):
    """A criterion that the measured queries do not decide; the assertion passes unless it is strict."""
