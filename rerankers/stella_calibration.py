"""The calibration of STELLA: where a model looks first, given where the relevant candidate stands."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_invari.cache import atomic_file, cache_dir
from pytest_invari.errors import InvariError
from pytest_invari.progress import Bar, bar
from pytest_invari.protocol import Ranking, Request, Reranker, rank_all, seeded_hash
from pytest_invari.protocol.capabilities import batch_size_of, calls_of, fingerprint_of
from pytest_invari.protocol.seeding import shuffled
from pytest_invari.protocol.wrapping import DEFAULT_BATCH
from pytest_invari.tasks.task import Task, TaskSet

FORMAT = "invari-stella-calibration/1"

Probe = tuple[int, Request]
"""The 0-based position of the target, and the list."""


@dataclass(frozen=True)
class Calibration:
    """What was counted: ``counts[p][o]`` is how often position o came first with the target at p (K × K)."""

    counts: Sequence[Sequence[int]]
    calls: int
    failed: int

    @cached_property
    def log_transitions(self) -> list[list[float]]:
        """ln T[p][o], shape (K, K): add-one smoothing, rows normalised."""
        return [[math.log((n + 1) / (sum(row) + len(row))) for n in row] for row in self.counts]


class Calibrator:
    """Loads the calibration of a base reranker for one data set and list length, or makes it.

    **Queries.** Up to *probes* queries of the task set that have a relevant candidate in their list, in
    the order of a seeded hash of their ids, so that no outcome but relevance chooses them. They are
    the queries that are ranked later; what the K × K counts can carry over is where in a list the model
    finds what is relevant, not which candidate is.

    **Calls.** Each relevant candidate stands at each of the K positions, *repeats* times, the others
    shuffled: queries × relevant × K × repeats calls (P1 section 4 with 150 queries and 5 repeats).

    **File.** Counts as JSON with the fingerprint of base, data set, K and options: at *path*, which is
    refused when its fingerprint is another, or in the user's cache under that fingerprint.
    """

    def __init__(
        self,
        base: Reranker,
        tasks: TaskSet,
        k: int,
        *,
        probes: int = 150,
        repeats: int = 5,
        seed: int = 0,
        path: str = "",
        again: bool = False,
    ) -> None:
        self.base = base
        self.tasks = tasks
        self.k = k
        self.probes = probes
        self.repeats = repeats
        self.seed = seed
        self._given_path = Path(path).expanduser() if path else None
        self.again = again
        self._calibration: Calibration | None = None

    @property
    def path(self) -> Path:
        """Where the file is, or will be."""
        if self._given_path is not None:
            return self._given_path
        text = json.dumps(self.fingerprint(), sort_keys=True)
        return cache_dir() / "stella" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"

    def fingerprint(self) -> Mapping[str, object]:
        """Everything that can change the counts."""
        found = {
            "base": fingerprint_of(self.base),
            "dataset": self.tasks.name,
            "tasks": self.tasks.sha256,
            "k": self.k,
            "probes": self.probes,
            "repeats": self.repeats,
            "seed": self.seed,
        }
        as_stored: dict[str, object] = json.loads(json.dumps(found, default=str))
        return as_stored

    def check(self) -> None:
        """Refuse, before a model is loaded, what cannot work.

        Raises:
            InvariError: a given file that will be used is no calibration or another's; or one must be
                made and no query has a relevant candidate.
        """
        if self._given_path is not None and self._given_path.exists() and not self.again:
            self._read(self._given_path)
        elif not self._targets:
            raise InvariError(
                f"stella: no query of {self.tasks.name!r} has a list of {self.k} with a relevant candidate, "
                "so it cannot be calibrated"
            )

    def prepare(self) -> Calibration:
        """Return the calibration; load it, or make and store it, when called first.

        Raises:
            InvariError: as :meth:`check`; or all probe calls failed, or some because a service was away.
        """
        if self._calibration is None:
            self._calibration = self._stored() or self._calibrate()
        return self._calibration

    def probe_requests(self) -> Iterator[Probe]:
        """Yield each probe with the 0-based position of its target."""
        for task, target in self._targets:
            request = Request(task.query_id, task.context, task.candidates)
            others = [item for item in request.ids if item != target]
            for position in range(self.k):
                for repeat in range(self.repeats):
                    seed = ("stella calibration", self.seed, task.query_id, target, position, repeat)
                    order = shuffled(others, *seed)
                    yield position, request.select([*order[:position], target, *order[position:]])

    @cached_property
    def _targets(self) -> list[tuple[Task, str]]:
        """The probe queries, each with one of its relevant candidates."""
        usable = [(task, _relevant(task)) for task in self.tasks.tasks if len(task.candidates) == self.k]
        usable = [(task, relevant) for task, relevant in usable if relevant]
        usable.sort(key=lambda probe: seeded_hash("stella probe", self.seed, probe[0].query_id))
        return [(task, target) for task, relevant in usable[: self.probes] for target in relevant]

    def _stored(self) -> Calibration | None:
        if self.again or not self.path.exists():
            return None
        try:
            return self._read(self.path)
        except InvariError:
            if self._given_path is not None:
                raise
            return None

    def _calibrate(self) -> Calibration:
        self.check()
        count = _Tally([[0] * self.k for _ in range(self.k)])
        probes = len(self._targets) * self.k * self.repeats
        queries = len({task.query_id for task, _ in self._targets})
        what = f"calibrating stella on {queries} queries, {self.repeats} repeats"
        with bar(probes * calls_of(self.base, self.k), what) as shown:
            self._ask(self.probe_requests(), count, shown)
            # Where the service was away for a moment, it may be back.
            spoiled, count.spoiled = count.spoiled, []
            self._ask((probe for probe, _ in spoiled), count, shown)
        if count.spoiled:
            raise InvariError(
                f"stella: {len(count.spoiled)} of {probes} calibration calls failed while the service was "
                f"away, the first on {count.spoiled[0][1]}; nothing of this calibration is kept, and the "
                "same command makes it again"
            )
        if not any(map(any, count.table)):
            raise InvariError(
                f"stella: all {count.failed} calibration calls failed, the first on {count.fault}"
            )
        calibration = Calibration(count.table, count.calls, count.failed)
        self._write(calibration)
        return calibration

    def _ask(self, probes: Iterator[Probe], count: _Tally, shown: Bar) -> None:
        size = batch_size_of(self.base, DEFAULT_BATCH)
        while batch := list(islice(probes, size)):
            answers = rank_all(self.base, [request for _, request in batch])
            for probe, answer in zip(batch, answers, strict=True):
                count.add(probe, answer)
            shown.advance_to(count.calls)

    def _read(self, path: Path) -> Calibration:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            counts = content["counts"]
            calibration = Calibration(counts, content["calls"], content["failed"])
            stored = content["fingerprint"]
            known = content["format"] == FORMAT and all(
                isinstance(n, int) and n >= 0 for row in counts for n in row
            )
        except (OSError, ValueError, KeyError, TypeError):
            known = False
        if not known:
            raise InvariError(f"{path}: not a calibration of stella; remove it, or pass --invari-calibrate")
        differences = list(_differences(stored, self.fingerprint()))
        if differences:
            raise InvariError(
                f"{path}: calibrated for something else ({'; '.join(differences[:3])}); "
                "pass --invari-calibrate to calibrate again"
            )
        if [len(row) for row in counts] != [self.k] * self.k:
            raise InvariError(f"{path}: the counts are not {self.k} × {self.k}")
        return calibration

    def _write(self, calibration: Calibration) -> None:
        content = {
            "format": FORMAT,
            "fingerprint": self.fingerprint(),
            "calls": calibration.calls,
            "failed": calibration.failed,
            "counts": calibration.counts,
        }
        with atomic_file(self.path) as temporary:
            temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")


@dataclass
class _Tally:
    """What came of the probes so far; ``spoiled`` those whose failure says nothing of them, and why."""

    table: list[list[int]]
    calls: int = 0
    failed: int = 0
    fault: str = ""
    spoiled: list[tuple[Probe, str]] = field(default_factory=list)

    def add(self, probe: Probe, answer: Ranking) -> None:
        position, request = probe
        self.calls += answer.cost.calls
        fault = f"query {request.query_id!r}: {answer.fault}"
        if answer.is_transient:
            self.spoiled.append((probe, fault))
        elif answer.status == "failed":
            self.failed += 1
            self.fault = self.fault or fault
        else:
            self.table[position][request.ids.index(answer.order[0])] += 1


def _relevant(task: Task) -> list[str]:
    return [item for item in task.ids if task.relevance.get(item, 0) > 0]


def _differences(stored: Any, current: Any, key: str = "fingerprint") -> Iterator[str]:
    """Yield what differs, by the path of its key."""
    if isinstance(stored, dict) and isinstance(current, dict):
        for name in sorted({*stored, *current}):
            inner = name if key == "fingerprint" else f"{key}.{name}"
            yield from _differences(stored.get(name), current.get(name), inner)
    elif stored != current:
        yield f"{key} is {stored!r}, here {current!r}"
