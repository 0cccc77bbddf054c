"""Progress bars: one for the step at hand, which the rerankers at the bottom advance call by call."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

# On something that is not a terminal (a CI log) a line is written after this many seconds, not redrawn.
SPARSE_SECONDS = 15.0
# There, a step shorter than this leaves no line at all.
NOTABLE_SECONDS = 1.0

_current: ContextVar[Bar | None] = ContextVar("pytest_invari_bar", default=None)
_before: ContextVar[Callable[[], None] | None] = ContextVar("pytest_invari_before", default=None)
_stream: ContextVar[TextIO | None] = ContextVar("pytest_invari_stream", default=None)


class Bar:
    """A count on its way to a total. Made by :func:`bar`."""

    def __init__(self, total: int, description: str, unit: str, stream: TextIO | None) -> None:
        self.total = total
        self.done = 0
        self._shown_at = -1
        self.unit = unit
        self._description = description
        self._stream = stream
        self._started = self._written = time.monotonic()
        self._drawn: Any = None
        if stream is not None and stream.isatty():
            _prepare_place()
            self._drawn = _terminal_bar()(
                total=total,
                desc=description,
                unit=f" {unit}",
                file=stream,
                leave=False,
                dynamic_ncols=True,
                miniters=1,
                smoothing=0.05,
            )

    def advance(self, count: int = 1) -> None:
        """Count *count* more. A total that turns out too small grows with it."""
        self.advance_to(self.done + count)

    def advance_to(self, done: int) -> None:
        """Set the count, where it is known better than its steps (calls that were answered from memory)."""
        if done <= self.done:
            return
        if self._drawn is not None:
            if done > self.total:
                self._drawn.total = done
            self._drawn.update(done - self.done)
        self.done = done
        self.total = max(self.total, done)
        if self._is_sparse and time.monotonic() - self._written >= SPARSE_SECONDS:
            self._write_line()

    def close(self) -> None:
        """Remove the bar from a terminal; elsewhere a step that took a while leaves one last line."""
        if self._drawn is not None:
            self._drawn.close()
        elif (
            self._is_sparse
            and self._shown_at != self.done
            and time.monotonic() - self._started >= NOTABLE_SECONDS
        ):
            self._write_line()

    @property
    def _is_sparse(self) -> bool:
        return self._stream is not None and self._drawn is None

    def _write_line(self) -> None:
        from tqdm import tqdm

        self._written = time.monotonic()
        self._shown_at = self.done
        line = tqdm.format_meter(
            self.done,
            self.total,
            self._written - self._started,
            ncols=100,
            prefix=self._description,
            ascii=True,
            unit=f" {self.unit}",
        )
        assert self._stream is not None
        _prepare_place()
        self._stream.write(line + "\n")
        self._stream.flush()


@contextmanager
def bar(total: int, description: str, *, unit: str = "call", show: bool | None = None) -> Iterator[Bar]:
    """Show progress while the block runs.

    A bar in calls is advanced by :func:`tick`; one in any other unit only by its owner, so that a
    reranker's calls are never taken for views. Of nested bars only the innermost advances. Nothing is
    shown in a worker of pytest-xdist, whose output would tear the controller's, nor with ``show=False``.
    """
    stream = (_stream.get() or sys.stderr) if _may_show(show) and total > 0 else None
    opened = Bar(total, description, unit, stream)
    token = _current.set(opened)
    try:
        yield opened
    finally:
        _current.reset(token)
        opened.close()


def tick(calls: int = 1) -> None:
    """Count calls that the model has just answered; outside of a bar in calls this does nothing."""
    current = _current.get()
    if current is not None and current.unit == "call":
        current.advance(calls)


@contextmanager
def shown_on(stream: TextIO) -> Iterator[None]:
    """Draw the bars of the block on *stream* instead of ``sys.stderr`` (pytest captures the latter)."""
    token = _stream.set(stream)
    try:
        yield
    finally:
        _stream.reset(token)


@contextmanager
def preceded_by(prepare: Callable[[], None]) -> Iterator[None]:
    """Call *prepare* once before the block's first bar or line is shown; never when none is."""
    token = _before.set(prepare)
    try:
        yield
    finally:
        _before.reset(token)


def _prepare_place() -> None:
    prepare = _before.get()
    if prepare is not None:
        _before.set(None)
        prepare()


def _may_show(show: bool | None) -> bool:
    return show is not False and "PYTEST_XDIST_WORKER" not in os.environ


@functools.cache
def _terminal_bar() -> Any:
    import threading

    from tqdm import tqdm

    class TerminalBar(tqdm):  # type: ignore[misc]  # tqdm is untyped
        # No monitor thread and no lock between processes: a bar must not outlive its test.
        monitor_interval = 0

    TerminalBar.set_lock(threading.RLock())
    return TerminalBar
