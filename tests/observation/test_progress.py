"""Progress: who advances a bar, where it is drawn, and where it is not."""

from __future__ import annotations

import io
import threading
import time

import pytest

from pytest_invari import progress
from pytest_invari.progress import bar, preceded_by, shown_on, tick


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _in_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


def test_ticks_advance_a_bar_in_calls() -> None:
    with bar(10, "sgs", show=False) as shown:
        tick(3)
        tick()
        assert shown.done == 4


def test_ticks_leave_a_bar_in_another_unit_alone() -> None:
    with bar(10, "plain", unit="view", show=False) as shown:
        tick(3)
        assert shown.done == 0
        shown.advance()
        assert shown.done == 1


def test_ticks_go_to_the_innermost_bar() -> None:
    with bar(10, "sgs", show=False) as outer:
        with bar(5, "calibration", show=False) as inner:
            tick(2)
        tick(4)
    assert (outer.done, inner.done) == (4, 2)


def test_a_tick_outside_of_a_bar_does_nothing() -> None:
    tick()


def test_a_count_never_falls_and_a_total_grows_with_it() -> None:
    with bar(4, "sgs", show=False) as shown:
        tick(6)
        shown.advance_to(2)
        assert (shown.done, shown.total) == (6, 6)


def test_a_terminal_shows_description_count_and_time_left_and_is_cleared() -> None:
    terminal = Terminal()
    with shown_on(terminal), bar(20, "sgs on films, K=10") as shown:
        for _ in range(10):
            tick()
        shown._drawn.refresh()
        text = terminal.getvalue()
    assert "sgs on films, K=10:  50%" in text
    assert "10/20 [" in text
    assert " call/s]" in text or "s/ call]" in text
    assert not terminal.getvalue().split("\r")[-2].strip()
    assert terminal.getvalue().endswith("\r")


def test_a_bar_starts_no_thread() -> None:
    before = threading.active_count()
    with shown_on(Terminal()), bar(2, "sgs"):
        tick()
        assert threading.active_count() == before


def test_elsewhere_lines_are_written_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with bar(100, "sgs on films"):
        for _ in range(100):
            now[0] += 1.0
            tick()
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("/100 [")[0].split()[-1] for line in lines] == [
        "15",
        "30",
        "45",
        "60",
        "75",
        "90",
        "100",
    ]
    assert all(line.startswith("sgs on films: ") and "\r" not in line for line in lines)
    assert "[00:30<01:10," in lines[1]


@pytest.mark.parametrize("terminal", [True, False])
def test_what_precedes_is_done_once_and_only_where_something_is_shown(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setattr(progress, "SPARSE_SECONDS", 0.0)
    stream = Terminal() if terminal else io.StringIO()
    with shown_on(stream), preceded_by(lambda: print("before", file=stream)):
        for total in (0, 2, 2):
            with bar(total, "sgs", show=False):
                tick()
        assert stream.getvalue() == ""
        for _ in range(2):
            with bar(3, "sgs"):
                tick(3)
    text = stream.getvalue()
    assert text.startswith("before\n")
    assert "sgs" in text
    assert text.count("before") == 1
    with shown_on(stream), bar(3, "sgs"):
        tick()
    assert stream.getvalue().count("before") == 1


def test_what_precedes_is_not_done_where_a_step_takes_no_time() -> None:
    stream = io.StringIO()
    with shown_on(stream), preceded_by(lambda: print("before", file=stream)), bar(3, "sgs"):
        tick(3)
    assert stream.getvalue() == ""


def test_a_step_that_took_no_time_leaves_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    with bar(3, "sgs"):
        tick(3)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_a_worker_of_xdist_shows_nothing(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    monkeypatch.setattr(progress, "SPARSE_SECONDS", 0.0)
    stream = Terminal() if terminal else io.StringIO()
    with shown_on(stream), bar(2, "sgs") as shown:
        tick(2)
    assert (stream.getvalue(), shown.done) == ("", 2)


def test_nothing_to_do_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "NOTABLE_SECONDS", 0.0)
    for stream in (Terminal(), io.StringIO()):
        with shown_on(stream), bar(0, "sgs"):
            pass
        assert stream.getvalue() == ""


def test_a_bar_closes_when_its_block_is_interrupted() -> None:
    terminal = Terminal()

    def interrupted() -> None:
        with shown_on(terminal), bar(2, "sgs"):
            tick()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert terminal.getvalue().endswith("\r")
    tick()
