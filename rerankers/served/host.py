"""What all clients of one host share in a process: places in flight, a pause, and whether it answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pytest_invari.errors import InvariError

# That many requests in a row, each tried to the end, and nobody is there.
OUTAGE = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """How a service is treated.

    ``concurrency`` is the most requests in flight to one host, whichever rerankers of a process ask it;
    ``attempts`` how often one request is tried; ``timeout`` the most seconds without a byte of the answer,
    and the most from the start of an attempt to the last byte of the answer's body; while the answer's head,
    of 100 kB at most, comes byte by byte, the former alone holds.
    """

    concurrency: int = 8
    timeout: float = 60.0
    attempts: int = 5

    def __post_init__(self) -> None:
        for name in ("concurrency", "attempts"):
            if not 1 <= getattr(self, name) <= 1024:
                raise InvariError(f"option {name!r} must be from 1 to 1024, not {getattr(self, name)}")
        if not 0 < self.timeout < float("inf"):
            raise InvariError(f"option 'timeout' must be a number of seconds above 0, not {self.timeout:g}")


class Host:
    """``outage`` is what was told last of a host that has ceased to answer, or the empty text."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._taken = 0
        self._resume = 0.0
        self._failed_in_a_row = 0
        self._changed = threading.Condition()
        self.outage = ""

    def narrow(self, places: int) -> None:
        """Of several limits for one host the strictest holds."""
        self._places = min(self._places, places)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Wait for a place in flight, and for the end of a pause."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken < self._places)
            self._taken += 1
        try:
            yield
        finally:
            with self._changed:
                self._taken -= 1
                self._changed.notify()

    @property
    def pause(self) -> float:
        """The seconds for which the host has asked to be left alone."""
        return max(0.0, self._resume - time.monotonic())

    def pause_for(self, seconds: float) -> None:
        """Ask nothing of the host for a while, nor less than others have said."""
        with self._changed:
            self._resume = max(self._resume, time.monotonic() + seconds)

    def note(self, error: str) -> None:
        """Count a request that was given up; the empty text means that the host has answered."""
        with self._changed:
            self._failed_in_a_row = self._failed_in_a_row + 1 if error else 0
            if self._failed_in_a_row >= OUTAGE:
                self.outage = error
