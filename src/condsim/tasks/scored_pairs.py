"""Scored pairs: how similar two sentences are, with no condition, from 0 to 1.

The form of pairs that a model scored rather than people, such as the harvest that SSBC's surrogate
learns from (Sun et al., 2022, §3.4).
"""

from __future__ import annotations

from pathlib import Path

from condsim.tasks.graded import GradedColumns, load_graded
from condsim.types import Task

__all__ = ["SCORED_PAIR_COLUMNS", "SCORE_RANGE", "load_scored_pairs"]

SCORED_PAIR_COLUMNS = GradedColumns("sentence1", "sentence2", "score")
"""The columns of a file of scored pairs."""

SCORE_RANGE = (0.0, 1.0)
"""Lowest and highest score."""


def load_scored_pairs(path: Path | str, *, name: str | None = None) -> Task:
    """Loads a file of scored pairs.

    A sentence that is in many pairs is held once: a million pairs take some hundred megabytes.

    Args:
        path: File with the columns ``sentence1``, ``sentence2`` and ``score``; formats as
            `condsim.tasks.iter_rows` reads them.
        name: Name of the task; the file's stem by default.

    Returns:
        The rows in file order, without conditions, each with a label from 0 to 1.

    Raises:
        InputError: If the file cannot be read or has no rows, a column is missing, a sentence is
            empty or no text, or a score is no number from 0 to 1.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    return load_graded(
        Path(path),
        columns=SCORED_PAIR_COLUMNS,
        label_range=SCORE_RANGE,
        fix=(
            "Map the scores to that range (of a cosine the part below 0 becomes 0), or remove the "
            "row."
        ),
        name=name,
    )
