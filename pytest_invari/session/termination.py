"""SIGTERM, by which build servers cancel a job, ends a run as Ctrl-C does, so that nothing ranked is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def sigterm_interrupts() -> Generator[None]:
    """Let the first SIGTERM in the block raise KeyboardInterrupt; a second one ends the process at once.

    Where somebody else handles the signal, or the block is not run by the main thread, which alone may
    handle signals, nothing is changed.
    """
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if is_ours:
        signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        # A user's code may have set a handler of its own in the meantime.
        if is_ours and signal.getsignal(signal.SIGTERM) is _interrupt:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise KeyboardInterrupt("SIGTERM")
