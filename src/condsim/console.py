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


class Terminal(Console):
    """A console that shows control characters of data as pictures and sends none of them."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Renders as its base does, then takes control characters out of the text."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control is None and not text.isprintable():
                text = _CONTROL.sub(lambda found: _picture(found.group()), text)
                yield Segment(text, segment.style)
            else:
                yield segment


def _picture(character: str) -> str:
    return chr(0x2400 + ord(character)) if character < " " else "\ufffd"


_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


Progress = Callable[[str, int, int], None]
"""Called with the stage, what is done and what there is (0 where unknown)."""


def silent(stage: str, done: int, total: int) -> None:
    """Shows nothing."""


_QUIET = 30.0  # seconds between two lines where there is no terminal


class ProgressDisplay(Closing):
    """A bar for the stage at work; a context manager that is called with stage, done and total."""

    # Where stderr is no terminal, as in a log file, a line is written every half minute instead.

    def __init__(self, console: Console | None = None) -> None:
        """Makes the display, on stderr by default; nothing is drawn before the first call."""
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
        self._started = self._told = 0.0

    def __call__(self, stage: str, done: int, total: int, note: str = "") -> None:
        """Moves the bar of a stage, in the place of another's; a ``total`` of 0 is unknown."""
        # ``note`` is shown beside the bar, or ends the line.
        if stage != self._stage or done < self._first:
            self._begin(stage, done)
        elapsed = time.monotonic() - self._started
        rate = (done - self._first) / elapsed if elapsed > 0 else 0.0  # of this process alone
        if self._console.is_terminal:
            count = f"{done:,}/{total:,}  {note}".strip() if total else note
            speed = f"{rate:,.1f}/s" if rate else ""
            limit = total or None
            self._bars.update(self._task, completed=done, total=limit, count=count, rate=speed)
        elif time.monotonic() - self._told > _QUIET:
            self._told = time.monotonic()
            left = f", {_minutes((total - done) / rate)} left" if rate and total else ""
            line = f"{stage}: {done:,} of {total:,}, {rate:,.1f}/s{left}" if total else stage
            self.say(f"{line}, {note}" if note else line)

    def say(self, line: str) -> None:
        """Prints a line that stays."""
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def close(self) -> None:
        """Removes the bar, so that something else can be printed; the next call draws it again."""
        self._bars.stop()
        if self._stage is not None and self._console.is_terminal:
            self._bars.remove_task(self._task)
        self._stage = None

    def _begin(self, stage: str, done: int) -> None:
        self.close()
        self._stage, self._first = stage, done
        self._started = self._told = time.monotonic()
        if self._console.is_terminal:
            self._task = self._bars.add_task(stage, total=None, completed=done, count="", rate="")
            self._bars.start()


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class _BarAside(logging.StreamHandler[TextIO]):
    """Removes the progress bar before it writes a line."""

    def __init__(self, display: ProgressDisplay) -> None:
        super().__init__()
        self._display = display

    def emit(self, record: logging.LogRecord) -> None:
        self._display.close()
        super().emit(record)


def log_beside(display: ProgressDisplay) -> None:
    """Writes log lines as plain text on stderr, without breaking the progress bar there."""
    logging.basicConfig(format="%(message)s", handlers=[_BarAside(display)])
