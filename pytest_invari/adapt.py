"""Making a reranker of what a user has: a reranker, a class, a factory, or a plain function."""

from __future__ import annotations

import functools
import hashlib
import inspect
import time
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

from pytest_invari.errors import InvariError
from pytest_invari.locate import one_line
from pytest_invari.parameters import OptionValue, bind_options
from pytest_invari.progress import tick
from pytest_invari.protocol import Cost, Ranking, RankingError, Request, Reranker

if TYPE_CHECKING:
    from pytest_invari.registry import Build

__all__ = ["FunctionReranker", "fingerprint_of", "make_reranker"]

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

    Whole numbers alone are refused: ``[0, 1]`` is both an order and scores. Anything else that is not a
    ranking of the candidates raises :class:`~pytest_invari.protocol.RankingError`. Who needs more (the
    ratings, several lists at once) writes a class with ``rank(request)``.
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
        cost = Cost(calls=1, depth=1, seconds=time.perf_counter() - started)
        ranking = self._ranking(request, output, cost)
        tick()
        return ranking

    def expected_calls(self, k: int) -> int:
        """Return 1: a list takes one call."""
        return 1

    def fingerprint(self) -> Mapping[str, object]:
        """The function, the source it stands in, and its options."""
        return {**_source_of(self.function), "options": self.options}

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
        if values and all(isinstance(value, Integral) for value in values):
            raise RankingError(
                f"returned whole numbers only ({_shortened(values)}), which may be an order or scores; "
                "return floats for scores, {position: score}, or ids"
            )
        if len(values) != len(request.candidates):
            raise RankingError(f"returned {len(values)} scores for {len(request.candidates)} candidates")
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
            raise InvariError(f"{who}: is ready made and takes no options, but got {', '.join(options)}")
        return target
    if not callable(target):
        raise InvariError(f"{who}: {_named(target)} is neither a reranker nor a function that makes one")
    parameters = _parameters(target, who)
    if _is_plain(target, parameters):
        return FunctionReranker(target, bind_options(target, 2, options, who))
    arguments = bind_options(target, "build", options, who)
    if any(parameter.name == "build" for parameter in parameters):
        arguments["build"] = build
    try:
        made = target(**arguments)
    except InvariError as error:
        raise InvariError(f"{who}: {error}") from None
    except Exception as error:
        raise InvariError(f"{who}: making it raised {type(error).__name__}: {one_line(error)}") from error
    if isinstance(made, Reranker) and not isinstance(made, type):
        return made
    if callable(made) and _is_plain(made, _parameters(made, who)):
        return FunctionReranker(made)
    raise InvariError(f"{who}: made {_named(made)}, which has no method rank(request)")


def fingerprint_of(reranker: Reranker, label: str = "") -> Mapping[str, object]:
    """Return everything known that can change a reranker's answers.

    One without a ``fingerprint`` of its own is known by its class, the source file of it, and *label*,
    the text that names it and its options.
    """
    own = getattr(reranker, "fingerprint", None)
    if callable(own):
        fingerprint: Mapping[str, object] = own()
        return fingerprint
    return {**_source_of(type(reranker)), "label": label}


def _parameters(function: Callable[..., Any], who: str) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise InvariError(f"{who}: {_named(function)} does not tell its parameters; wrap it") from None


def _is_plain(target: object, parameters: list[inspect.Parameter]) -> bool:
    if isinstance(target, type) or any(p.name == "build" for p in parameters):
        return False
    required = [p for p in parameters if p.default is p.empty and p.kind in (*_POSITIONAL, p.KEYWORD_ONLY)]
    return len(required) == 2 and [p for p in parameters[:2] if p.kind in _POSITIONAL] == required


def _as_list(output: Any) -> list[Any]:
    if hasattr(output, "tolist"):
        output = output.tolist()
    if isinstance(output, str) or not isinstance(output, Iterable):
        raise RankingError(
            f"returned {_shortened(output)} ({type(output).__name__}) instead of scores or ids"
        )
    return list(output)


def _source_of(thing: Any) -> dict[str, object]:
    while isinstance(thing, functools.partial):
        thing = thing.func
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    source: dict[str, object] = {"code": f"{named.__module__}.{named.__qualname__}"}
    try:
        file = inspect.getsourcefile(named)
        if file is not None:
            with open(file, "rb") as stream:
                source["sha256"] = hashlib.sha256(stream.read()).hexdigest()
    except (OSError, TypeError):
        pass
    return source


def _named(thing: object) -> str:
    name = getattr(thing, "__qualname__", None)
    return repr(name) if name else f"an object of type {type(thing).__name__}"


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
