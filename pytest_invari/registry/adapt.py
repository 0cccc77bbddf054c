"""Making a reranker of what a user has: a reranker, a class, a factory, or a plain function."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

from pytest_invari.errors import InvariError, counted
from pytest_invari.progress import tick
from pytest_invari.protocol import Cost, Ranking, RankingError, Request, Reranker
from pytest_invari.protocol.capabilities import refuse_async_members, source_of
from pytest_invari.protocol.usercode import refuse_async, shortened, unawaited, user_code
from pytest_invari.registry.parameters import OptionValue, bind_options

if TYPE_CHECKING:
    from pytest_invari.registry.build import Build


_HINT = "; a function that ranks takes (context, texts) or (context, candidates), and options with a default"
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class FunctionReranker:
    """A plain function ``(context, texts)`` or ``(context, candidates)`` as a reranker; one call per list.

    The function is given the context as text (the query, then the history, newest first) and the list
    of the candidates' texts; when its second parameter is called ``candidates``, the
    :class:`~pytest_invari.protocol.Candidate` objects instead. It returns one of

    - one score per candidate, higher is better, in the order in which it got them,
    - scores by 0-based position: ``{position: score}`` or pairs ``(position, score)``,
    - only when it takes ``candidates``, since texts do not tell the ids: the ids, best first, or scores
      by id: ``{id: score}`` or pairs ``(id, score)``,
    - a :class:`~pytest_invari.protocol.Ranking`.

    The whole numbers from 0 or from 1 up, each once, are refused: ``[0, 1]`` is both an order and scores.
    Anything else that is not a ranking of the candidates raises
    :class:`~pytest_invari.protocol.RankingError`. Who needs more (the ratings, several lists at once)
    writes a class with ``rank(request)``.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any] | None = None) -> None:
        self.function = function
        self.options = dict(options or {})
        second = list(inspect.signature(function).parameters.values())[1]
        self._takes_candidates = second.name == "candidates"

    def rank(self, request: Request) -> Ranking:
        """Call the function once."""
        started = time.perf_counter()
        given = list(request.candidates) if self._takes_candidates else [c.text for c in request.candidates]
        output = self.function(str(request.context), given, **self.options)
        if fault := unawaited(output):
            raise RankingError(fault)
        cost = Cost(calls=1, depth=1, seconds=time.perf_counter() - started)
        ranking = self._ranking(request, output, cost)
        tick()
        return ranking

    def expected_calls(self, k: int) -> int:
        """Return 1: a list takes one call."""
        return 1

    def fingerprint(self) -> Mapping[str, object]:
        """The function, the source it stands in, and its options."""
        return {**source_of(self.function), "options": self.options}

    def _ranking(self, request: Request, output: Any, cost: Cost) -> Ranking:
        if isinstance(output, Ranking):
            return output
        if isinstance(output, Mapping):
            return self._from_pairs(request, list(output.items()), cost)
        values = _as_list(output)
        if values and all(isinstance(value, tuple | list) and len(value) == 2 for value in values):
            return self._from_pairs(request, values, cost)
        if values and all(isinstance(value, str) for value in values):
            self._refuse_unknown_ids()
            return Ranking.from_order(request, values, cost=cost)
        if len(values) != len(request.candidates):
            asked = counted(len(request.candidates), "candidate")
            raise RankingError(f"returned {counted(len(values), 'score')} for {asked}")
        if _may_be_order(values):
            raise RankingError(
                f"returned whole numbers only ({shortened(values)}), which may be an order or scores; "
                "return floats for scores, {position: score}, or ids"
            )
        return Ranking.from_scores(request, dict(zip(request.ids, values, strict=True)), cost=cost)

    def _from_pairs(self, request: Request, pairs: list[Any], cost: Cost) -> Ranking:
        keys = [key for key, _ in pairs]
        repeated = sorted({repr(key) for key in keys if keys.count(key) > 1})
        if repeated:
            raise RankingError(f"scores {', '.join(repeated)} more than once")
        if all(isinstance(key, Integral) for key in keys):
            positions = {key if isinstance(key, bool) else int(key): score for key, score in pairs}
            return Ranking.from_index_scores(request, positions, cost=cost)
        if any(isinstance(key, Integral) for key in keys):
            raise RankingError("returned scores by position and by id together")
        self._refuse_unknown_ids()
        return Ranking.from_scores(request, dict(pairs), cost=cost)

    def _refuse_unknown_ids(self) -> None:
        if not self._takes_candidates:
            raise RankingError(
                "returned text, but the function takes texts and cannot know the ids; return one score per "
                "text, or call the second parameter 'candidates' to be given ids"
            )


def make_reranker(target: object, build: Build, options: Mapping[str, OptionValue], who: str) -> Reranker:
    """Make a reranker of *target*.

    A ready reranker (it has ``rank``) takes no options. A function whose required parameters are
    exactly two, the first not called ``build``, is a plain function (:class:`FunctionReranker`). Any
    other function, and every class, is a factory: it is called with the options and, when it has a
    parameter ``build``, with *build*, and returns a reranker or a plain function.

    Raises:
        InvariError: *target* is none of these, or an option is wrong; *who* opens the message.
    """
    if isinstance(target, Reranker) and not isinstance(target, type):
        if options:
            given = ", ".join(name or shortened(value) for name, value in options.items())
            raise InvariError(f"{who}: is ready made and takes no options, but got {given}")
        refuse_async_members(target, who)
        return target
    if not callable(target):
        raise InvariError(f"{who}: {_named(target)} is neither a reranker nor a function that makes one")
    refuse_async(target, f"{who}: {_named(target)}")
    parameters = _parameters(target, who)
    if _is_plain(target, parameters):
        return FunctionReranker(target, bind_options(target, 2, options, who))
    try:
        return _made(target, parameters, build, options, who)
    except InvariError as error:
        hint = _HINT if _may_be_meant_to_rank(target, parameters, options) else ""
        raise InvariError(f"{error}{hint}") from error


def _made(
    factory: Callable[..., Any],
    parameters: list[inspect.Parameter],
    build: Build,
    options: Mapping[str, OptionValue],
    who: str,
) -> Reranker:
    arguments = bind_options(factory, "build", options, who)
    if any(parameter.name == "build" for parameter in parameters):
        arguments["build"] = build
    with user_code("making it", who):
        made = factory(**arguments)
        if fault := unawaited(made):
            raise InvariError(fault)
    if isinstance(made, Reranker) and not isinstance(made, type):
        refuse_async_members(made, who)
        return made
    refuse_async(made, f"{who}: {_named(made)}")
    if callable(made) and _is_plain(made, _parameters(made, who)):
        return FunctionReranker(made)
    raise InvariError(f"{who}: made {_named(made)}, which has no method rank(request)")


def _parameters(function: Callable[..., Any], who: str) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise InvariError(f"{who}: {_named(function)} does not tell its parameters; wrap it") from None


def _is_plain(target: object, parameters: list[inspect.Parameter]) -> bool:
    if isinstance(target, type) or any(p.name == "build" for p in parameters):
        return False
    required = _required(parameters)
    return len(required) == 2 and [p for p in parameters[:2] if p.kind in _POSITIONAL] == required


def _may_be_meant_to_rank(
    target: object, parameters: list[inspect.Parameter], options: Mapping[str, OptionValue]
) -> bool:
    """Whether a function was taken for a factory, though nothing says that it is one."""
    if isinstance(target, type) or any(parameter.name == "build" for parameter in parameters):
        return False
    open_ended = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    return open_ended or any(p.name not in options and p.name != "build" for p in _required(parameters))


def _required(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    return [p for p in parameters if p.default is p.empty and p.kind in (*_POSITIONAL, p.KEYWORD_ONLY)]


def _may_be_order(values: list[Any]) -> bool:
    """Whether the values are positions, counted from 0 or from 1; a single one has only one order."""
    if len(values) < 2 or not all(isinstance(v, Integral) and not isinstance(v, bool) for v in values):
        return False
    first = min(values)
    return first in (0, 1) and sorted(values) == list(range(first, first + len(values)))


def _as_list(output: Any) -> list[Any]:
    if hasattr(output, "tolist"):
        output = output.tolist()
    if isinstance(output, str) or not isinstance(output, Iterable):
        raise RankingError(f"returned {shortened(output)} ({type(output).__name__}) instead of scores or ids")
    return list(output)


def _named(thing: object) -> str:
    name = getattr(thing, "__qualname__", None)
    return repr(name) if name else f"an object of type {type(thing).__name__}"
