"""Kinds of the users' own: a function that makes assertions about a study of what the suite measured."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_invari.criteria.criterion import Criterion
from pytest_invari.criteria.judgement import Judgement
from pytest_invari.errors import InvariError
from pytest_invari.protocol.usercode import is_verdict, refuse_async, shortened, unawaited, user_code
from pytest_invari.registry.parameters import bind_options
from pytest_invari.text import harmless

if TYPE_CHECKING:
    from pytest_invari.criteria.evidence import Evidence
    from pytest_invari.criteria.suite_study import SuiteStudy
    from pytest_invari.registry.parameters import OptionValue


HOOK = "pytest_invari_criteria"

AssertionFunction = Callable[..., object]
"""``check(study, **options)``: it returns nothing, or raises an AssertionError."""

CustomKinds = Mapping[str, AssertionFunction]
"""The kinds that hooks name."""

# As the names of rerankers that hooks give.
_NAME = re.compile(r"[A-Za-z_][\w.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomCriterion(Criterion):
    """What a user's own function asserts, called with the ``options`` that the suite gives it."""

    named: str
    check: AssertionFunction
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def kind(self) -> str:
        """See :class:`Criterion`."""
        return self.named

    @property
    def judges_failures(self) -> bool:
        """True: the study's assertions do, each by its own metric."""
        return True

    def demand(self, k: int, baseline: str) -> str:
        """Empty: each assertion of the function says what it demands."""
        return ""

    def judged(self, evidence: Evidence) -> Judgement:
        """Pass when the function returns, and fail when it raises, or returns without a look at a figure.

        What would pass is undecided where an assertion is, or where a figure that the function has looked at
        rests on too few queries.
        """
        from pytest_invari.criteria.suite_study import SuiteStudy

        study = SuiteStudy(evidence)
        try:
            with user_code("the function", f"hook {HOOK}: kind {self.named!r}"):
                message = self._message(study)
        except InvariError as error:
            return Judgement("fail", math.nan, reason=str(error))
        details = {"assertions": study.values}
        if message is not None:
            # pytest begins the message of an assertion that has an empty one with a line break.
            first, *more = message.strip().splitlines() or ["an assertion failed without a message"]
            return Judgement("fail", math.nan, figure=first, lines=list(map(harmless, more)), details=details)
        if not study.is_measured:
            reason = f"nothing measured: kind {self.named!r} has looked at no figure of the study"
            return Judgement("fail", math.nan, reason=reason)
        if study.undecided:
            return Judgement("undecided", math.nan, figure="; ".join(study.undecided), details=details)
        said = "; ".join(study.passed) or f"kind {self.named!r} is content with the figures that it looked at"
        if study.thin:
            return Judgement(
                "undecided", math.nan, figure=said, reason="; ".join(study.thin), details=details
            )
        return Judgement("pass", math.nan, figure=said, details=details)

    def _message(self, study: SuiteStudy) -> str | None:
        """What the function's assertion, or its ``pytest.fail()``, says; None where neither failed."""
        try:
            returned = self.check(study, **self.options)
        except BaseException as error:
            if not is_verdict(error):
                raise
            return str(error)
        if fault := unawaited(returned):
            raise InvariError(f"it {fault}")
        if returned is not None:
            raise InvariError(
                f"it returned {shortened(returned)}; it must return nothing, and fail by an AssertionError"
            )
        return None


def checked_kinds(
    given: Mapping[str, object], built_in: Mapping[str, object]
) -> dict[str, AssertionFunction]:
    """The kinds that hooks name, once they are sound.

    Raises:
        InvariError: a name is not possible or that of a *built_in* kind, or what it names cannot be called
            with a study.
    """
    kinds: dict[str, AssertionFunction] = {}
    for name, check in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvariError(f"hook {HOOK}: {shortened(name)} is not a possible name of a kind")
        if name in built_in:
            raise InvariError(f"hook {HOOK}: {name!r} is a kind of pytest-invari's own; choose another name")
        if not callable(check):
            raise InvariError(
                f"hook {HOOK}: kind {name!r} is {shortened(check)}, not a function check(study, …)"
            )
        refuse_async(check, f"hook {HOOK}: kind {name!r}")
        if not _takes_a_study(check):
            raise InvariError(
                f"hook {HOOK}: kind {name!r}: the function must take the study as its first parameter"
            )
        kinds[name] = check
    return kinds


def bound_options(check: AssertionFunction, options: Mapping[str, OptionValue]) -> dict[str, Any]:
    """The keyword arguments that the suite's *options* stand for.

    Raises:
        InvariError: an option is unknown, missing or of the wrong type.
    """
    return bind_options(check, 1, options, "options")


def _takes_a_study(check: AssertionFunction) -> bool:
    try:
        parameters = list(inspect.signature(check).parameters.values())
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return bool(parameters) and parameters[0].kind in kinds
