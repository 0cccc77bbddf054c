"""Rankings as JSON Lines, one view a line, so that they can come from elsewhere and go elsewhere.

A line is an object with these keys, of which the first four must be there::

    query_id     text
    view         "canonical" (the data set's own order) or the seed that names another: 13 or "13"
    input        list of candidate ids in the order shown
    output       list of the same ids, best first; may be left out where the ranking failed
    scores       list of numbers aligned with output, so that they fall
    status       ok (the default), repaired, partial or failed
    cost         {calls, depth, tokens_in, tokens_cached, tokens_out, seconds}; by default one call
    diagnostics  object; entropy, top_two_margin and fault have a meaning

A file is UTF-8, with or without a byte order mark; its lines may end as on Windows.
"""

from __future__ import annotations

import codecs
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args

from pytest_invari.cache import atomic_file
from pytest_invari.errors import InvariError, unknown_name
from pytest_invari.observation.observation import Observation, ObservationKey
from pytest_invari.observation.views import described, is_view_name
from pytest_invari.protocol import (
    Candidate,
    Context,
    Cost,
    LabelBinding,
    Ranking,
    RankingError,
    Request,
    Status,
)
from pytest_invari.tasks.taskrow import load_json

KEYS = ("query_id", "view", "input", "output", "scores", "status", "cost", "diagnostics")
COST = tuple(field.name for field in fields(Cost))
# The largest integer of Parquet's int64, in which counts are kept.
LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RankingLine:
    """One line of a file, its 1-based number, and what it holds."""

    path: Path
    number: int
    seen: Observation

    @property
    def place(self) -> str:
        """What errors about it begin with."""
        return f"{self.path}: line {self.number}"


def write_rankings(path: Path, observations: Iterable[Observation]) -> None:
    """Write observations in this order, whole or not at all; a file of rankings at *path* is replaced.

    Raises:
        InvariError: another file is there, the folder cannot be written to, or a score is no finite number.
    """
    _require_replaceable(path)
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as lines:
        for seen in observations:
            try:
                lines.write(json.dumps(_row(seen), allow_nan=False) + "\n")
            except ValueError:
                where = f"query {seen.query_id!r}, {described(seen.view)}"
                raise InvariError(f"{where}: JSON cannot hold its numbers, one is not finite") from None


def read_rankings(path: Path) -> list[RankingLine]:
    """Read a file of rankings, in its order.

    Raises:
        InvariError: it cannot be read, is empty, or a line is none that the format allows: no JSON, a key
            that is unknown or of another type, an output that is no order of its input, scores that do not
            fall, an impossible cost, or a view that is there twice. The message names file and line.
    """
    found: dict[ObservationKey, RankingLine] = {}
    for number, content in _lines(path):
        place = f"{path}: line {number}"
        seen = _observation(_object(content, place), place)
        if seen.key in found:
            raise InvariError(
                f"{place}: query {seen.query_id!r}, {described(seen.view)} is there already, at line "
                f"{found[seen.key].number}; a view is ranked once"
            )
        found[seen.key] = RankingLine(path, number, seen)
    if not found:
        raise InvariError(f"{path}: holds no rankings; each line is one view of one query")
    return list(found.values())


def _require_replaceable(path: Path) -> None:
    """Refuse to write over something else, such as the task file that was ranked."""
    for _, content in _lines(path) if path.is_file() else ():
        try:
            _observation(_object(content, str(path)), str(path))
        except InvariError:
            raise InvariError(
                f"{path}: holds something else than rankings, and would be replaced; name another file, or "
                "remove this one"
            ) from None
        return


def _row(seen: Observation) -> dict[str, Any]:
    ranking = seen.ranking
    return {
        "query_id": seen.query_id,
        "view": seen.view,
        "input": seen.shown,
        "output": ranking.order,
        **({} if ranking.scores is None else {"scores": ranking.scores}),
        "status": ranking.status,
        "cost": asdict(ranking.cost),
        "diagnostics": ranking.diagnostics,
    }


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    # Only b"\n" ends a line: ids may hold U+2028 and other characters that str.splitlines splits at.
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                if content.strip():
                    yield number, content
    except OSError as error:
        raise InvariError(f"{path}: cannot be read ({error.strerror or error})") from None


def _object(content: bytes, place: str) -> Mapping[str, Any]:
    try:
        row = load_json(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise InvariError(f"{place}: is not UTF-8 text; save the file as UTF-8") from None
    except RecursionError:
        raise InvariError(f"{place}: is nested too deeply") from None
    except ValueError as error:
        raise InvariError(f"{place}: is not JSON ({error}); each line is one view of one query") from None
    if not isinstance(row, dict):
        raise InvariError(f"{place}: must be an object with the keys {', '.join(KEYS)}")
    for key in row:
        if key not in KEYS:
            raise unknown_name("key", key, KEYS, place)
    return row


def _observation(row: Mapping[str, Any], place: str) -> Observation:
    query_id = _text(row.get("query_id"), "query_id", place)
    view = _view(row.get("view"), place)
    where = f"{place}: query {query_id!r}, {described(view)}"
    shown = _ids(row, "input", where)
    if not shown:
        raise InvariError(f"{where}: input is empty; there was nothing to rank")
    status = row.get("status", "ok")
    if status not in get_args(Status):
        raise InvariError(f"{where}: status must be one of {', '.join(get_args(Status))}, not {status!r}")
    if status != "failed" and row.get("output") is None:
        raise InvariError(f'{where}: has no output; for a ranking that failed say "status": "failed"')
    order = _ids(row, "output", where)
    if status != "failed":
        _require_order(query_id, shown, order, where)
    ranking = Ranking(
        order,
        _scores(row.get("scores"), order, where),
        _cost(row.get("cost"), Cost() if status == "failed" else Cost(calls=1, depth=1), where),
        status,
        _diagnostics(row.get("diagnostics"), where),
    )
    return Observation(query_id, view, shown, ranking)


def _text(value: object, what: str, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvariError(f"{place}: {what} must be a text that is not blank, not {_short(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvariError(f"{place}: {what} holds half a surrogate pair ({value!r})") from None
    return value


def _view(value: object, place: str) -> str:
    name = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(name, str) or not is_view_name(name):
        raise InvariError(
            f'{place}: view must be "canonical" (the data set\'s own order) or a seed that names another, '
            f"such as 13, not {_short(value)}"
        )
    return name


def _ids(row: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = row.get(key)
    if value is None and key == "output":
        return ()
    if not isinstance(value, list):
        raise InvariError(f"{where}: {key} must be a list of ids, not {_short(value)}")
    ids = tuple(_text(item, f"each id of {key}", where) for item in value)
    if key == "input" and len(set(ids)) < len(ids):
        twice = next(item for item in ids if ids.count(item) > 1)
        raise InvariError(f"{where}: input shows {twice!r} twice")
    return ids


def _require_order(query_id: str, shown: tuple[str, ...], order: tuple[str, ...], where: str) -> None:
    request = Request(query_id, Context(), tuple(Candidate(item, item) for item in shown))
    try:
        Ranking.from_order(request, order)
    except RankingError as error:
        raise InvariError(f"{where}: {error}") from None


def _scores(value: object, order: tuple[str, ...], where: str) -> tuple[float, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != len(order) or not all(map(_is_finite, value)):
        raise InvariError(
            f"{where}: scores must be a list of {len(order)} finite numbers, one an id of output"
        )
    scores = tuple(map(float, value))
    if any(later > earlier for earlier, later in itertools.pairwise(scores)):
        raise InvariError(f"{where}: scores do not fall; they are aligned with output, which is best first")
    return scores


def _cost(value: object, default: Cost, where: str) -> Cost:
    if value is None:
        return default
    if not isinstance(value, dict):
        raise InvariError(f"{where}: cost must be an object with the keys {', '.join(COST)}")
    for key, number in value.items():
        if key not in COST:
            raise unknown_name("key", key, COST, f"{where}: cost")
        if not _is_finite(number) or number > LARGEST:
            raise InvariError(f"{where}: cost: {key} cannot be {_short(number)}")
    cost = Cost(**asdict(default) | value)
    if cost.fault:
        raise InvariError(f"{where}: cost: {cost.fault}")
    counts = {name: int(getattr(cost, name)) for name in COST if name != "seconds"}
    return Cost(**counts, seconds=float(cost.seconds))


def _diagnostics(value: object, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvariError(f"{where}: diagnostics must be an object, not {_short(value)}")
    labels = value.get("labels")
    if labels is not None and labels not in get_args(LabelBinding):
        raise InvariError(
            f"{where}: diagnostics: labels says how labels were bound ({', '.join(get_args(LabelBinding))}), "
            f"and cannot be {_short(labels)}; call it something else"
        )
    return value


def _is_finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= LARGEST if isinstance(value, int) else math.isfinite(value)


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
