"""Progress of long work on stderr: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TextIO

from condsim.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars, TaskID

Progress = Callable[[str, int, int], None]
"""Callback with a stage, the steps done and the number of steps (0 where unknown)."""

_SECONDS_BETWEEN_LINES = 30.0


def silent(stage: str, done: int, total: int) -> None:
    """Show no progress."""


class ProgressDisplay(AbstractContextManager["ProgressDisplay"]):
    """Progress bar of the current stage; a context manager to call with stage, done and total.

    Where stderr is not a terminal, as in a log file, it writes a line every half minute instead.
    """

    def __init__(self, console: Console | None = None) -> None:
        """Set up the display, on stderr by default; the first call draws it."""
        self._bars: Bars | None = None
        if console is not None or (sys.stderr is not None and sys.stderr.isatty()):
            self._bars = _bars_on(console)
        self._stage: str | None = None
        self._task: TaskID | None = None
        self._first = 0
        self._started = self._last_line = 0.0

    def __call__(self, stage: str, done: int, total: int, note: str = "") -> None:
        """Move the bar of a stage, which replaces another stage's; ``note`` follows it."""
        if stage != self._stage or done < self._first:
            self._begin(stage, done)
        now = time.monotonic()
        elapsed = now - self._started
        # Steps of an earlier, interrupted process say nothing of the speed of this one.
        rate = (done - self._first) / elapsed if elapsed > 0 else 0.0
        if self._bars is not None and self._task is not None:
            count = f"{done:,}/{total:,}  {note}".strip() if total else note
            speed = f"{rate:,.1f}/s" if rate else ""
            self._bars.update(
                self._task, completed=done, total=total or None, count=count, rate=speed
            )
        elif now - self._last_line > _SECONDS_BETWEEN_LINES:
            self._last_line = now
            line = stage
            if total:
                line += f": {done:,} of {total:,}, {rate:,.1f}/s"
                seconds = (total - done) / rate if rate else 0.0
                left = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
                line += f", {left} left" if rate else ""
            self.say(f"{line}, {note}" if note else line)

    def say(self, line: str) -> None:
        """Print a line that stays."""
        if self._bars is not None:
            self._bars.console.print(line, highlight=False, markup=False, soft_wrap=True)
        elif sys.stderr is not None:
            sys.stderr.write(f"{printable(line)}\n")

    def close(self) -> None:
        """Remove the bar, so that something else can be printed; the next call draws it again."""
        if self._bars is not None:
            self._bars.stop()
            if self._task is not None:
                self._bars.remove_task(self._task)
        self._stage = self._task = None

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, stage: str, done: int) -> None:
        self.close()
        self._stage, self._first = stage, done
        self._started = self._last_line = time.monotonic()
        if self._bars is not None:
            self._task = self._bars.add_task(stage, total=None, completed=done, count="", rate="")
            self._bars.start()


def _bars_on(console: Console | None) -> Bars:
    """Make bars on a console, by default stderr, that is a terminal."""
    # Slow to import.
    from rich import progress as bars

    from condsim.terminal import Terminal

    return bars.Progress(
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        bars.TextColumn("{task.fields[count]}", markup=False),
        bars.TextColumn("{task.fields[rate]}"),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
        console=console or Terminal(stderr=True),
        transient=True,
    )


class _LogHandler(logging.StreamHandler[TextIO]):
    """Handler that removes the progress bar before it writes a line."""

    def __init__(self, display: ProgressDisplay) -> None:
        super().__init__()
        self._display = display

    def emit(self, record: logging.LogRecord) -> None:
        self._display.close()
        super().emit(record)


def log_above(display: ProgressDisplay) -> None:
    """Write log lines as plain text on stderr, above the progress bar."""
    logging.basicConfig(format="%(message)s", handlers=[_LogHandler(display)])
