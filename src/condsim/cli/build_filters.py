"""What the commands that filter pairs have in common: the bounds and the table of counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from condsim.errors import InputError

if TYPE_CHECKING:
    from condsim.construction.filters import FilterCounts, FilterSettings

__all__ = [
    "MAX_IOU",
    "MIN_COSINE",
    "MIN_LENGTH",
    "MIN_RATIO",
    "NO_TEXT_COSINE",
    "PRESET",
    "STOP_WORDS",
    "TEXT_ENCODER",
    "filter_settings",
    "show_counts",
    "stop_words_of",
]

PRESET = typer.Option(help="Filters of the paper: coco or flickr30k.", show_default=False)
MAX_IOU = typer.Option(help="Highest overlap of the bags of words, 0 to 1.", show_default=False)
MIN_COSINE = typer.Option(help="Lowest cosine of the text encoder.", show_default=False)
MIN_RATIO = typer.Option(help="Lowest ratio of the word counts, 0 to 1.", show_default=False)
MIN_LENGTH = typer.Option(help="Fewest characters of the shorter.", show_default=False)
STOP_WORDS = typer.Option(
    help="File of stop words, separated by white space.", show_default="an English list"
)
TEXT_ENCODER = typer.Option(
    help="Model for texts: a folder, a name on the Hub, or 'default' for the bundled one.",
    show_default="all-MiniLM-L6-v2",
)
NO_TEXT_COSINE = typer.Option("--no-text-cosine", help="Leave the cosine of texts out.")


def filter_settings(
    name: str | None, bounds: Mapping[str, float | int | None], *, cosine: bool
) -> FilterSettings:
    """Puts a preset and single bounds together.

    Args:
        name: The preset; no bound if None.
        bounds: By the name of the filter; None leaves the preset's.
        cosine: Whether the cosine of the texts may be used.

    Returns:
        The bounds.

    Raises:
        InputError: If there is no such preset or a bound is out of range.
    """
    from condsim.construction.filters import FilterSettings, preset

    if not cosine and bounds["min_text_cosine"] is not None:
        raise InputError("--no-text-cosine and --min-cosine contradict each other; give one.")
    settings = FilterSettings() if name is None else preset(name)[1]
    settings = settings.changed(bounds)
    return settings if cosine else replace(settings, min_text_cosine=None)


def stop_words_of(path: Path | None) -> frozenset[str]:
    """Gives the stop words of an option.

    Args:
        path: The file; the English list if None.

    Returns:
        The words.

    Raises:
        InputError: If the file cannot be read.
    """
    from condsim.construction.stop_words import ENGLISH_STOP_WORDS, read_stop_words

    return ENGLISH_STOP_WORDS if path is None else read_stop_words(path)


def show_counts(counts: FilterCounts, settings: FilterSettings) -> None:
    """Prints how many pairs each filter rejects.

    Args:
        counts: How many.
        settings: The filters.
    """
    table = Table(title="Sentence pairs")
    table.add_column("")
    table.add_column("pairs", justify="right")
    table.add_column("share", justify="right")
    rows = [
        ("seen", counts.pairs),
        ("rejected: a sentence with itself", counts.same_text),
        (f"rejected: IOU above {settings.max_iou}", counts.max_iou),
        (f"rejected: cosine below {settings.min_text_cosine}", counts.min_text_cosine),
        (f"rejected: length ratio below {settings.min_length_ratio}", counts.min_length_ratio),
        (f"rejected: fewer characters than {settings.min_length}", counts.min_length),
        ("pass all", counts.passed),
    ]
    for what, count in rows:
        if not what.endswith(" None"):
            table.add_row(what, f"{count:,}", f"{count / max(counts.pairs, 1):.1%}")
    Console().print(table)
