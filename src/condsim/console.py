"""Terminal output: a console that shows control characters, and progress of long work."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from typing import TextIO

from rich import progress as bars
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from condsim.io import Closing

Progress = Callable[[str, int, int], None]
"""Callback with a stage, the steps done and the number of steps (0 where unknown)."""

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SECONDS_BETWEEN_LINES = 30.0


def silent(stage: str, done: int, total: int) -> None:
    """Show no progress."""


class Terminal(Console):
    """A console that shows control characters of data as pictures and sends none of them."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Render as the base class does, without control characters in the text."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control is None and not text.isprintable():
                text = _CONTROL.sub(lambda match: _picture(match.group()), text)
                yield Segment(text, segment.style)
            else:
                yield segment


def _picture(character: str) -> str:
    return chr(0x2400 + ord(character)) if character < " " else "\ufffd"


class ProgressDisplay(Closing):
    """Progress bar of the current stage; a context manager to call with stage, done and total.

    Where stderr is not a terminal, as in a log file, it writes a line every half minute instead.
    """

    def __init__(self, console: Console | None = None) -> None:
        """Set up the display, on stderr by default; the first call draws it."""
        self._console = console or Terminal(stderr=True)
        self._bars = bars.Progress(
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(),
            bars.TextColumn("{task.fields[count]}", markup=False),
            bars.TextColumn("{task.fields[rate]}"),
            bars.TimeElapsedColumn(),
            bars.TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._stage: str | None = None
        self._task = bars.TaskID(0)
        self._first = 0
        self._started = self._last_line = 0.0

    def __call__(self, stage: str, done: int, total: int, note: str = "") -> None:
        """Move the bar of a stage, which replaces that of another; ``note`` follows it."""
        if stage != self._stage or done < self._first:
            self._begin(stage, done)
        now = time.monotonic()
        elapsed = now - self._started
        # Steps of an earlier, interrupted process say nothing of the speed of this one.
        rate = (done - self._first) / elapsed if elapsed > 0 else 0.0
        if self._console.is_terminal:
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
                line += f", {_duration((total - done) / rate)} left" if rate else ""
            self.say(f"{line}, {note}" if note else line)

    def say(self, line: str) -> None:
        """Print a line that stays."""
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def close(self) -> None:
        """Remove the bar, so that something else can be printed; the next call draws it again."""
        self._bars.stop()
        if self._stage is not None and self._console.is_terminal:
            self._bars.remove_task(self._task)
        self._stage = None

    def _begin(self, stage: str, done: int) -> None:
        self.close()
        self._stage, self._first = stage, done
        self._started = self._last_line = time.monotonic()
        if self._console.is_terminal:
            self._task = self._bars.add_task(stage, total=None, completed=done, count="", rate="")
            self._bars.start()


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


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
