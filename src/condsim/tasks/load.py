"""Loads a data file of any kind that condsim knows, told from its content."""

from __future__ import annotations

from pathlib import Path

from condsim.errors import InputError
from condsim.tasks.columns import column_names
from condsim.tasks.csts import load_csts
from condsim.tasks.nli import NLI_COLUMNS
from condsim.tasks.scored_pairs import load_scored_pairs
from condsim.tasks.stsb import STSB_COLUMNS, load_stsb
from condsim.tasks.triplets import is_triplets
from condsim.types import Task

__all__ = ["load_task"]

_LOOKED_AT = 64 * 1024  # bytes; the first line of an STS-B file is far shorter


def load_task(path: Path | str, *, name: str | None = None, require_labels: bool = False) -> Task:
    """Loads a C-STS file, or one without conditions: a released STS-B file or scored pairs.

    An STS-B file is one whose first line that is not blank has 7 tab separated fields or more with
    a number in the fifth: the released files have no header. Scored pairs have a column ``score``,
    and neither ``condition`` nor ``label``. All else is read as C-STS.

    Args:
        path: See `condsim.tasks.load_csts`, `condsim.tasks.load_stsb` and
            `condsim.tasks.load_scored_pairs`.
        name: Name of the task; the file's stem by default.
        require_labels: Whether a file without a single labelled row is an error.

    Returns:
        The validated rows in file order; ``conditions`` is None for STS-B and scored pairs.

    Raises:
        InputError: See the three; also if the file holds triplets or classes of NLI, which are no
            similarities.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    if _is_stsb(path):
        return load_stsb(path, name=name)
    columns = column_names(path)
    if "score" in columns and not {"condition", "label"} & set(columns):
        return load_scored_pairs(path, name=name)
    if is_triplets(columns):
        raise InputError(_no_similarities(path, "triplets", "triplet"))
    if any(set(names) <= set(columns) for names in NLI_COLUMNS):
        raise InputError(_no_similarities(path, "classes of NLI", "softmax"))
    return load_csts(path, name=name, require_labels=require_labels)


def _no_similarities(path: Path, what: str, objective: str) -> str:
    return (
        f"{path}: holds {what}, and similarities are needed here: C-STS, STS-B or scored pairs. "
        f"Such a file is for the training of a recipe with the objective {objective!r}."
    )


def _is_stsb(path: Path) -> bool:
    """Whether the first line is that of an STS-B file; no for a file that cannot be opened."""
    try:
        if not path.is_file():  # a pipe can be read only once
            return False
        with path.open("rb") as stream:
            start = stream.read(_LOOKED_AT)
    except (OSError, ValueError):
        return False  # `load_csts` says what is wrong
    lines = start.decode("utf-8", errors="replace").removeprefix("\ufeff").split("\n")
    fields = next((line for line in lines if line.strip("\r")), "").split("\t")
    return len(fields) >= len(STSB_COLUMNS) and _is_number(fields[STSB_COLUMNS.index("score")])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
