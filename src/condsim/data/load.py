"""Load a data file of any kind of similarity, detected from its content.

Files other than C-STS have pairs with a gold score and no condition. Scored pairs have a score from
0 to 1, such as the harvest that a model of contexts scored, or from 0 to 5, as people rate them for
STS. The released STS-B files (Cer et al., 2017) have no header.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from condsim.data.batch import BlankRows
from condsim.data.csts import load_csts
from condsim.data.files import check_file, column_names, iter_rows, never_empty, text_lines
from condsim.data.labels import Scale, make_labeled_task
from condsim.data.nli_triplets import NLI_COLUMNS, TRIPLET_COLUMNS
from condsim.data.readers import tsv_records
from condsim.data.row import Row, location, number_of
from condsim.data.tasks import compare_split
from condsim.data.text import first_line
from condsim.data.written import is_written, load_written
from condsim.errors import InputError, one_line, require
from condsim.types import Task

DEFAULT_SPLIT = "test"

STSB_COLUMNS = ("genre", "file", "year", "id", "score", "sentence1", "sentence2")
"""The fields of a line of STS-B, in order; the files themselves do not name them."""

STSB_COUNTS = {"train": 5749, "dev": 1500, "test": 1379}
"""Published number of rows of each split of STS-B."""

_STS_RANGE = (0.0, 5.0)

_HUB_PREFIX = "hub:"
_HUB_NAME = re.compile(
    r"hub:(?P<dataset>\w[\w.-]*/\w[\w.-]*)(?:/(?P<config>\w[\w.-]*))?"
    r"@(?P<revision>\w[\w./-]*)(?:#(?P<split>\w+))?"
)
# The scores of this data set do not start at 0.
_HUB_LABEL_RANGES = {"mteb/sickr-sts": (1.0, 5.0)}
# Columns of the Hub that are called differently in files.
_HUB_COLUMNS = {"nyu-mll/glue/stsb": {"label": "score"}}
_LOGGER = logging.getLogger(__name__)


class HubName(NamedTuple):
    """A split of a data set of the Hugging Face Hub, at a commit, tag or branch."""

    # Owner and name.
    dataset: str
    # None for the only one.
    config: str | None
    revision: str
    split: str = DEFAULT_SPLIT

    @property
    def title(self) -> str:
        """Short name: the data set, the configuration, and a split that is not ``test``."""
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
    scale: Scale | None = None,
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
        blank: Counts rows of C-STS and scored pairs without text, which are left out; by default
            they are rejected.
        scale: Lowest and highest label of C-STS and scored pairs; by default, the labels tell it.

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
    for detects, load in TASK_LOADERS:
        if detects(path):
            return load(path, name=name)
    columns = set(column_names(path))
    if "score" in columns and not {"condition", "label"} & columns:
        task = load_pairs(path, name=name, blank=blank, scale=scale)
        if require_labels and not task.valid.any():
            raise InputError(f"{path}: no row has a label in the column 'score'.")
        return task
    for content, objective, forms in (
        ("triplets", "triplet", TRIPLET_COLUMNS),
        ("classes of NLI", "softmax", NLI_COLUMNS),
    ):
        if any(set(names) <= columns for names in forms):
            raise InputError(
                f"{path}: contains {content}, and similarities are needed here: C-STS, STS-B or "
                f"scored pairs. Such a file is for recipes with the objective {objective!r}."
            )
    return load_csts(path, name=name, require_labels=require_labels, blank=blank, scale=scale)


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
        scale = _HUB_LABEL_RANGES.get(hub.dataset)
        return load_task(path, name=name, require_labels=require_labels, scale=scale)


class ScoredColumns(NamedTuple):
    """The names of the columns of scored pairs."""

    sentence1: str = "sentence1"
    sentence2: str = "sentence2"
    score: str = "score"


def load_pairs(
    path: Path | str,
    *,
    name: str | None = None,
    columns: ScoredColumns = ScoredColumns(),  # noqa: B008
    scale: Scale | None = None,
    blank: BlankRows | None = None,
) -> Task:
    """Load a file of sentence pairs with scores on one scale, told by the scores by default.

    Rows without text are rejected by default.
    """
    path = Path(path)
    blank = blank or BlankRows(strict=True)
    all_rows = iter_rows(path, columns=columns)
    rows = (row for _, row in blank.present(all_rows, columns[:2]))
    return task_of_pairs(path, rows, name=name, columns=columns, scale=scale)


def task_of_pairs(
    path: Path,
    rows: Iterable[Row],
    *,
    name: str | None,
    columns: ScoredColumns,
    scale: Scale | None,
) -> Task:
    """Make a task of the rows of a file of sentence pairs; see `load_pairs`."""
    texts, score = columns[:2], columns.score
    task = make_labeled_task(path, rows, texts, score, name=name, scale=scale)
    scored = int(task.valid.sum())
    _LOGGER.info("%s: %d pairs without conditions, %d scored", task.name, len(task), scored)
    return task


def is_stsb(path: Path) -> bool:
    """Detect a released STS-B file: its first line has a number in the fifth of 7 fields."""
    cells = dict(zip(STSB_COLUMNS, first_line(path).split("\t"), strict=False))
    return len(cells) == len(STSB_COLUMNS) and number_of(cells["score"]) is not None


def load_stsb(path: Path | str, *, name: str | None = None) -> Task:
    """Load a released STS-B file: ``sts-train.csv``, ``sts-dev.csv`` or ``sts-test.csv``.

    A number of rows that differs from the published one is logged as a warning.
    """
    path = Path(path)
    records = enumerate(never_empty(path, tsv_records(path, text_lines(path))), start=1)
    rows = (_stsb_row(path, number, line, fields) for number, (line, fields) in records)
    task = task_of_pairs(path, rows, name=name, columns=ScoredColumns(), scale=_STS_RANGE)
    compare_split(path, rows=len(task), published=STSB_COUNTS)
    return task


def _stsb_row(path: Path, number: int, line: int, fields: list[str]) -> Row:
    if len(fields) < len(STSB_COLUMNS):
        raise InputError(
            f"{location(path, line=line)}: must have at least {len(STSB_COLUMNS)} tab separated "
            f"fields ({', '.join(STSB_COLUMNS)}), got {len(fields)}."
        )
    # The sources of the sentences may follow.
    return Row(path, number, line, dict(zip(STSB_COLUMNS, map(str.strip, fields), strict=False)))


TASK_LOADERS: list[tuple[Callable[[Path], bool], Callable[..., Task]]] = [
    (is_written, load_written),
    (is_stsb, load_stsb),
]
"""Detectors and loaders of files without the columns of C-STS, tried in order.

Append to it to let `load_task` read another kind of file. A detector takes the path and answers
False for a file that it cannot read; a loader takes the path and ``name``. Every row of such a
file has a label.
"""
