"""Keeps the libraries' own progress bars from covering ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging

__all__ = ["without_progress_bars"]


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Turns off the bars that transformers shows for every file it reads or writes.

    Yields:
        Nothing; the bars are as before afterwards.
    """
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
