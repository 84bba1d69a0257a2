"""Load a data file of any kind of similarity, detected from its content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from condsim.data.csts import load_csts
from condsim.data.files import BlankRows, check_file, column_names
from condsim.data.nli import NLI_COLUMNS
from condsim.data.pairs import is_stsb, load_pairs, load_stsb
from condsim.data.triplets import TRIPLET_COLUMNS
from condsim.data.written import is_written, load_written
from condsim.errors import InputError, one_line, require
from condsim.types import Task

DEFAULT_SPLIT = "test"

_HUB_PREFIX = "hub:"
_HUB_NAME = re.compile(
    r"hub:(?P<dataset>\w[\w.-]*/\w[\w.-]*)(?:/(?P<config>\w[\w.-]*))?"
    r"@(?P<revision>\w[\w./-]*)(?:#(?P<split>\w+))?"
)
# The scores of this data set do not start at 0.
_HUB_LABEL_RANGES = {"mteb/sickr-sts": (1.0, 5.0)}
# Columns of the Hub that are called differently in files.
_HUB_COLUMNS = {"nyu-mll/glue/stsb": {"label": "score"}}

TASK_LOADERS: list[tuple[Callable[[Path], bool], Callable[..., Task]]] = [
    (is_written, load_written),
    (is_stsb, load_stsb),
]
"""Detectors and loaders of files without the columns of C-STS, tried in order.

Append to it to let `load_task` read another kind of file. A detector takes the path and answers
False for a file that it cannot read; a loader takes the path and ``name``.
"""


class HubName(NamedTuple):
    """A split of a data set of the Hugging Face Hub.

    Attributes:
        dataset: Owner and name.
        config: Configuration, or None for the only one.
        revision: Commit, tag or branch.
    """

    dataset: str
    config: str | None
    revision: str
    split: str = DEFAULT_SPLIT

    @property
    def title(self) -> str:
        """Short name: that of the data set, the configuration, and a split that is not ``test``."""
        split = None if self.split == DEFAULT_SPLIT else self.split
        return "-".join(filter(None, (self.dataset.split("/")[1], self.config, split)))


def parse_hub_name(text: str) -> HubName | None:
    """Parse the name of a data set of the Hub; None if the text does not begin with ``hub:``."""
    if not text.startswith(_HUB_PREFIX):
        return None
    match = _HUB_NAME.fullmatch(text)
    if match is None:
        raise InputError(
            f"{text!r}: expected hub:owner/name@revision, with /config before the @ if the data "
            f"set has several and #split at the end if it is not {DEFAULT_SPLIT!r}."
        )
    dataset, config, revision, split = match.groups()
    return HubName(dataset, config, revision, split or DEFAULT_SPLIT)


def load_task(
    path: Path | str,
    *,
    name: str | None = None,
    require_labels: bool = False,
    blank: BlankRows | None = None,
) -> Task:
    """Load a file of similarities, with or without conditions.

    The kind is detected from the content, in this order:

    - Written form: a ``.txt`` whose first line contains ``|||``; see `load_written`.
    - STS-B as released: no header, 7 tab separated fields or more with a number in the fifth.
    - What `TASK_LOADERS` adds.
    - Scored pairs: a column ``score``, and neither ``condition`` nor ``label``; see `load_pairs`.
    - Everything else is read as C-STS; see `load_csts`.

    A path such as ``hub:mteb/sts12-sts@main`` names a data set of the Hub, with its revision.

    Args:
        path: See the loader of each.
        name: Name of the task; the file's stem by default.
        require_labels: Whether a file without a single labeled row is an error.
        blank: Counts scored pairs without text, which are left out; by default they are rejected.

    Returns:
        The validated rows in file order; ``conditions`` is None for all but C-STS and the
        written form.

    Raises:
        InputError: If the file cannot be read, has no rows or breaks a rule of its kind, or
            contains triplets or classes of NLI, which are not similarities.
        MissingExtraError: If a library is missing: pyarrow for Parquet, datasets for the Hub.
    """
    if hub := parse_hub_name(str(path)):
        return _load_from_hub(hub, name=name, require_labels=require_labels)
    path = Path(path)
    check_file(path)
    task = _load_without_conditions(path, name, blank)
    if task is None:
        return load_csts(path, name=name, require_labels=require_labels)
    if require_labels and not task.valid.any():
        raise InputError(f"{path}: at least one row needs a label; none of {len(task)} has one.")
    return task


def _load_without_conditions(path: Path, name: str | None, blank: BlankRows | None) -> Task | None:
    """Load a file of any kind but C-STS; None if it is of none of these kinds."""
    for detects, load in TASK_LOADERS:
        if detects(path):
            return load(path, name=name)
    columns = set(column_names(path))
    if "score" in columns and not {"condition", "label"} & columns:
        return load_pairs(path, name=name, blank=blank)
    for content, objective, forms in (
        ("triplets", "triplet", TRIPLET_COLUMNS),
        ("classes of NLI", "softmax", NLI_COLUMNS),
    ):
        if any(set(names) <= columns for names in forms):
            raise InputError(
                f"{path}: contains {content}, and similarities are needed here: C-STS, STS-B or "
                f"scored pairs. Such a file is for recipes with the objective {objective!r}."
            )
    return None


def _load_from_hub(hub: HubName, *, name: str | None, require_labels: bool) -> Task:
    """Download a split, write it as JSON lines and load these."""
    datasets = require("datasets", extra="train")
    message = f"{hub.dataset} at {hub.revision}, split {hub.split!r} cannot be downloaded"
    with one_line(message, OSError, ValueError, datasets.exceptions.DatasetsError):
        rows = datasets.load_dataset(
            hub.dataset, hub.config, split=hub.split, revision=hub.revision
        )
    new_names = _HUB_COLUMNS.get(f"{hub.dataset}/{hub.config}", {})
    with TemporaryDirectory() as folder:
        path = Path(folder, f"{hub.title}.jsonl")
        with path.open("w", encoding="utf-8", newline="\n") as stream:
            for row in rows:
                record = {new_names.get(column, column): value for column, value in row.items()}
                stream.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
        if (label_range := _HUB_LABEL_RANGES.get(hub.dataset)) is not None:
            return load_pairs(path, name=name, label_range=label_range)
        return load_task(path, name=name, require_labels=require_labels)
