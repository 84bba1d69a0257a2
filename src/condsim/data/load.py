"""Loads a data file of any kind of similarity, detected from its content."""

# A name is written ``hub:<owner>/<data set>[/<configuration>]@<revision>[#<split>]``, such as
# ``hub:mteb/sts12-sts@main``. The revision has to be there: a commit names the same rows for ever.

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from condsim.data.afs import is_afs, load_afs
from condsim.data.csts import CstsRow, iter_csts, load_csts
from condsim.data.formats import file_lines
from condsim.data.nli import NLI_COLUMNS
from condsim.data.pairs import (
    CXC_STS_MARKS,
    GradedColumns,
    compare_count,
    load_cxc_sts,
    load_graded,
    load_scored_pairs,
)
from condsim.data.reading import check_file, column_names
from condsim.data.row import number_of
from condsim.data.sick import SICK_COLUMNS, SICK_COUNTS, load_sick
from condsim.data.sts import STS_COUNTS, is_sts_input, is_sts_tsv, load_sts
from condsim.data.stsb import GLUE_MARKS, STSB_COLUMNS, STSB_COUNTS, load_stsb, load_stsb_glue
from condsim.data.triplets import TRIPLET_COLUMNS
from condsim.data.written import is_written, iter_written, load_written
from condsim.errors import InputError, require
from condsim.types import Task

_PREFIX = "hub:"
_NAME = re.compile(
    r"hub:(?P<dataset>\w[\w.-]*/\w[\w.-]*)(?:/(?P<config>\w[\w.-]*))?"
    r"@(?P<revision>\w[\w./-]*)(?:#(?P<split>\w+))?"
)
_DEFAULT_SPLIT = "test"


class HubName(NamedTuple):
    """A split of a data set of the Hub.

    Attributes:
        dataset: Owner and name.
        config: Configuration, or None for the only one.
        revision: Commit, tag or branch.
    """

    dataset: str
    config: str | None
    revision: str
    split: str = _DEFAULT_SPLIT

    @property
    def title(self) -> str:
        """Short name: that of the data set, with configuration and split where they say more."""
        parts = [self.dataset.split("/")[1], self.config]
        parts.append(None if self.split == _DEFAULT_SPLIT else self.split)
        return "-".join(part for part in parts if part)


class _HubSet(NamedTuple):
    """A data set whose columns alone do not tell its scale; the rows of its splits as published."""

    label_range: tuple[float, float]
    rows: dict[str, int]
    columns: GradedColumns = GradedColumns()


_STSB = STSB_COUNTS | {"validation": STSB_COUNTS["dev"]}

_HUB_SETS = {
    f"mteb/sts{year % 100}-sts": _HubSet((0.0, 5.0), {"test": sum(subsets.values())})
    for year, subsets in STS_COUNTS.items()
} | {
    "mteb/stsbenchmark-sts": _HubSet((0.0, 5.0), _STSB),
    # all splits of SICK in one
    "mteb/sickr-sts": _HubSet((1.0, 5.0), {"test": sum(SICK_COUNTS.values())}),
    "nyu-mll/glue/stsb": _HubSet((0.0, 5.0), _STSB, GradedColumns(score="label")),
}
"""Data sets by name, with the configuration if there is one."""


def parse_hub_name(text: str) -> HubName | None:
    """Reads the name of a data set of the Hub; None if the text does not begin with ``hub:``.

    Raises:
        InputError: If it does, and the rest has another form.
    """
    if not text.startswith(_PREFIX):
        return None
    named = _NAME.fullmatch(text)
    if named is None:
        raise InputError(
            f"{text!r}: a data set of the Hub is named hub:owner/name@revision, with /config "
            "before the @ if it has several and #split at the end if it is not 'test'. A commit "
            "as revision names the same rows for ever."
        )
    return HubName(
        named["dataset"], named["config"], named["revision"], named["split"] or _DEFAULT_SPLIT
    )


def _fetch_split(hub: HubName, folder: Path) -> Path:
    """Fetches a split and writes it as JSONL, which every loader here reads."""
    library = require("datasets", extra="train")
    try:
        rows = library.load_dataset(hub.dataset, hub.config, split=hub.split, revision=hub.revision)
    except (OSError, ValueError, library.exceptions.DatasetsError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"{hub.dataset} at {hub.revision}, split {hub.split!r}: cannot be had from the Hub "
            f"({reason}). Check the name and the network, or give a file."
        ) from error
    path = folder / f"{hub.title}.jsonl"
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for row in rows:
            stream.write(json.dumps(dict(row), ensure_ascii=False, default=str) + "\n")
    return path


_BY_COLUMNS = (
    (GLUE_MARKS, load_stsb_glue),
    (SICK_COLUMNS, load_sick),
    (CXC_STS_MARKS, load_cxc_sts),
)


def load_task(path: Path | str, *, name: str | None = None, require_labels: bool = False) -> Task:
    """Loads a C-STS file, or one of similarities without conditions.

    The kind is detected from the content, in this order:

    - Written form: a ``.txt`` whose first line has ``|||`` in it; see `load_written`.
    - STS-B: the first line that is not blank has 7 tab separated fields or more with a number in
      the fifth; the released files have no header. With a header as GLUE has it: columns
      ``genre``, ``old_index``, ``sentence1`` and ``sentence2``.
    - STS 2012-2016: named ``STS.input.<subset>.txt``, with its gold scores beside it; or the first
      columns are ``score``, ``sentence1`` and ``sentence2``, in this order, and the file is named
      ``sts<year>.<subset>.test.tsv`` or has a score above 1.
    - SICK: ``sentence_A``, ``sentence_B`` and ``relatedness_score``.
    - AFS: ``sentence_1``, ``sentence_2`` and ``regression_label``.
    - Crisscrossed Captions: ``score``, ``caption_id1`` and ``caption_id2``.
    - Scored pairs: a column ``score``, and neither ``condition`` nor ``label``.
    - All else is read as C-STS.

    A path such as ``hub:mteb/sts12-sts@main`` names a data set of the Hub, with its revision.

    Args:
        path: See the loader of each.
        name: Name of the task; the file's stem by default.
        require_labels: Whether a file without a single labelled row is an error.

    Returns:
        The validated rows in file order; ``conditions`` is None for all but C-STS and the
            written form.

    Raises:
        InputError: If the file cannot be read, has no rows or breaks a rule of its kind, or holds
            triplets or classes of NLI, which are no similarities.
        MissingExtraError: If a library is missing: pyarrow for Parquet, datasets for the Hub.
    """
    if hub := parse_hub_name(str(path)):
        return _from_hub(hub, name=name, require_labels=require_labels)
    path = Path(path)
    check_file(path)
    if is_written(path):
        return load_written(path, name=name)
    task = _without_conditions(path, name)
    if task is None:
        return load_csts(path, name=name, require_labels=require_labels)
    if require_labels and not task.valid.any():
        raise InputError(
            f"{path}: labels are needed here, and none of the {len(task)} rows has one. Give a "
            "file with scores."
        )
    return task


def iter_conditional(path: Path | str, *, labels: bool = True) -> Iterator[CstsRow]:
    """Streams the rows of C-STS or of the written form in bounded memory.

    Args:
        path: See `iter_csts` and `iter_written`.
        labels: Whether to read labels from C-STS; the written form always has them.

    Returns:
        Iterator over the rows in file order.

    Raises:
        InputError: See `iter_csts` and `iter_written`.
        MissingExtraError: See `iter_csts`.
    """
    if not is_written(Path(path)):
        return iter_csts(path, labels=labels)
    return (
        CstsRow(pair.sentence1, pair.sentence2, condition, label)
        for pair in iter_written(path)
        for condition, label in pair.labels.items()
    )


def _from_hub(hub: HubName, *, name: str | None, require_labels: bool) -> Task:
    known = _HUB_SETS.get("/".join(filter(None, (hub.dataset, hub.config))))
    with TemporaryDirectory() as folder:
        path = _fetch_split(hub, Path(folder))
        if known is None:
            return load_task(path, name=name, require_labels=require_labels)
        task = load_graded(
            path,
            columns=known.columns,
            label_range=known.label_range,
            fix="This revision of the data set is another one, or the split has no labels.",
            name=name,
        )
    if hub.split in known.rows:
        compare_count(hub.title, found=len(task), published=known.rows[hub.split])
    return task


def _without_conditions(path: Path, name: str | None) -> Task | None:
    """Loads a file of a kind that has no conditions; None if it is none of them."""
    if _is_stsb(path):
        return load_stsb(path, name=name)
    if is_sts_input(path):
        return load_sts(path, name=name)
    if is_afs(path):
        return load_afs(path, name=name)
    columns = column_names(path)
    for marks, load in _BY_COLUMNS:
        if set(marks) <= set(columns):
            return load(path, name=name)
    if is_sts_tsv(path, columns):
        return load_sts(path, name=name)
    if "score" in columns and not {"condition", "label"} & set(columns):
        return load_scored_pairs(path, name=name)
    for what, objective, known in (
        ("triplets", "triplet", TRIPLET_COLUMNS),
        ("classes of NLI", "softmax", NLI_COLUMNS),
    ):
        if any(set(names) <= set(columns) for names in known):
            raise InputError(
                f"{path}: holds {what}, and similarities are needed here: C-STS, STS-B or scored "
                "pairs. Such a file is for the training of a recipe with the objective "
                f"{objective!r}."
            )
    return None


def _is_stsb(path: Path) -> bool:
    """Whether the first line that is not blank is one of an STS-B file."""
    try:
        with closing(file_lines(path)) as lines:
            fields = next((line for line in lines if line.strip("\r\n")), "").split("\t")
    except InputError:  # whoever reads the rows says what is wrong
        return False
    whole = len(fields) >= len(STSB_COLUMNS)
    return whole and number_of(fields[STSB_COLUMNS.index("score")]) is not None
